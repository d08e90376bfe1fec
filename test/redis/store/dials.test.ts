import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { limitedTrunk, type Dialling, type DialLimits } from '../../../src/gateway/model/dialling.js';
import { parseE164, type E164 } from '../../../src/gateway/model/e164.js';
import type { DialHeadroom } from '../../../src/gateway/ports/batches.js';
import { StoreUnavailableError, type DialRefusal, type PermittedDial } from '../../../src/gateway/ports/ports.js';
import { placementKey } from '../../../src/gateway/store/redis/dials/redis-placements.js';
import { orgDialDayKey, orgDialsKey, orgRecentDialsKey } from '../../../src/gateway/store/redis/keys.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { newUuid } from '../../../src/lib/ids.js';
import { isoNow, type Clock } from '../../../src/lib/clock.js';
import type { Result } from '../../../src/lib/result.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { begun } from '../../support/begun-call.js';
import { expectExpiry } from '../../support/expiry.js';
import { holdSecond, startRedis, type AnyRedis } from '../../support/redis.js';
import { LEASE_MS, leasePasses } from '../../support/lease.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';
import { eventually } from '../api/http-fixture.js';

const TO = '+4930123456' as E164;
const MINUTES = 5;
const DAY_MS = 86_400_000;
/** How long an idempotency key is claimed before there is a call. */
const CLAIMED_MS = 60_000;
const AMPLE: Dialling = {
  prices: { '+49': 0.02 },
  callers: [],
  max_calls_per_second: 1_000,
  max_concurrent_calls: 1_000,
  max_calls_per_day: 1_000,
  max_cost_per_day: 1_000,
};

let serial = 0;

for (const cluster of [false, true]) {
  describe(`placed calls over several gateways, ${cluster ? 'a Redis Cluster of three nodes' : 'redis-server'}`, () => {
    let redis: AnyRedis;
    let one: RedisStores;
    let other: RedisStores;
    let orgId: string;
    let from: E164;
    /** Of numbers whose trunk is not a.example. */
    const endpoints = new Map<E164, string>();

    const open = (instance: string, clock: Clock = systemClock): Promise<RedisStores> => openStores(redis, { instance, clock });

    beforeAll(async () => {
      redis = cluster ? await workerRedisCluster() : await workerRedis();
      [one, other] = await Promise.all([open('gw-1'), open('gw-2')]);
      return () => Promise.all([one.close(), other.close()]);
    });
    beforeEach(async () => {
      orgId = (await one.orgs.create({ name: 'one', sip_enabled: true })).org_id;
      from = parseE164(`+1555${String((serial += 1)).padStart(7, '0')}`)!;
      await one.numbers.attach(orgId, from, { outbound: { sip_endpoint: 'a.example' } });
    });

    const allow = (change: Partial<Dialling> = {}): Promise<unknown> =>
      one.orgs.change(orgId, { dialling: { ...AMPLE, callers: [from], ...change } });
    const reserveFrom = (number: E164, stores: RedisStores, callId = newUuid()): Promise<Result<PermittedDial, DialRefusal>> =>
      stores.ofCalls.dials.reserve({
        orgId,
        from: number,
        to: TO,
        maxDurationMs: MINUTES * 60_000,
        endpoint: endpoints.get(number) ?? 'a.example',
        call: begun(callId, { direction: 'outbound' }),
      });
    const reserve = (stores: RedisStores, callId: string): Promise<Result<PermittedDial, DialRefusal>> => reserveFrom(from, stores, callId);
    const live = async (): Promise<readonly string[]> => (await one.live.list(orgId, { limit: 100 })).calls.map(({ call_id: id }) => id);
    const errorOf = (outcome: Result<PermittedDial, DialRefusal>): string => (outcome.ok ? '' : outcome.error.detail);

    it('need a permission of the operator', async () => {
      expect(errorOf(await reserve(one, newUuid()))).toMatch(/has not enabled/);
      await allow({ callers: [] });
      expect(errorOf(await reserve(one, newUuid()))).toMatch(/has not verified/);
      expect(await live()).toEqual([]);
    });

    it('by REFER through the trunk count, cost and are settled, but take no slot and are not listed, since they end a call', async () => {
      await allow({ max_concurrent_calls: 1, max_calls_per_day: 5, max_cost_per_day: 0.3, per_trunk: { max_concurrent_calls: 1 } });
      const referred = (callId: string): Promise<Result<PermittedDial, DialRefusal>> =>
        one.ofCalls.dials.reserve({
          orgId,
          from,
          to: TO,
          maxDurationMs: MINUTES * 60_000,
          endpoint: 'a.example',
          isReferred: true,
          call: begun(callId, { direction: 'outbound' }),
        });
      const [call, failed, done] = [newUuid(), newUuid(), newUuid()];
      expect(errorOf(await reserve(one, call))).toBe('');
      expect(errorOf(await referred(failed))).toBe('');
      expect(await live()).toEqual([call]);
      expect(errorOf(await reserve(other, newUuid()))).toMatch(/as many placed calls in progress/);
      one.ofCalls.dials.settle(failed, 0);
      const isEmpty = (text: string): boolean => text === '';
      await eventually(async () => errorOf(await referred(done)), isEmpty);
      one.ofCalls.dials.settle(done, MINUTES * 60_000);
      one.ofCalls.dials.settle(call, MINUTES * 60_000);
      await eventually(live, (ids) => ids.length === 0);
      expect(errorOf(await reserve(other, newUuid()))).toBe('');
      expect(errorOf(await referred(newUuid()))).toMatch(/cost/);
      await allow({ max_calls_per_day: 5 });
      expect(errorOf(await referred(newUuid()))).toBe('');
      expect(errorOf(await referred(newUuid()))).toMatch(/calls today/);
    });

    it('by REFER of an inbound call through a carrier need a price alone, and count nothing when the carrier refuses', async () => {
      await allow({ callers: [], max_calls_per_day: 1, max_calls_per_second: 1, max_cost_per_day: 0.1 });
      const referred = (callId: string): Promise<Result<PermittedDial, DialRefusal>> =>
        one.ofCalls.dials.reserve({ orgId, from, to: TO, maxDurationMs: 60_000, endpoint: null, isReferred: true, call: begun(callId) });
      const refused = newUuid();
      expect(errorOf(await referred(refused))).toBe('');
      one.ofCalls.dials.withdraw(refused);
      expect(errorOf(await referred(newUuid()))).toBe('');
      expect(errorOf(await referred(newUuid()))).toMatch(/as many calls/);
      await allow({ prices: {} });
      expect(errorOf(await referred(newUuid()))).toMatch(/no prefix/);
    });

    it('use a cached number and organization; a change that was answered applies on every gateway', async () => {
      await allow();
      // Their time stands still, and with it the age of the channel's last heartbeat: what is remembered stays so.
      const clock = new VirtualClock(Date.now());
      const still = await Promise.all(['gw-3', 'gw-4'].map((instance) => open(instance, clock)));
      // Of one node of a cluster.
      const reads = async (): Promise<number> => Number(/cmdstat_get:calls=(\d+)/.exec(await redis.command('INFO commandstats'))?.[1] ?? 0);
      const readsOf = async (stores: RedisStores, calls: number): Promise<number> => {
        const before = await reads();
        for (let call = 0; call < calls; call += 1) expect((await reserve(stores, newUuid())).ok).toBe(true);
        return (await reads()) - before;
      };
      for (const stores of still) {
        // Once a heartbeat is back: the first one may have come before its connection.
        let tries = 0;
        await eventually(
          () => {
            tries += 1;
            if (tries % 50 === 0) clock.advance(200);
            return readsOf(stores, 1);
          },
          (count) => count === 0,
        );
        expect(await readsOf(stores, 20)).toBe(0);
        await stores.close();
      }
      for (const stores of [one, other]) expect((await reserve(stores, newUuid())).ok).toBe(true);
      await allow({ prices: {} });
      for (const stores of [one, other]) expect(errorOf(await reserve(stores, newUuid()))).toMatch(/no prefix/);
      await allow();
      for (const stores of [one, other]) expect((await reserve(stores, newUuid())).ok).toBe(true);
      await one.numbers.detach(orgId, from, ['outbound']);
      for (const stores of [one, other]) expect(errorOf(await reserve(stores, newUuid()))).toMatch(/not attached|not a number/);
      // The next owner's.
      const next = (await one.orgs.create({ name: 'two', sip_enabled: true })).org_id;
      await one.numbers.attach(next, from, { outbound: { sip_endpoint: 'a.example' } });
      for (const stores of [one, other]) expect(errorOf(await reserve(stores, newUuid()))).toMatch(/not a number of the organization/);
    });

    it('use the trunk of their own organization alone', async () => {
      expect(await one.ofCalls.dials.trunkOf(orgId, from)).toEqual({ sip_endpoint: 'a.example' });
      expect(await one.ofCalls.dials.trunkOf(newUuid(), from)).toBeNull();
      expect(await one.ofCalls.dials.trunkOf(orgId, TO)).toBeNull();
    });

    it('fill exactly the slots when 100 start at once, on all gateways together', async () => {
      await allow({ max_concurrent_calls: 30 });
      const calls = Array.from({ length: 100 }, () => newUuid());
      const outcomes = await Promise.all(calls.map((id, index) => reserve([one, other][index % 2]!, id)));
      expect(outcomes.filter(({ ok }) => ok)).toHaveLength(30);
      expect(new Set(outcomes.map(errorOf))).toEqual(
        new Set(['', 'the organization has as many placed calls in progress as the operator allows']),
      );
      expect(await live()).toHaveLength(30);
      for (const id of calls) for (const { ofCalls } of [one, other]) ofCalls.dials.settle(id, 0);
      await eventually(live, (ids) => ids.length === 0);
      expect((await reserve(one, newUuid())).ok).toBe(true);
    });

    it.each([
      ['per second', { max_calls_per_second: 3 }, /calls a second/],
      ['per day', { max_calls_per_day: 3 }, /calls today/],
      ['of cost per day', { max_cost_per_day: 0.35 }, /cost of this call/],
    ])('count against the limit %s, whatever their outcome', async (_what, change, sentence) => {
      await allow(change);
      for (const stores of [one, other, one]) {
        expect((await reserve(stores, newUuid())).ok).toBe(true);
        await holdSecond(redis, orgRecentDialsKey(orgId));
      }
      expect(errorOf(await reserve(other, newUuid()))).toMatch(sentence);
    });

    it('return the rest of their reserved cost when they end', async () => {
      // 0.10 is reserved for each.
      await allow({ max_cost_per_day: 0.13 });
      const [first, second] = [newUuid(), newUuid()];
      expect((await reserve(one, first)).ok).toBe(true);
      expect((await reserve(other, second)).ok).toBe(false);
      one.ofCalls.dials.settle(first, 0);
      await eventually(live, (ids) => ids.length === 0);
      expect((await reserve(other, second)).ok).toBe(true);
      // A minute and a half are two: 0.04.
      other.ofCalls.dials.settle(second, 90_000);
      other.ofCalls.dials.settle(second, 90_000);
      await eventually(live, (ids) => ids.length === 0);
      expect((await reserve(one, newUuid())).ok).toBe(false);
      await allow({ max_cost_per_day: 0.14 });
      expect((await reserve(one, newUuid())).ok).toBe(true);
    });

    it('of a gateway that died free their slot after its lease, and their cost stays for the day', async () => {
      await allow({ max_concurrent_calls: 1, max_cost_per_day: 0.15 });
      const clock = new VirtualClock(Date.now());
      const dying = await open('gw-dying', clock);
      // Connected to every node.
      await eventually(
        () => dying.numbers.get(orgId, from).catch(() => null),
        (number) => number !== null,
      );
      const today = orgDialDayKey(orgId, isoNow(clock).slice(0, 10));
      const reserved = () => expectExpiry(redis, [orgDialsKey(orgId)], LEASE_MS, () => reserve(dying, newUuid()));
      expect((await expectExpiry(redis, [today], 3 * DAY_MS, reserved)).ok).toBe(true);
      await dying.close();
      expect(errorOf(await reserve(one, newUuid()))).toMatch(/in progress/);
      await redis.advance(LEASE_MS);
      expect(errorOf(await reserve(one, newUuid()))).toMatch(/cost/);
    });

    it('keep their slot when another process resumes them, and are settled there', async () => {
      await allow({ max_concurrent_calls: 1 });
      const callId = newUuid();
      const first = await open('gw-killed');
      const outcome = await reserve(first, callId);
      if (!outcome.ok) throw new Error(outcome.error.detail);
      const call = begun(callId, { direction: 'outbound' });
      const dial = { permit: outcome.value.permit, to: TO };
      first.ofCalls.snapshots.persist({ call_id: callId, org_id: orgId, phone_number: from, call, dial, answer: null, state: {} });
      await first.ofCalls.snapshots.flush();
      await first.close();
      const clock = new VirtualClock(Date.now());
      const next = await open('gw-killed', clock);
      expect((await next.ofCalls.snapshots.orphaned()).map(({ call_id: id }) => id)).toEqual([callId]);
      await expectExpiry(redis, [orgDialsKey(orgId)], LEASE_MS, () => leasePasses(redis, next, clock));
      expect(await one.live.get(orgId, callId)).toMatchObject({ to: TO, direction: 'outbound', answer: null });
      expect(errorOf(await reserve(one, newUuid()))).toMatch(/in progress/);
      next.ofCalls.dials.settle(callId, 0);
      await eventually(live, (ids) => ids.length === 0);
      await next.close();
    });

    describe('the limits of each trunk', () => {
      let sameTrunk: E164;
      let otherTrunk: E164;

      beforeEach(async () => {
        serial += 2;
        sameTrunk = parseE164(`+1555${String(serial - 1).padStart(7, '0')}`)!;
        otherTrunk = parseE164(`+1555${String(serial).padStart(7, '0')}`)!;
        endpoints.set(sameTrunk, 'SIPS:user@A.Example:5061;lr').set(otherTrunk, 'a.example:5071');
        for (const [number, sip_endpoint] of endpoints) await one.numbers.attach(orgId, number, { outbound: { sip_endpoint } });
      });
      afterEach(() => endpoints.clear());

      const allowAll = (per_trunk: Partial<DialLimits>, change: Partial<Dialling> = {}): Promise<unknown> =>
        allow({ callers: [from, sameTrunk, otherTrunk], per_trunk, ...change });
      const room = (change: Partial<Dialling>, endpoint: string): Promise<DialHeadroom> =>
        one.dialAllowance.headroom(orgId, { ...AMPLE, ...change }, endpoint);

      it.each([
        ['on calls per second', { max_calls_per_second: 2 }, /the trunk gets as many calls a second/],
        ['on concurrent calls', { max_concurrent_calls: 2 }, /the trunk has as many placed calls in progress/],
        ['on calls per day', { max_calls_per_day: 2 }, /the trunk got as many calls today/],
      ])('(%s) hold for all numbers of one trunk, on all gateways, and for each trunk alone', async (_what, per_trunk, sentence) => {
        await allowAll(per_trunk);
        const numbers = [from, sameTrunk, otherTrunk];
        const outcomes: Result<PermittedDial, DialRefusal>[] = [];
        for (let index = 0; index < 12; index += 1) {
          outcomes.push(await reserveFrom(numbers[index % 3]!, [one, other][index % 2]!));
          for (const endpoint of ['a.example', 'a.example:5071'])
            await holdSecond(redis, orgRecentDialsKey(orgId, limitedTrunk({ ...AMPLE, callers: [], per_trunk }, endpoint)));
        }
        const toTrunk = (isOther: boolean) => outcomes.filter((_outcome, index) => (index % 3 === 2) === isOther);
        for (const isOther of [false, true]) expect(toTrunk(isOther).filter(({ ok }) => ok)).toHaveLength(2);
        const detail = expect.stringMatching(sentence) as string;
        for (const outcome of outcomes) if (!outcome.ok) expect(outcome.error).toEqual({ reason: 'DIAL_NOT_ALLOWED', detail });
        expect(await live()).toHaveLength(4);
      });

      it('bound what batches may still dial over it', async () => {
        const per_trunk = { max_concurrent_calls: 2, max_calls_per_day: 5 };
        await allowAll(per_trunk);
        expect((await room({ per_trunk }, 'a.example')).calls).toBe(2);
        const calls = [newUuid(), newUuid()];
        for (const id of calls) expect((await reserveFrom(from, one, id)).ok).toBe(true);
        expect((await room({ per_trunk }, 'A.example:5061')).calls).toBe(0);
        expect((await room({ per_trunk }, 'a.example:5071')).calls).toBe(2);
        expect((await room({}, 'a.example')).calls).toBe(998);
        for (const id of calls) one.ofCalls.dials.settle(id, 0);
        await eventually(live, (ids) => ids.length === 0);
        expect((await room({ per_trunk: { max_calls_per_day: 5 } }, 'a.example')).calls).toBe(3);
      });

      it('apply besides those of the organization, which come first', async () => {
        await allowAll({ max_concurrent_calls: 1 }, { max_concurrent_calls: 2 });
        expect((await reserveFrom(from, one)).ok).toBe(true);
        expect(errorOf(await reserveFrom(sameTrunk, one))).toMatch(/^the trunk has/);
        expect((await reserveFrom(otherTrunk, one)).ok).toBe(true);
        expect(errorOf(await reserveFrom(sameTrunk, one))).toMatch(/^the organization has/);
      });

      it('count nothing when there are none', async () => {
        await allowAll({ max_calls_per_day: 1 });
        await allow();
        for (const stores of [one, other]) expect((await reserveFrom(from, stores)).ok).toBe(true);
        await allowAll({ max_calls_per_day: 1 });
        expect((await reserveFrom(from, one)).ok).toBe(true);
        expect((await reserveFrom(sameTrunk, other)).ok).toBe(false);
      });

      it('count a call on the trunk that its INVITE goes to, until it ends, whatever changes', async () => {
        await allowAll({ max_concurrent_calls: 1 });
        const callId = newUuid();
        await one.numbers.update(orgId, from, { type: 'outbound', sip_endpoint: 'a.example:5071' });
        expect((await reserveFrom(from, one, callId)).ok).toBe(true);
        expect((await reserveFrom(sameTrunk, one)).ok).toBe(false);
        await allow();
        one.ofCalls.dials.settle(callId, 0);
        await eventually(live, (ids) => ids.length === 0);
        await allowAll({ max_concurrent_calls: 1 });
        expect((await reserveFrom(sameTrunk, other)).ok).toBe(true);
      });

      it('free the slot of a gateway that died after its lease, and keep that of a call which another process resumes', async () => {
        await allowAll({ max_concurrent_calls: 1 });
        const dying = await open('gw-trunk');
        await eventually(
          () => dying.numbers.get(orgId, from).catch(() => null),
          (number) => number !== null,
        );
        const callId = newUuid();
        const outcome = await reserveFrom(from, dying, callId);
        const ofOther = await reserveFrom(otherTrunk, dying);
        if (!outcome.ok || !ofOther.ok) throw new Error(errorOf(outcome) + errorOf(ofOther));
        const dial = { permit: outcome.value.permit, to: TO };
        const call = begun(callId, { direction: 'outbound' });
        dying.ofCalls.snapshots.persist({ call_id: callId, org_id: orgId, phone_number: from, call, dial, answer: null, state: {} });
        await dying.ofCalls.snapshots.flush();
        await dying.close();
        const clock = new VirtualClock(Date.now());
        const next = await open('gw-trunk', clock);
        expect((await next.ofCalls.snapshots.orphaned()).map(({ call_id: id }) => id)).toEqual([callId]);
        expect((await reserveFrom(otherTrunk, one)).ok).toBe(false);
        await leasePasses(redis, next, clock);
        // The other trunk's slot had the same lease, and nobody renews it.
        expect((await reserveFrom(otherTrunk, one)).ok).toBe(true);
        expect((await room({ per_trunk: { max_concurrent_calls: 1 } }, 'a.example')).calls).toBe(0);
        next.ofCalls.dials.settle(callId, 0);
        await eventually(
          () => reserveFrom(sameTrunk, one),
          ({ ok }) => ok,
        );
        await next.close();
      });
    });

    it('belong to an idempotency key of the request that claims it first', async () => {
      const [first, second] = [newUuid(), newUuid()].map((callId) => ({ key: 'k', digest: 'd', callId }));
      const claims = await Promise.all([one.placements.claim(orgId, first!), other.placements.claim(orgId, second!)]);
      const winner = claims[0] === null ? first : second;
      expect(claims.filter((claim) => claim === null)).toHaveLength(1);
      expect(claims.find((claim) => claim !== null)).toEqual({ digest: 'd', callId: winner!.callId, isKept: false });
      expect(await one.placements.find(newUuid(), 'k')).toBeNull();
      await one.placements.release(orgId, 'k');
      expect(await other.placements.find(orgId, 'k')).toBeNull();
    });

    describe('the claim of an idempotency key', () => {
      const expiresAfter = <T>(ms: number, work: () => Promise<T>): Promise<T> => expectExpiry(redis, [placementKey(orgId, 'k')], ms, work);
      const claimed = async (): Promise<string> => {
        const callId = newUuid();
        expect(await one.placements.claim(orgId, { key: 'k', digest: 'd', callId })).toBeNull();
        return callId;
      };
      const reserveFor = (callId: string): Promise<Result<PermittedDial, DialRefusal>> =>
        other.ofCalls.dials.reserve({
          orgId,
          from,
          to: TO,
          maxDurationMs: MINUTES * 60_000,
          endpoint: 'a.example',
          idempotencyKey: 'k',
          call: begun(callId, { direction: 'outbound' }),
        });

      it('lasts a minute, so that a retry after a crash places the call; with the call it lasts a day', async () => {
        await allow({ per_trunk: { max_concurrent_calls: 9 } });
        const callId = await expiresAfter(CLAIMED_MS, claimed);
        expect((await expiresAfter(DAY_MS, () => reserveFor(callId))).ok).toBe(true);
        expect(await one.placements.find(orgId, 'k')).toEqual({ digest: 'd', callId, isKept: true });
        await redis.advance(DAY_MS);
        expect(await one.placements.find(orgId, 'k')).toBeNull();
      });

      it('is kept with a call that a limit refuses, too, since it has a record', async () => {
        await allow({ max_calls_per_day: 0 });
        const callId = await claimed();
        expect(errorOf(await reserveFor(callId))).toMatch(/calls today/);
        expect(await one.placements.find(orgId, 'k')).toMatchObject({ callId, isKept: true });
      });

      it('allows neither the call nor the batch that comes after it has expired', async () => {
        await allow();
        const late = await claimed();
        await redis.advance(CLAIMED_MS);
        expect(errorOf(await reserveFor(late))).toMatch(/expired/);
        const again = await claimed();
        expect(errorOf(await reserveFor(late))).toMatch(/expired/);
        expect(await other.placements.keep(orgId, { key: 'k', callId: late })).toBe(false);
        expect(await live()).toEqual([]);
        expect(await expiresAfter(DAY_MS, () => other.placements.keep(orgId, { key: 'k', callId: again }))).toBe(true);
        expect(await one.placements.find(orgId, 'k')).toEqual({ digest: 'd', callId: again, isKept: true });
      });
    });
  });
}

it('no call can be placed while Redis is away', async () => {
  const redis = await startRedis();
  const stores = await openStores(redis, { instance: 'gw' });
  await redis.close();
  const dial = { orgId: newUuid(), from: TO, to: TO, endpoint: 'a.example', call: begun('c', { direction: 'outbound' }), maxDurationMs: 1 };
  await expect(stores.ofCalls.dials.reserve(dial)).rejects.toBeInstanceOf(StoreUnavailableError);
  await stores.close();
});
