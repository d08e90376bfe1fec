import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { apiDocument } from './api-documents.js';

// The build runs this before the compiler: it makes src/client/types.ts from the OpenAPI document that the control API serves.

const TYPES_FILE = fileURLToPath(new URL('../src/client/types.ts', import.meta.url));

interface ApiDocument extends Pick<OpenAPI3, 'openapi' | 'info'> {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, object>> }>>>>;
}

/** Without failures, which are all thrown as one class, and without headers: six times shorter. */
function successesOf({ paths, ...document }: ApiDocument): OpenAPI3 {
  const shorter = mapValues(paths, (methods) =>
    mapValues(methods, (operation) => ({ ...operation, responses: { 200: { ...operation.responses['200'], headers: undefined } } })),
  );
  return { ...document, paths: shorter };
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

const types = astToString(
  await openapiTS(successesOf((await apiDocument('/openapi.json')) as ApiDocument), {
    alphabetize: true,
    exportType: false,
    defaultNonNullable: false,
  }),
);
writeFileSync(TYPES_FILE, `// Made from /openapi.json by the build.\n\n${types}`);
