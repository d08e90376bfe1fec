import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/lib/system-clock.js';
import { silentLog } from '../../../src/lib/log.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { startRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis } from '../../support/worker-redis.js';

it('a connection closes at once while it waits to connect again to a Redis that is gone', async () => {
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

it('a connection closes once it has ended, and a second close does not wait', async () => {
  const redis = await workerRedis();
  const connection = new RedisConnection({ url: redis.url, clock: new VirtualClock(), log: silentLog });
  await connection.ready(5000);
  await connection.close();
  expect(connection.client.status).toBe('end');
  await connection.close();
});

it('a connection accepts an answer that came while its process was suspended, however long that was', async () => {
  const redis = await startRedis();
  const connection = new RedisConnection({ url: redis.url, clock: systemClock, log: silentLog, commandTimeoutMs: 50 });
  await connection.ready(5000);
  const answered = connection.ping();
  await nextTurn();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  await answered;
  // Written at the end of the turn that stands still: Redis has it later than the limit.
  const late = connection.ping();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  await late;
  redis.freeze();
  await expect(connection.ping()).rejects.toThrow('Redis is not available: no answer within 50 ms');
  redis.thaw();
  await connection.close();
  await redis.close();
});
