import { expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { orgNumbersKey, SWEEP_LOCK_KEY } from '../../../src/gateway/store/redis/keys.js';
import { scheduleSweep } from '../../../src/gateway/store/redis/numbers/number-sweep-schedule.js';
import { openRedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { startRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../../unit/gateway/api/api-fixture.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

const HOUR_MS = 3_600_000;

it('every hour one gateway of all repairs the indexes of numbers, until it is closed', async () => {
  const redis = await startRedis();
  const lines: LogLine[] = [];
  const gateways = ['gw-1', 'gw-2'].map((instance) => {
    const clock = new VirtualClock(Date.now());
    return {
      clock,
      stores: openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url: redis.url, clock, log: recordingLog(lines), instance }),
    };
  });
  const [first, second] = [gateways[0]!, gateways[1]!];
  for (const { stores } of gateways) await stores.ready(HANG_GUARD_MS);
  const { org_id: orgId } = await first.stores.orgs.create({ name: 'one', sip_enabled: true });
  const number = freshNumber();
  await first.stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
  await redis.command(`DEL ${orgNumbersKey(orgId)}`);
  const swept = () => lines.filter(({ event }) => event === 'numbers.swept');

  for (const { stores } of gateways) stores.startSweeping();
  first.clock.advance(HOUR_MS * 0.8);
  await first.stores.ping();
  expect(await redis.command(`EXISTS ${SWEEP_LOCK_KEY}`)).toBe(':0\r\n');
  first.clock.advance(HOUR_MS * 0.4);
  await eventually(
    () => Promise.resolve(swept().length),
    (count) => count === 1,
  );
  expect(swept()[0]?.fields).toMatchObject({ numbers: 1, added: 1, removed: 0 });
  expect(await first.stores.numbers.list(orgId, { take: 10, skip: 0 })).toHaveLength(1);
  second.clock.advance(HOUR_MS * 1.2);
  // Answered behind the question for the lock.
  await second.stores.ping();
  await second.stores.ping();
  expect(swept()).toHaveLength(1);
  await redis.command(`DEL ${SWEEP_LOCK_KEY}`);
  second.clock.advance(HOUR_MS * 1.2);
  await eventually(
    () => Promise.resolve(swept().length),
    (count) => count === 2,
  );
  for (const { stores } of gateways) await stores.close();
  for (const { clock } of gateways) expect(clock.pendingTimers).toBe(0);
  await redis.close();
});

it('the hour has a jitter of ten minutes to either side', async () => {
  const connection = new RedisConnection({
    commandTimeoutMs: HANG_GUARD_MS,
    url: 'redis://127.0.0.1:1',
    clock: new VirtualClock(),
    log: silentLog,
  });
  for (const [random, atMs] of [
    [0, 3_000_000],
    [1, 4_200_000],
  ] as const) {
    const clock = new VirtualClock();
    let timers: number[] = [];
    const watched = {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      setTimer: (delayMs: number, fire: () => void) => {
        timers.push(delayMs);
        return clock.setTimer(delayMs, fire);
      },
    };
    const stop = scheduleSweep({
      redis: connection,
      numbers: { sweep: () => Promise.reject(new Error('not asked')) },
      instance: 'gw-1',
      clock: watched,
      log: silentLog,
      random: () => random,
    });
    clock.advance(atMs);
    expect(timers).toEqual([atMs, atMs]);
    timers = [];
    stop();
    expect(clock.pendingTimers).toBe(0);
  }
  await connection.close();
});
