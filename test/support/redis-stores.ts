import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { openRedisStores, type RedisStores, type RedisStoresOptions } from '../../src/gateway/store/redis/redis-stores.js';
import { HANG_GUARD_MS } from './hang-guard.js';
import type { AnyRedis } from './redis.js';

/** Opens stores on this Redis, in its time, and waits until they are ready. They wait for its answers however slow the machine is. */
export async function openStores(
  { url, isCluster: cluster, inTime }: Pick<AnyRedis, 'url' | 'isCluster' | 'inTime'>,
  options: Partial<RedisStoresOptions> = {},
): Promise<RedisStores> {
  const given = { commandTimeoutMs: HANG_GUARD_MS, url, cluster, inTime, clock: systemClock, log: silentLog };
  const stores = openRedisStores({ ...given, ...options });
  await stores.ready(HANG_GUARD_MS);
  return stores;
}
