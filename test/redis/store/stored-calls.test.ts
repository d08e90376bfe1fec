import { expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../src/lib/log.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { StoredCalls, type StoredPart } from '../../../src/gateway/store/redis/calls/stored-calls.js';
import { STORED_CALLS_KEYS } from '../../../src/gateway/store/redis/keys.js';
import { expectExpiry } from '../../support/expiry.js';
import { startRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis } from '../../support/worker-redis.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

const clock = new VirtualClock(1_000_000);

async function connectedTo(url: string): Promise<RedisConnection> {
  const redis = new RedisConnection({ commandTimeoutMs: HANG_GUARD_MS, url, clock, log: silentLog });
  await redis.ready(HANG_GUARD_MS);
  return redis;
}

const partOf = (member: string): StoredPart => ({ kind: 'record', orgId: 'o', member, bytes: 60, expiresMs: clock.wallMs() + 60_000 });

it('the index notes a call once, also when what it displaces cannot be dropped', async () => {
  const server = await workerRedis();
  const redis = await connectedTo(server.url);
  const dropped: string[] = [];
  let isAway = true;
  const drop = (_kind: string, parts: readonly Pick<StoredPart, 'member'>[]): Promise<void> => {
    if (isAway) return Promise.reject(new StoreUnavailableError('away'));
    dropped.push(...parts.map(({ member }) => member));
    return Promise.resolve();
  };
  const stored = new StoredCalls(redis, { maxBytes: 100, expireS: 60 }, drop, clock, silentLog);
  for (const member of ['first', 'second']) stored.note(partOf(member));
  await expect(stored.flush()).rejects.toThrow(StoreUnavailableError);
  expect(await stored.bytes()).toBe(60);
  isAway = false;
  await stored.flush();
  expect([await stored.bytes(), dropped]).toEqual([60, []]);
  // The next one drives out the one before it, which was noted once.
  stored.note(partOf('third'));
  await expectExpiry(server, STORED_CALLS_KEYS.slice(1), 60_000, () => stored.flush());
  expect([await stored.bytes(), dropped, stored.evicted.record]).toEqual([60, ['second'], 1]);
  await stored.close();
  await redis.close();
});

it('the index notes a call that Redis did not accept when Redis is back', async () => {
  const server = await startRedis();
  const redis = await connectedTo(server.url);
  const stored = new StoredCalls(redis, { maxBytes: 100, expireS: 60 }, () => Promise.resolve(), clock, silentLog);
  await server.stopServer();
  stored.note(partOf('waiting'));
  await expect(stored.flush()).rejects.toThrow(StoreUnavailableError);
  await server.startServer();
  await redis.ready(HANG_GUARD_MS);
  await stored.flush();
  expect(await stored.bytes()).toBe(60);
  await stored.close();
  await redis.close();
  await server.close();
});
