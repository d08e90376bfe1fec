import { expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { startRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';

it('closes at once while it waits to connect again to a Redis that is gone', async () => {
  const redis = await startRedis();
  const connection = new RedisConnection({ url: redis.url, clock: new VirtualClock(), log: silentLog });
  await connection.ready(5000);
  const waits = new Promise<void>((resolve) => connection.client.once('reconnecting', () => resolve()));
  await redis.stopServer();
  await waits;
  expect(connection.client.status).toBe('reconnecting');
  await connection.close();
  await redis.close();
});

it('closes an open connection once it has ended, and again without waiting', async () => {
  const redis = await startRedis();
  const connection = new RedisConnection({ url: redis.url, clock: new VirtualClock(), log: silentLog });
  await connection.ready(5000);
  await connection.close();
  expect(connection.client.status).toBe('end');
  await connection.close();
  await redis.close();
});
