import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { RedisConnection, type RedisCommand } from '../../../src/gateway/store/redis/redis.js';
import { TurnWrites } from '../../../src/gateway/store/redis/turn-writes.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

let server: WorkerRedis;
let redis: RedisConnection;
beforeAll(async () => {
  server = await workerRedis();
  redis = new RedisConnection({ commandTimeoutMs: HANG_GUARD_MS, url: server.url, clock: new VirtualClock(1_000_000), log: silentLog });
  await redis.ready(HANG_GUARD_MS);
});
afterAll(() => redis.close());

const text = fc.string({ unit: 'grapheme', maxLength: 300 });
const number = fc.maxSafeInteger();

it('the writes of one turn are in Redis byte for byte: text of any script, and numbers', async () => {
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

it('a text of two megabytes is written whole, and before the next write', async () => {
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

const member = fc.constantFrom('a', 'b', 'c');
const command: fc.Arbitrary<RedisCommand> = fc.oneof(
  fc.tuple(fc.constant('zadd'), fc.constantFrom('z1', 'z2'), fc.nat(9), member),
  fc.tuple(fc.constant('zrem'), fc.constantFrom('z1', 'z2'), member),
  fc.tuple(fc.constant('hset'), fc.constantFrom('h1', 'h2'), member, fc.nat(9)),
  fc.tuple(fc.constant('hdel'), fc.constantFrom('h1', 'h2'), member),
  fc.tuple(fc.constant('del'), fc.constantFrom('z1', 'z2', 'h1', 'h2')),
);

it('the writes of one turn have the effect that they have one by one', async () => {
  const writes = new TurnWrites(redis);
  const stored = (): Promise<unknown> =>
    Promise.all([
      ...['z1', 'z2'].map((key) => redis.client.zrange(key, '0', '-1', 'WITHSCORES')),
      ...['h1', 'h2'].map((key) => redis.client.hgetall(key)),
    ]);
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 30 }), async (commands) => {
      await redis.client.flushall();
      for (const one of commands) await redis.pipeline([one]);
      const expected = await stored();
      await redis.client.flushall();
      await Promise.all(commands.map((one) => writes.write([one])));
      expect(await stored()).toEqual(expected);
    }),
    { numRuns: 100 },
  );
});

it('the members that calls of one turn add to one key make one command, which fails for all of them', async () => {
  await redis.client.flushall();
  await redis.client.set('text', 'x');
  await server.command('CONFIG RESETSTAT');
  const writes = new TurnWrites(redis);
  const added = Array.from({ length: 500 }, (_, at) => writes.write([['zadd', 'live', 0, `call-${String(at)}`]]));
  const refused = [1, 2].map((at) => writes.write([['zadd', 'text', 0, `call-${String(at)}`]]));
  expect((await Promise.allSettled(refused)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await Promise.all(added);
  expect(await redis.client.zcard('live')).toBe(500);
  expect(await server.command('INFO commandstats')).toMatch(/cmdstat_zadd:calls=2,/);
});

it('the writes of a turn that exceed one script use several, in order', async () => {
  await server.command('CONFIG RESETSTAT');
  const long = 'x'.repeat(30_000);
  const writes = new TurnWrites(redis);
  await Promise.all(['first', 'second', 'third'].map((value) => writes.write([['set', 'value', `${value} ${long}`]])));
  expect(await redis.client.get('value')).toBe(`third ${long}`);
  // Of one character each: the most words to a script.
  await writes.write(Array.from({ length: 8_000 }, (_, at): RedisCommand => ['hset', 'many', String.fromCodePoint(200 + at), 1]));
  expect(await redis.client.hlen('many')).toBe(8_000);
  expect(await server.command('INFO commandstats')).toMatch(/cmdstat_eval:calls=11,/);
});
