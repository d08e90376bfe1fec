import openapiTS, { astToString } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { createApiServer } from '../../src/api/server.js';
import { silentLog } from '../../src/lib/log.js';
import { createMemoryStores } from '../../src/store/memory.js';
import { systemClock } from '../../src/ops/system-clock.js';

const HEADER = '// Made from /openapi.json by npm run docs.\n\n';
const TYPES_FILE = 'src/client/types.ts';

/** Types of every request and answer, from the document that the control API serves. */
export async function apiTypes(): Promise<string> {
  const types = astToString(await openapiTS(await document(), { alphabetize: true, rootTypes: true, rootTypesNoSchemaPrefix: true }));
  const options = await resolveConfig(new URL(`../../${TYPES_FILE}`, import.meta.url));
  return format(HEADER + types, { ...options, parser: 'typescript' });
}

/** No setting changes what it says but for the version. */
async function document(): Promise<Record<string, unknown>> {
  const nothing = () => Promise.reject(new Error('only the document is asked for'));
  const api = await createApiServer(
    {
      stores: createMemoryStores({ clock: systemClock }),
      check: nothing,
      liveCalls: { find: () => null, stop: () => false, trace: () => null },
      toolRunner: { run: nothing },
      readiness: nothing,
      clock: systemClock,
      log: silentLog,
    },
    {
      allowPlain: false,
      agents: { languages: ['ENG'], voices: [], maxDurationMinutes: 1 },
      rateLimits: { total: 1, perAddress: 1, perKey: 1 },
    },
  );
  const answer = await api.inject({ method: 'GET', url: '/openapi.json' });
  await api.close();
  return answer.json();
}
