import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { createApiServer } from '../src/gateway/api/server.js';
import { silentLog } from '../src/lib/log.js';
import { systemClock } from '../src/lib/system-clock.js';

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

/** Nothing asks them: only the document is read. */
const NOTHING = {} as never;

/** No setting changes what it says but for the version. */
async function document(): Promise<ApiDocument> {
  const nothing = () => Promise.reject(new Error('only the document is asked for'));
  const api = await createApiServer(
    {
      stores: NOTHING,
      placeCall: NOTHING,
      liveCalls: NOTHING,
      check: nothing,
      toolRunner: { run: nothing },
      readBatch: nothing,
      readiness: nothing,
      clock: systemClock,
      log: silentLog,
    },
    {
      allowPlain: false,
      agents: { languages: ['ENG'], voices: [], maxDurationMinutes: 1, isWebhookHost: () => true, agentUrlRefusal: () => null },
      rateLimits: { total: 1, perAddress: 1, perKey: 1 },
    },
  );
  const answer = await api.inject({ method: 'GET', url: '/openapi.json' });
  await api.close();
  return answer.json();
}

const types = astToString(
  await openapiTS(successesOf(await document()), { alphabetize: true, exportType: false, defaultNonNullable: false }),
);
writeFileSync(TYPES_FILE, `// Made from /openapi.json by the build.\n\n${types}`);
