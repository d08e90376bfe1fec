import { expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { orgNumbersKey, SWEEP_LOCK_KEY } from '../../../src/gateway/store/redis/keys.js';
import { scheduleSweep } from '../../../src/gateway/store/redis/numbers/number-sweep-schedule.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { expectExpiry } from '../../support/expiry.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis } from '../../support/worker-redis.js';
import { recordingLog, type LogLine } from '../../unit/gateway/api/api-fixture.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

const HOUR_MS = 3_600_000;
/** How long no other gateway sweeps: less than from one sweep of a gateway to its next. */
const LOCK_MS = 49 * 60_000;

it('one gateway of all repairs the indexes of numbers every hour, until it is closed', async () => {
  const redis = await workerRedis();
  const lines: LogLine[] = [];
  const opened = async (instance: string) => {
    const clock = new VirtualClock(Date.now());
    return { clock, stores: await openStores(redis, { clock, log: recordingLog(lines), instance }) };
  };
  const [first, second] = [await opened('gw-1'), await opened('gw-2')];
  const { org_id: orgId } = await first.stores.orgs.create({ name: 'one', sip_enabled: true });
  const number = freshNumber();
  await first.stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
  await redis.command(`DEL ${orgNumbersKey(orgId)}`);
  const swept = () => lines.filter(({ event }) => event === 'numbers.swept');

  for (const { stores } of [first, second]) stores.startSweeping();
  const passes = (hours: number): Promise<void> => redis.advance(HOUR_MS * hours, first.clock, second.clock);
  /** Over the same connection: the question for the lock was before it. */
  const isAnswered = async (): Promise<void> => {
    for (const { stores } of [first, second]) await stores.orgs.get(orgId);
  };
  const isSwept = async (times: number): Promise<void> => {
    await eventually(
      () => Promise.resolve(swept().length),
      (count) => count === times,
    );
    await isAnswered();
    expect(swept()).toHaveLength(times);
  };
  await passes(0.8);
  await isAnswered();
  expect(await redis.command(`EXISTS ${SWEEP_LOCK_KEY}`)).toBe(':0\r\n');
  await expectExpiry(redis, [SWEEP_LOCK_KEY], LOCK_MS, async () => {
    await passes(0.4);
    await isSwept(1);
  });
  expect(swept()[0]?.fields).toMatchObject({ numbers: 1, added: 1, removed: 0 });
  expect(await first.stores.numbers.list(orgId, { take: 10, skip: 0 })).toHaveLength(1);
  await passes(1.2);
  await isSwept(2);
  for (const { stores } of [first, second]) await stores.close();
  for (const { clock } of [first, second]) expect(clock.pendingTimers).toBe(0);
});

it('the hourly repair has a jitter of ten minutes to either side', async () => {
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
