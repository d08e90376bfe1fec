import { createApiServer } from '../src/gateway/api/server.js';
import { supportedLanguages } from '../src/gateway/model/espeak-voices.js';
import { silentLog } from '../src/lib/log.js';
import { systemClock } from '../src/lib/system-clock.js';

/** Nothing asks them: only a document is read. */
const NOTHING = {} as never;

/** An OpenAPI document as the control API serves it. No setting changes it. */
export async function apiDocument(url: '/openapi.json' | '/openapi-twilio.json'): Promise<unknown> {
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
      agents: {
        languages: supportedLanguages(),
        voices: [],
        maxDurationMinutes: 1,
        isWebhookHost: () => true,
        agentUrlRefusal: () => null,
      },
      rateLimits: { total: 1, perAddress: 1, perKey: 1 },
    },
  );
  const answer = await api.inject({ method: 'GET', url });
  await api.close();
  return answer.json();
}
