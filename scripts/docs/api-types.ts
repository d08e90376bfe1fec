import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { createApiServer } from '../../src/gateway/api/server.js';
import { silentLog } from '../../src/lib/log.js';
import { createMemoryStores } from '../../test/support/store/memory.js';
import { systemClock } from '../../src/lib/system-clock.js';

const HEADER = '// Made from /openapi.json by npm run docs.\n\n';
const TYPES_FILE = 'src/client/types.ts';

/** Types of every request and of what it is answered with, from the document that the control API serves. */
export async function apiTypes(): Promise<string> {
  const types = astToString(await openapiTS(successesOf(await document()), { alphabetize: true, exportType: false }));
  const options = await resolveConfig(new URL(`../../${TYPES_FILE}`, import.meta.url));
  return format(HEADER + types, { ...options, parser: 'typescript' });
}

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

/** No setting changes what it says but for the version. */
async function document(): Promise<ApiDocument> {
  const nothing = () => Promise.reject(new Error('only the document is asked for'));
  const api = await createApiServer(
    {
      stores: createMemoryStores({ clock: systemClock }),
      check: nothing,
      liveCalls: { find: () => null, stop: () => false, trace: () => null, quality: () => Promise.resolve(null) },
      toolRunner: { run: nothing },
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
