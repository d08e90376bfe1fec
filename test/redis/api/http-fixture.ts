import { readBatchText } from '../../../src/gateway/api/batch-body.js';
import { NO_CALLS_PLACED, NO_LIVE_CALLS } from '../../support/no-calls-placed.js';
import { createApiServer, type ApiServer } from '../../../src/gateway/api/server.js';
import type { CallCheck } from '../../../src/gateway/api/schemas/sip-check.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { redisWarnings } from '../../../src/gateway/store/redis/redis-health.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { acceptAll, answerOf, NO_TOOLS, TEST_AGENT_POLICY, TEST_RATE_LIMITS, type Answer } from '../../unit/gateway/api/api-fixture.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

/** The API over real HTTP on a free port, over a real Redis. */
export interface HttpApi {
  readonly server: ApiServer;
  readonly stores: RedisStores;
  readonly port: number;
  request(method: string, path: string, key: string, body?: unknown): Promise<Answer>;
  close(): Promise<void>;
}

export interface HttpApiOptions {
  /** The stores of a gateway of this name. */
  readonly instance?: string;
  /** How long an answer of Redis is waited for. */
  readonly commandTimeoutMs?: number;
  readonly checkOf?: (stores: RedisStores) => CallCheck;
}

export async function openHttpApi(redisUrl: string, { checkOf = () => acceptAll, ...options }: HttpApiOptions = {}): Promise<HttpApi> {
  const stores = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url: redisUrl, clock: systemClock, log: silentLog, ...options });
  await stores.ready(HANG_GUARD_MS);
  const readiness = async () => {
    const redis = await stores.health();
    return { parts: { redis: redis.refusal ?? true }, warnings: redisWarnings(redis) };
  };
  const server = await createApiServer(
    {
      stores,
      check: checkOf(stores),
      placeCall: NO_CALLS_PLACED,
      liveCalls: NO_LIVE_CALLS,
      toolRunner: NO_TOOLS,
      readBatch: (_orgId, body) => readBatchText(body),
      readiness,
      clock: systemClock,
      log: silentLog,
    },
    { allowPlain: false, version: '0.0.0-test', agents: TEST_AGENT_POLICY, rateLimits: TEST_RATE_LIMITS },
  );
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  return {
    server,
    stores,
    port,
    request: async (method, path, key, body) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return answerOf(answer.status, Object.fromEntries(answer.headers), await answer.text());
    },
    close: async () => {
      await server.close();
      await stores.close();
    },
  };
}

/** Asks again and again until the answer is as wanted; the test's own time limit ends it. */
export async function eventually<T>(ask: () => Promise<T>, isWanted: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask();
    if (isWanted(value)) return value;
    // What answers at once, as a closed connection does, must leave room for everything else.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
