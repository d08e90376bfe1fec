import type { RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import type { AnyRedis } from './redis.js';
import type { VirtualClock } from './virtual-clock.js';

/** The lease of a slot in production, renewed three times within it. */
export const LEASE_MS = 30_000;

/** A lease goes by, in which the stores on this clock renew theirs. */
export async function leasePasses(redis: Pick<AnyRedis, 'advance'>, stores: Pick<RedisStores, 'ping'>, clock: VirtualClock): Promise<void> {
  for (let renewal = 0; renewal < 3; renewal += 1) {
    await redis.advance(LEASE_MS / 3, clock);
    // Answered behind the renewal.
    await stores.ping();
  }
}
