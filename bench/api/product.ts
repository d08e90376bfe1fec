import { readBatchText } from '../../src/gateway/api/batch-body.js';
import { NO_CALLS_PLACED, NO_LIVE_CALLS } from '../../test/support/no-calls-placed.js';
import { createApiServer } from '../../src/gateway/api/server.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../src/gateway/model/records.js';
import { parseE164 } from '../../src/gateway/model/e164.js';
import { loadConfig } from '../../src/config/load.js';
import { createLogger } from '../../src/observability/log/logger.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { openRedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { takeOrders } from '../support/orders.js';
import type { Fields, Served } from './messages.js';

// The control API as the gateway opens it, without the gateway: every check, every limit, every log line.

const CHUNK = 500;
const UNLIMITED = 100_000_000;

takeOrders(async ({ redisUrl, numbers: count }: Fields): Promise<Served> => {
  const log = createLogger('bench', loadConfig({ environment: {} }).log.level);
  const stores = openRedisStores({ url: redisUrl, clock: systemClock, log });
  await stores.ready();
  const { org_id: orgId } = await stores.orgs.create({ name: 'bench', sip_enabled: true });
  const { key } = await stores.keys.create(orgId, 'bench');
  const numbers = Array.from({ length: count }, (_, index) => `+1555${String(1_000_000 + index)}`);
  for (let from = 0; from < count; from += CHUNK) {
    await Promise.all(
      numbers.slice(from, from + CHUNK).map(async (text) => {
        const number = parseE164(text);
        if (number === undefined) throw new Error(`${text} is no number`);
        await stores.numbers.attach(orgId, number, { inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS } });
      }),
    );
  }
  const api = await createApiServer(
    {
      stores,
      clock: systemClock,
      log,
      check: () => Promise.reject(new Error('not measured')),
      placeCall: NO_CALLS_PLACED,
      liveCalls: NO_LIVE_CALLS,
      toolRunner: { run: () => Promise.reject(new Error('not measured')) },
      readBatch: (_orgId, body) => readBatchText(body),
      readiness: () => Promise.resolve({ parts: {}, warnings: [] }),
    },
    {
      allowPlain: false,
      agents: { languages: ['ENG'], voices: [], maxDurationMinutes: 120, isWebhookHost: () => true, agentUrlRefusal: () => null },
      // Counted, and never reached.
      rateLimits: { total: UNLIMITED, perAddress: UNLIMITED, perKey: UNLIMITED },
    },
  );
  const { port } = await api.listen({ host: '127.0.0.1', port: 0 });
  return { port, key, numbers };
});
