import fc from 'fast-check';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { batchKey, orgRecentDialsKey } from '../../../src/gateway/store/redis/keys.js';
import { newUuid } from '../../../src/lib/ids.js';
import { BatchWorld, numberAt, type BatchGateway, type Death } from '../../support/batch-world.js';
import { expectExpiry } from '../../support/expiry.js';
import type { AnyRedis } from '../../support/redis.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';

const DAY_MS = 86_400_000;
let redis: AnyRedis;
let clock: VirtualClock;
let stores: RedisStores;
let world: BatchWorld;

/** Ticks until the batch is over, all calls ending so. */
async function finish(gateway: BatchGateway, batchId: string, end: (callId: string) => void, rounds = 50): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await gateway.tick();
    for (const callId of [...world.open.keys()]) end(callId);
    await redis.advance(11_000, clock);
    if (['completed', 'stopped', 'failed'].includes((await world.run(batchId)).state)) break;
  }
  await gateway.tick();
}

const answered = (callId: string): void => world.end(callId, 'CALLEE_HANGUP');
const types = async (batchId: string): Promise<unknown[]> =>
  (await world.log(batchId)).map(({ event_type: type, payload }) => payload['state_change'] ?? type);

/** What happens to a batch of 12: rounds of two gateways, each of which dies somewhere, and ends of calls in between. */
const deaths: fc.Arbitrary<Death> = fc.record({
  afterCalls: fc.oneof(fc.nat({ max: 12 }), fc.nat({ max: 40 })),
  takesEffect: fc.boolean(),
});
/** Somebody answers, the number is busy, nobody answers, the trunk is lost after the INVITE. */
const ENDS = ['CALLEE_HANGUP', 'BUSY', 'BUSY', 'NO_ANSWER', 'DIAL_AMBIGUOUS'] as const;
const RETRIES = { BUSY: { times: 2, after_seconds: 1 }, TRUNK_UNREACHABLE: { times: 2, after_seconds: 1 } };
const steps = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant('tick' as const),
      who: fc.nat({ max: 1 }),
      afterMs: fc.constantFrom(1_000, 6_000, 11_000),
      standsStill: fc.boolean(),
    }),
    fc.record({ do: fc.constant('end' as const), which: fc.nat({ max: 3 }), how: fc.constantFrom(...ENDS) }),
    fc.record({ do: fc.constant('start' as const), who: fc.nat({ max: 1 }), death: deaths }),
  ),
  { maxLength: 25 },
);

describe.each([
  ['redis-server', false],
  ['a Redis Cluster of three nodes', true],
])('batches on %s', (_what, isCluster) => {
  beforeAll(async () => {
    redis = isCluster ? await workerRedisCluster() : await workerRedis();
    clock = new VirtualClock();
    stores = await openStores(redis, { clock });
    return () => stores.close();
  });
  beforeEach(async () => {
    world = await BatchWorld.open(stores, clock);
  });
  afterEach(() => world.close());

  describe('a batch in progress', () => {
    it('calls every number once, and logs its progress', async () => {
      const batchId = await world.batch(20);
      await finish(world.gateway('a'), batchId, answered);
      expect([...world.invites.values()]).toEqual(Array.from({ length: 20 }, () => 1));
      expect(await types(batchId)).toEqual(['created', 'validating', 'ready', 'in_progress', 'completed', 'complete']);
      const log = await world.log(batchId);
      expect(log.at(-2)?.payload['message']).toBe('20 requested, 20 validated, 20 dispatched, 100 calls per second');
      expect(log.at(-1)?.payload).toEqual({ calls_total: 20, calls_failed: 0, calls_successful: 20 });
      expect(await stores.batchWork.running()).toEqual([]);
    });

    it('calls nobody before its start, and is stopped when nobody starts it for a day', async () => {
      const batchId = await world.batch(3, {}, { start: false });
      const gateway = world.gateway('a');
      await finish(gateway, batchId, answered, 3);
      expect(await world.run(batchId)).toMatchObject({ state: 'ready', counts: { waiting: 3, dispatched: 0 }, preview: { refused: 0 } });
      await redis.advance(DAY_MS, clock);
      await finish(gateway, batchId, answered, 3);
      expect([(await world.run(batchId)).state, world.invites.size]).toEqual(['stopped', 0]);
      expect(JSON.stringify(await world.log(batchId))).toContain('nobody started it');
    });

    it('starts no more calls a second than its pace, on all gateways together', async () => {
      const batchId = await world.batch(40, { calls_per_second: 5 });
      const pair = [world.gateway('a'), world.gateway('b')];
      await redis.advance(5_000, clock);
      await Promise.all(pair.map((one) => one.tick()));
      expect(world.invites.size).toBe(5);
      await redis.advance(5_000, clock);
      await Promise.all(pair.map((one) => one.tick()));
      expect(world.invites.size).toBe(10);
      expect((await world.run(batchId)).counts.dispatched).toBe(world.invites.size);
    });

    it('has no more calls at once than its limit', async () => {
      const batchId = await world.batch(40, { max_concurrent_calls: 7 });
      const pair = [world.gateway('a'), world.gateway('b')];
      for (let round = 0; round < 3; round += 1) await Promise.all(pair.map((one) => one.tick()));
      expect(world.open.size).toBe(7);
      expect((await world.run(batchId)).counts).toMatchObject({ dialling: 7, waiting: 33, dispatched: 7 });
    });

    it('has no more calls at once, and a second, than its trunk takes', async () => {
      await world.close();
      world = await BatchWorld.open(stores, clock, { per_trunk: { max_concurrent_calls: 7, max_calls_per_second: 5 } });
      const batchId = await world.batch(40);
      const pair = [world.gateway('a'), world.gateway('b')];
      // As many as the trunk takes a second, in an hour by the clock of Redis: this second does not end.
      const recent = orgRecentDialsKey(world.orgId, 'trunk.example:5061');
      for (let call = 0; call < 5; call += 1) await redis.command(`ZADD ${recent} ${String(redis.now() + 3_600_000)} ${String(call)}`);
      await redis.advance(5_000, clock);
      await Promise.all(pair.map((one) => one.tick()));
      expect(world.open.size).toBe(0);
      await redis.command(`DEL ${recent}`);
      for (let round = 0; round < 3; round += 1) {
        await redis.advance(5_000, clock);
        await Promise.all(pair.map((one) => one.tick()));
      }
      expect(world.open.size).toBe(7);
      expect((await world.run(batchId)).counts).toMatchObject({ dialling: 7, waiting: 33 });
    });

    it('dials again after the delay, and as often, as the rule of the reason says', async () => {
      const batchId = await world.batch(1, { retries: { BUSY: { times: 2, after_seconds: 600 } } });
      const gateway = world.gateway('a');
      const busy = async (): Promise<void> => {
        await gateway.tick();
        for (const callId of [...world.open.keys()]) world.end(callId, 'BUSY');
        await gateway.dialler.close();
      };
      await busy();
      clock.advance(599_000);
      await gateway.tick();
      expect(world.invites.get(numberAt(0))).toBe(1);
      for (let round = 0; round < 3; round += 1) {
        clock.advance(601_000);
        await world.gateway(`later-${String(round)}`).tick();
        await finish(world.gateway('b'), batchId, (callId) => world.end(callId, 'BUSY'), 2);
      }
      expect(world.invites.get(numberAt(0))).toBe(3);
      expect((await world.run(batchId)).counts).toMatchObject({ failed: 1, successful: 0 });
    });

    it('waits for the hours of the callee, and refuses a number without any', async () => {
      const hours = { from: '09:00', to: '20:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const };
      // Midnight of UTC: 09:00 in Tokyo, 01:00 in Berlin.
      clock.advance(86_400_000 - (clock.wallMs() % 86_400_000));
      const here = await world.batch(1, { hours });
      const there = await world.batch(1, { hours }, { zone: 'Asia/Tokyo' });
      await world.gateway('a').tick();
      expect((await world.run(here)).counts).toMatchObject({ waiting: 1, dispatched: 0 });
      expect((await world.run(there)).counts).toMatchObject({ waiting: 0, dispatched: 1 });
      clock.advance(8 * 3_600_000 - 1);
      await world.gateway('b').tick();
      expect((await world.run(here)).counts.dispatched).toBe(0);
      clock.advance(1);
      await world.gateway('c').tick();
      expect((await world.run(here)).counts.dispatched).toBe(1);
    });

    it('dials nobody who is put on the do-not-call list after the batch was made', async () => {
      const batchId = await world.batch(3);
      await stores.doNotCall.add(world.orgId, [numberAt(1)]);
      await finish(world.gateway('a'), batchId, answered);
      expect([...world.invites.keys()].sort()).toEqual([numberAt(0), numberAt(2)]);
      const refused = (await world.log(batchId)).filter(({ event_type: type }) => type === 'refused');
      expect(refused.map(({ payload }) => payload)).toEqual([{ phone_number: numberAt(1), reason: 'DO_NOT_CALL' }]);
    });

    it('names every ambiguous or refused number, however long its log becomes', async () => {
      const small = await openStores(redis, { clock, batchRetention: { days: 3, maxEntries: 5 } });
      await world.close();
      world = await BatchWorld.open(small, clock);
      const batchId = await world.batch(220);
      await small.doNotCall.add(world.orgId, [0, 1, 2].map(numberAt));
      const gateway = world.gateway('a');
      const note = (text: string) => small.batches.append(world.orgId, batchId, { event_type: 'note', payload: { text } });
      await finish(gateway, batchId, (callId) => world.end(callId, 'DIAL_AMBIGUOUS'));
      for (const text of ['one', 'two', 'three', 'four', 'five', 'six']) await note(text);
      const whole = await world.log(batchId);
      const of = (type: string) =>
        whole.filter((entry) => entry.event_type === type).map(({ payload }) => payload['phone_number'] ?? payload['text']);
      expect(of('refused')).toEqual([0, 1, 2].map(numberAt));
      expect(of('ambiguous').sort()).toEqual(Array.from({ length: 217 }, (_, index) => numberAt(index + 3)).sort());
      expect(of('note')).toEqual(['two', 'three', 'four', 'five', 'six']);
      // Pages of both directions, in the order in which it was written.
      expect(whole.slice(-5).map(({ event_type: type }) => type)).toEqual(Array.from({ length: 5 }, () => 'note'));
      const read = (take: number, skip: number, direction: 'asc' | 'desc') => small.batches.read(null, batchId, { take, skip, direction });
      expect(await read(1_000, 0, 'desc')).toEqual([...whole].reverse());
      expect(await read(30, 190, 'asc')).toEqual(whole.slice(190, 220));
      expect(await read(30, 2, 'desc')).toEqual([...whole].reverse().slice(2, 32));
      expect(await read(30, whole.length, 'asc')).toEqual([]);
      await world.close();
      world = await BatchWorld.open(stores, clock);
      await small.close();
    });

    it('adds a callee who presses the digit to the do-not-call list', async () => {
      await world.batch(1, { do_not_call_digit: '9' });
      const gateway = world.gateway('a');
      await gateway.tick();
      const [callId = ''] = world.open.keys();
      gateway.dialler.onDigit(callId, '1');
      gateway.dialler.onDigit(callId, '9');
      await expect.poll(async () => [...(await stores.doNotCall.find(world.orgId, [numberAt(0)]))]).toEqual([numberAt(0)]);
    });

    it('pauses, resumes, and stops for good', async () => {
      const batchId = await world.batch(30, { max_concurrent_calls: 10 });
      const gateway = world.gateway('a');
      await gateway.tick();
      const move = (to: 'paused' | 'in_progress' | 'stopped', from: 'paused' | 'in_progress') =>
        stores.batchRuns.move(batchId, { to, from: [from], events: [] });
      expect(await move('paused', 'in_progress')).toBe(true);
      for (const callId of [...world.open.keys()]) answered(callId);
      await gateway.tick();
      const before = world.invites.size;
      expect((await world.run(batchId)).counts).toMatchObject({ dialling: 0, waiting: 30 - before, successful: before });
      expect(await move('in_progress', 'paused')).toBe(true);
      clock.advance(1_000);
      await gateway.tick();
      expect(world.invites.size).toBeGreaterThan(before);
      expect(await move('stopped', 'in_progress')).toBe(true);
      const stopped = world.invites.size;
      await finish(gateway, batchId, answered, 3);
      expect(world.invites.size).toBe(stopped);
      expect((await world.log(batchId)).at(-1)).toMatchObject({
        event_type: 'complete',
        payload: { calls_total: 30, calls_successful: stopped, calls_failed: 0 },
      });
    });

    it('pauses when more than 3 % of those who answered heard nobody, and continues when it is resumed', async () => {
      const batchId = await world.batch(50, { max_concurrent_calls: 5 });
      await finish(world.gateway('a'), batchId, (callId) => world.end(callId, 'AGENT_HANGUP', {}), 2);
      expect((await world.run(batchId)).state).toBe('in_progress');
      const gateway = world.gateway('b');
      await gateway.tick();
      const [first = ''] = world.open.keys();
      const record = { call_id: first, reason: 'AGENT_UNAVAILABLE', answered_at: new Date(clock.wallMs()).toISOString() };
      world.end(first, 'AGENT_UNAVAILABLE', record);
      await finish(gateway, batchId, answered, 3);
      expect((await world.run(batchId)).state).toBe('paused');
      expect(JSON.stringify(await world.log(batchId))).toMatch(/1 of \d+ calls answered today were abandoned, more than 3 %/);
      expect(world.invites.size).toBeLessThan(50);
      await stores.batchRuns.move(batchId, { to: 'in_progress', from: ['paused'], events: [] });
      await finish(gateway, batchId, answered);
      expect(await world.run(batchId)).toMatchObject({ state: 'completed', counts: { abandoned_today: 1 } });
      expect(world.invites.size).toBe(50);
    });

    it('continues after a crash: the outcome of ten calls is unknown, and they do not count as abandoned', async () => {
      const batchId = await world.batch(30, { max_concurrent_calls: 10, calls_per_second: 10 });
      const killed = world.gateway('a');
      clock.advance(1_000);
      await killed.tick();
      const lost = [...world.open.keys()];
      expect(lost.length).toBeGreaterThan(5);
      killed.isDead = true;
      for (const callId of lost) world.end(callId, 'GATEWAY_RESTARTED', { answered_at: new Date(clock.wallMs()).toISOString() });
      clock.advance(120_000);
      await finish(world.gateway('b'), batchId, answered);
      expect(await world.run(batchId)).toMatchObject({ state: 'completed', counts: { successful: 30, abandoned_today: 0 } });
    });

    it('counts no machines among those who answered, which would hide that one heard nobody', async () => {
      const batchId = await world.batch(50, { max_concurrent_calls: 40, calls_per_second: 40 });
      const gateway = world.gateway('a');
      clock.advance(1_000);
      await gateway.tick();
      const [first = '', ...others] = world.open.keys();
      expect(others.length).toBeGreaterThan(33);
      world.end(first, 'AGENT_UNAVAILABLE', { answered_at: new Date(clock.wallMs()).toISOString() });
      for (const [index, callId] of others.entries())
        world.end(callId, 'CALLEE_HANGUP', { answered_by: index % 2 === 0 ? 'machine' : 'fax' });
      await gateway.dialler.close();
      expect((await world.run(batchId)).counts).toMatchObject({ answered_today: 1, abandoned_today: 1, successful: others.length });
      await world.gateway('b').tick();
      expect((await world.run(batchId)).state).toBe('paused');
    });

    it('pauses when the operator withdraws the permission', async () => {
      const batchId = await world.batch(2);
      await stores.orgs.change(world.orgId, { dialling: null });
      await world.gateway('a').tick();
      expect((await world.run(batchId)).state).toBe('paused');
      expect(world.invites.size).toBe(0);
    });

    it('sends no late INVITE of a gateway that was suspended while others called its attempt ambiguous', async () => {
      const batchId = await world.batch(3);
      const still = world.gateway('a');
      await still.tick(true);
      clock.advance(11_000);
      await world.gateway('b').tick();
      const told = (await world.log(batchId)).filter(({ event_type: type }) => type === 'ambiguous');
      expect(told).toHaveLength(3);
      await still.wake();
      await finish(still, batchId, answered);
      expect(world.invites.size).toBe(0);
      expect((await world.run(batchId)).counts).toMatchObject({ failed: 3, ambiguous: 3, dispatched: 3 });
    });

    it('delays an INVITE of a gateway that was suspended alone, for example past the hours', async () => {
      const batchId = await world.batch(2);
      const gateway = world.gateway('a');
      await gateway.tick(true);
      clock.advance(5_001);
      await gateway.wake();
      expect(world.invites.size).toBe(0);
      await finish(gateway, batchId, answered);
      expect([...world.invites.values()]).toEqual([1, 1]);
      expect((await world.run(batchId)).counts).toMatchObject({ successful: 2, failed: 0 });
    });

    it('leaves a confirmed INVITE to its gateway for as long as it takes', async () => {
      const batchId = await world.batch(1);
      await world.gateway('a').tick();
      const [attempt] = await stores.batchWork.attempts(batchId);
      if (attempt === undefined) throw new Error('no attempt');
      clock.advance(4_000);
      expect(await stores.batchWork.confirm(batchId, { ...attempt, token: attempt.token + 1 })).toBe(false);
      expect(await stores.batchWork.attempts(batchId)).toEqual([attempt]);
      expect(await stores.batchWork.confirm(batchId, attempt)).toBe(true);
      expect(await stores.batchWork.attempts(batchId)).toEqual([{ ...attempt, atMs: attempt.atMs + 4_000 }]);
      expect(await stores.batchWork.settle(batchId, attempt, { outcome: { kind: 'successful' } })).toBe(true);
      expect(await stores.batchWork.confirm(batchId, attempt)).toBe(false);
    });

    it('never settles an attempt of another token', async () => {
      const batchId = await world.batch(1);
      await world.gateway('a').tick();
      const [attempt] = await stores.batchWork.attempts(batchId);
      if (attempt === undefined) throw new Error('no attempt');
      const outcome = { kind: 'successful' } as const;
      expect(await stores.batchWork.settle(batchId, { ...attempt, token: attempt.token + 1 }, { outcome })).toBe(false);
      expect(await stores.batchWork.settle(batchId, attempt, { outcome })).toBe(true);
      expect(await stores.batchWork.settle(batchId, attempt, { outcome })).toBe(false);
    });

    it('leaves nothing behind 30 days after it was made', async () => {
      const names = ['', ':log', ':outcomes', ':run', ':numbers', ':due', ':attempts'];
      const batchId = newUuid();
      await expectExpiry(
        redis,
        names.map((name) => `${batchKey(batchId)}${name}`),
        30 * DAY_MS,
        async () => {
          await world.batch(4, { max_concurrent_calls: 1 }, { batchId });
          await stores.doNotCall.add(world.orgId, [numberAt(0)]);
          await world.gateway('a').tick();
        },
      );
      await redis.advance(30 * DAY_MS, clock);
      const left = await Promise.all(redis.nodes.map((node) => node.command('KEYS batch:*')));
      expect(left.join('')).not.toContain(batchId);
      await world.gateway('b').tick();
      expect(await stores.batchWork.running()).toEqual([]);
    });
  });

  describe('a batch in which any process is killed at any point', () => {
    it('calls no number again but by a rule, no ambiguous one ever, and forgets none', async () => {
      let killed = 0;
      let repeated = 0;
      let lost = 0;
      let late = 0;
      await fc.assert(
        fc.asyncProperty(deaths, deaths, steps, fc.boolean(), async (one, other, course, leavesRecord) => {
          await world.close();
          world = await BatchWorld.open(stores, clock);
          const batchId = await world.batch(12, { max_concurrent_calls: 4, retries: RETRIES });
          const gateways = [world.gateway('a', one), world.gateway('b', other)];
          const all = [...gateways];
          for (const step of course) {
            clock.advance(step.do === 'tick' ? step.afterMs : 1_000);
            if (step.do === 'tick') await gateways[step.who]?.tick(step.standsStill);
            else if (step.do === 'start') {
              gateways[step.who] = world.gateway(['a', 'b'][step.who] ?? '', step.death);
              all.push(...gateways.slice(step.who, step.who + 1));
            } else {
              const callId = [...world.open.keys()][step.which];
              if (callId !== undefined) world.end(callId, step.how);
            }
          }
          killed += all.filter(({ isDead }) => isDead).length;
          // All are gone, but those that stand still; one comes later.
          const still = all.filter(({ isStill, isDead }) => isStill && !isDead);
          for (const gateway of gateways) if (!gateway.isStill) gateway.isDead = true;
          for (const callId of [...world.open.keys()])
            if (leavesRecord) world.end(callId, 'DIAL_AMBIGUOUS');
            else world.lose(callId);
          let calls = 0;
          await finish(world.gateway('c'), batchId, (callId) => world.end(callId, (calls += 1) % 3 === 1 ? 'BUSY' : 'CALLEE_HANGUP'));
          const { state, counts } = await world.run(batchId);
          const before = [...world.invites];
          for (const gateway of still) await gateway.wake();
          late += world.tooLate;
          expect([...world.invites]).toEqual(before);
          expect(state).toBe('completed');
          expect(counts).toMatchObject({ waiting: 0, dialling: 0, validated: 12 });
          expect(counts.successful + counts.failed).toBe(12);
          const ambiguous = (await world.log(batchId))
            .filter(({ event_type: type }) => type === 'ambiguous')
            .map(({ payload }) => String(payload['phone_number']));
          expect(new Set(ambiguous).size).toBe(ambiguous.length);
          expect(world.dialledInDoubt).toEqual([]);
          for (const number of world.inDoubt) expect(ambiguous).toContain(number);
          lost += world.inDoubt.size;
          expect(counts.ambiguous).toBe(ambiguous.length);
          for (let index = 0; index < 12; index += 1) {
            const number = numberAt(index);
            const invites = world.invites.get(number) ?? 0;
            expect(invites, `${number} of ${JSON.stringify(ambiguous)}`).toBeLessThanOrEqual(1 + RETRIES.BUSY.times);
            if (invites > 1) repeated += 1;
            if (invites === 0) expect(ambiguous).toContain(number);
          }
        }),
        { numRuns: 80 },
      );
      expect(Math.min(killed, repeated, lost, late)).toBeGreaterThan(10);
    });
  });
});
