import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { TurnWrites } from '../../../src/gateway/store/redis/turn-writes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';

let server: TestRedis;
let redis: RedisConnection;
beforeAll(async () => {
  server = await startRedis();
  redis = new RedisConnection({ url: server.url, clock: new VirtualClock(1_000_000), log: silentLog });
  await redis.ready(5_000);
});
afterAll(async () => {
  await redis.close();
  await server.close();
});

const text = fc.string({ unit: 'grapheme', maxLength: 300 });
const number = fc.maxSafeInteger();

it('what is written in one turn stands in Redis byte for byte: text of any script, and numbers', async () => {
  const writes = new TurnWrites(redis);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(text, number), { minLength: 1, maxLength: 20 }), async (values) => {
      await Promise.all(values.map((value, at) => writes.write([['set', `key-${String(at)}-é`, value]])));
      const stored = await Promise.all(values.map((_value, at) => redis.client.getBuffer(`key-${String(at)}-é`)));
      expect(stored).toEqual(values.map((value) => Buffer.from(String(value))));
    }),
    { numRuns: 50 },
  );
});

it('a text of two megabytes is written whole, and before what follows it', async () => {
  const long = 'ü'.repeat(1_000_000);
  await new TurnWrites(redis).write([
    ['set', 'long', long],
    ['append', 'long', 'end'],
  ]);
  expect(await redis.client.get('long')).toBe(`${long}end`);
});

it('a write that Redis refuses fails alone, with its own reason', async () => {
  await redis.client.set('text', 'x');
  const writes = new TurnWrites(redis);
  const results = await Promise.allSettled([
    writes.write([['set', 'before', 1]]),
    writes.write([
      ['set', 'beside', 2],
      ['zadd', 'text', 0, 'member'],
    ]),
    writes.write([['set', 'behind', 3]]),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(String((results[1] as PromiseRejectedResult).reason)).toContain('WRONGTYPE');
  expect(await redis.client.mget('before', 'beside', 'behind')).toEqual(['1', '2', '3']);
});
