import { RedisAgentStore } from './redis-agents.js';
import { RedisApiKeyStore } from './redis-api-keys.js';
import { RedisCallLog } from './redis-calls.js';
import { RedisNumberStore } from './redis-numbers.js';
import { RedisOrgStore } from './redis-orgs.js';
import { RedisRouteStore } from './redis-routes.js';
import { RedisConnection, type RedisOptions } from './redis.js';
import { DEFAULT_CALL_RETENTION, type CallRetention, type Stores } from './stores.js';

const READY_LIMIT_MS = 5000;

export interface RedisStoresOptions extends RedisOptions {
  readonly callRetention?: Partial<CallRetention>;
  /** Numbers whose owner is remembered for the next look-up. */
  readonly maxRouteHints?: number;
}

export interface RedisStores extends Stores {
  /** Resolves when Redis is usable; rejects with `StoreUnavailableError` when it is not within `limitMs` (5000). */
  ready(limitMs?: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens all stores over one connection. Returns at once: the connection is made in the background and made again whenever
 * it is lost; until then everything rejects with `StoreUnavailableError` at once.
 */
export function openRedisStores(options: RedisStoresOptions): RedisStores {
  const redis = new RedisConnection(options);
  const { clock, log } = options;
  return {
    numbers: new RedisNumberStore(redis, clock, log),
    orgs: new RedisOrgStore(redis, clock),
    keys: new RedisApiKeyStore(redis, clock),
    agents: new RedisAgentStore(redis),
    calls: new RedisCallLog(redis, clock, { ...DEFAULT_CALL_RETENTION, ...options.callRetention }),
    routes: new RedisRouteStore(redis, options.maxRouteHints),
    ping: async () => {
      await redis.run((client) => client.ping());
    },
    ready: (limitMs = READY_LIMIT_MS) => redis.ready(limitMs),
    close: () => redis.close(),
  };
}
