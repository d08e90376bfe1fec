import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CallSnapshot } from '../../../../src/gateway/model/call-snapshot.js';
import type { BeginningCall } from '../../../../src/gateway/model/live-calls.js';
import type { E164 } from '../../../../src/gateway/model/e164.js';
import type { InboundOptions } from '../../../../src/gateway/model/records.js';
import { brokenLimit, NO_USAGE } from '../../../../src/gateway/admission/admission.js';
import { newUuid } from '../../../../src/lib/ids.js';
import type { CallFilter, Stores } from '../../../../src/gateway/ports/stores.js';
import { ANSWERED, begun, snapshotOf } from '../../../support/begun-call.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';
import { callOf, endedCall, freshNumber, inboundSetting } from './store-contract.js';
import { turn } from '../../../support/turn.js';

/** What every implementation of `Stores` must do for calls in progress. */
/** A call that changes is kept when it has come to rest. */
const COMES_TO_REST_MS = 100;

export function describeCallsInProgress(name: string, open: () => { stores: Stores; clock: VirtualClock }): void {
  describe(`${name}: calls in progress`, () => {
    let stores: Stores;
    let clock: VirtualClock;
    let orgId: string;
    let otherOrgId: string;
    beforeAll(() => {
      ({ stores, clock } = open());
    });
    beforeEach(async () => {
      orgId = (await stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
      otherOrgId = (await stores.orgs.create({ name: 'two', sip_enabled: true })).org_id;
    });

    describe('the slots of calls', () => {
      const limits = { max_concurrent_calls: 2, max_calls_per_second: null };

      /** Whether a call was counted, by what a gateway goes by. */
      async function isAdmitted(number: E164, callId: string): Promise<boolean> {
        const { route, load } = await stores.routes.lookup(number, begun(callId));
        if (route === null) throw new Error('not attached');
        return brokenLimit(route, load) === null;
      }

      async function attached(options: Partial<InboundOptions> = {}, owner = orgId): Promise<E164> {
        const number = freshNumber();
        await stores.numbers.attach(owner, number, { inbound: inboundSetting(options) });
        return number;
      }

      it('count each call from its look-up under an id until its release, without the call itself', async () => {
        const number = await attached();
        const other = await attached();
        const [first, second] = [newUuid(), newUuid()];
        expect((await stores.routes.lookup(number, begun(first))).load).toEqual(NO_USAGE);
        // Without a limit nobody asks how many there are.
        await stores.routes.lookup(number, begun(second));
        expect((await stores.routes.lookup(number, null)).load).toEqual({ ...NO_USAGE, numberCalls: 2, orgCalls: 2 });
        expect((await stores.routes.lookup(other, null)).load).toEqual({ ...NO_USAGE, orgCalls: 2 });
        stores.routes.release(first);
        stores.routes.release(first);
        stores.routes.release(newUuid());
        expect((await stores.routes.lookup(number, null)).load).toEqual({ ...NO_USAGE, numberCalls: 1, orgCalls: 1 });
        expect((await stores.routes.lookup(number, begun(second))).load).toEqual(NO_USAGE);
        stores.routes.release(second);
      });

      it('of a number refuse the call above the limit, which takes none of the organization', async () => {
        const number = await attached(limits);
        const ids = [newUuid(), newUuid(), newUuid()];
        const admitted = [];
        for (const id of ids) admitted.push(await isAdmitted(number, id));
        expect(admitted).toEqual([true, true, false]);
        expect((await stores.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 2, orgCalls: 2 });
        stores.routes.release(ids[2]!);
        stores.routes.release(ids[0]!);
        expect(await isAdmitted(number, ids[2]!)).toBe(true);
        for (const id of ids) stores.routes.release(id);
        expect((await stores.routes.lookup(number, null)).load).toEqual(NO_USAGE);
      });

      it('of an organization cover its numbers; a call that they refuse takes none of the number', async () => {
        await stores.orgs.change(orgId, { max_concurrent_calls: 1 });
        const [one, two] = [await attached(), await attached()];
        const [first, second] = [newUuid(), newUuid()];
        expect(await isAdmitted(one, first)).toBe(true);
        expect(await isAdmitted(two, second)).toBe(false);
        expect((await stores.routes.lookup(two, null)).load).toMatchObject({ numberCalls: 0, orgCalls: 1 });
        stores.routes.release(first);
        expect(await isAdmitted(two, second)).toBe(true);
        stores.routes.release(second);
      });

      it('count earlier calls under a limit that is set later, and admit none under a limit of zero', async () => {
        const number = await attached();
        const [first, second] = [newUuid(), newUuid()];
        expect(await isAdmitted(number, first)).toBe(true);
        await stores.numbers.update(orgId, number, { type: 'inbound', options: { ...inboundSetting().options, max_concurrent_calls: 1 } });
        expect(await isAdmitted(number, second)).toBe(false);
        stores.routes.release(first);
        await stores.orgs.change(orgId, { max_concurrent_calls: 0 });
        expect(await isAdmitted(number, second)).toBe(false);
      });

      it('of the last second outlive their release, except those that were refused', async () => {
        const number = await attached({ max_calls_per_second: 2 });
        const ids = [newUuid(), newUuid(), newUuid(), newUuid()];
        expect(await isAdmitted(number, ids[0]!)).toBe(true);
        expect(await isAdmitted(number, ids[1]!)).toBe(true);
        stores.routes.release(ids[0]!);
        expect(await isAdmitted(number, ids[2]!)).toBe(false);
        stores.routes.release(ids[1]!, true);
        expect(await isAdmitted(number, ids[3]!)).toBe(true);
        stores.routes.release(ids[3]!);
      });

      it('of an organization count calls a second over its numbers', async () => {
        await stores.orgs.change(orgId, { max_calls_per_second: 1 });
        const [one, two] = [await attached(), await attached()];
        const [first, second] = [newUuid(), newUuid()];
        expect(await isAdmitted(one, first)).toBe(true);
        const { route, load } = await stores.routes.lookup(two, begun(second));
        expect(load).toMatchObject({ numberCalls: 0, orgCallsLastSecond: 1 });
        expect(route === null || brokenLimit(route, load)).toBe('ORG_RATE_LIMIT');
        stores.routes.release(first);
      });

      it('are never both taken by two concurrent calls when one is left, cached number or not', async () => {
        const number = await attached({ max_concurrent_calls: 3 });
        const ids = Array.from({ length: 20 }, () => newUuid());
        const admitted = await Promise.all(ids.map((id) => isAdmitted(number, id)));
        expect(admitted.filter(Boolean)).toHaveLength(3);
        for (const id of ids) stores.routes.release(id);
        const again = await Promise.all(ids.map((id) => isAdmitted(number, `${id}2`)));
        expect(again.filter(Boolean)).toHaveLength(3);
        for (const id of ids) stores.routes.release(`${id}2`);
      });

      it('exclude a call that ends before its look-up does', async () => {
        const number = await attached();
        const id = newUuid();
        const looked = stores.routes.lookup(number, begun(id));
        stores.routes.release(id);
        await looked;
        expect((await stores.routes.lookup(number, null)).load).toEqual(NO_USAGE);
      });

      it('exclude a number that is not attached, or that moved to another organization', async () => {
        const number = await attached();
        await stores.routes.lookup(number, null);
        await stores.numbers.detach(orgId, number, ['inbound']);
        await stores.numbers.attach(otherOrgId, number, { inbound: inboundSetting() });
        const [moved, gone] = [newUuid(), newUuid()];
        expect((await stores.routes.lookup(number, begun(moved))).route?.org.org_id).toBe(otherOrgId);
        const left = await attached();
        expect((await stores.routes.lookup(left, null)).load.orgCalls).toBe(0);
        await stores.routes.lookup(left, null);
        await stores.numbers.detach(orgId, left, ['inbound']);
        expect(await stores.routes.lookup(left, begun(gone))).toEqual({ route: null, load: NO_USAGE, staleMs: null });
        expect((await stores.routes.lookup(await attached(), null)).load.orgCalls).toBe(0);
        stores.routes.release(moved);
      });
    });

    describe('a list of calls in progress', () => {
      const at = (second: number): string => `2026-01-01T00:00:0${String(second)}.000Z`;
      const ids = async (filter: CallFilter = {}, owner = orgId): Promise<string[]> =>
        (await stores.live.list(owner, { limit: 10, ...filter })).calls.map(({ call_id: callId }) => callId);

      async function inProgress(second: number, fields: Partial<BeginningCall> = {}): Promise<{ call: BeginningCall; number: E164 }> {
        const number = freshNumber();
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        const call = begun(newUuid(), { started_at: at(second), ...fields });
        await stores.routes.lookup(number, call);
        return { call, number };
      }

      it('has a call from its look-up to its release, the newest first, and by its id', async () => {
        const [late, early] = [await inProgress(2), await inProgress(1)];
        expect(await ids()).toEqual([late.call.call_id, early.call.call_id]);
        const found = await stores.live.get(orgId, early.call.call_id);
        expect(found).toEqual({ ...early.call, org_id: orgId, to: early.number, gateway: expect.any(String) as unknown, answer: null });
        expect((await stores.live.list(orgId, { limit: 1, untilMs: Date.parse(at(2)) })).calls).toEqual([found]);
        stores.routes.release(late.call.call_id);
        await untilEqual(() => ids(), [early.call.call_id]);
        expect(await stores.live.get(orgId, late.call.call_id)).toBeNull();
        stores.routes.release(early.call.call_id);
        await untilEqual(() => ids(), []);
      });

      it('has nothing of another organization', async () => {
        const { call } = await inProgress(1);
        expect(await stores.live.get(otherOrgId, call.call_id)).toBeNull();
        expect(await ids({}, otherOrgId)).toEqual([]);
        stores.routes.release(call.call_id);
      });

      it('takes filters and pages as that of ended calls does', async () => {
        const made = [await inProgress(1, { from: 'anonymous' }), await inProgress(2), await inProgress(3)];
        const [first, second, third] = made.map(({ call }) => call.call_id) as [string, string, string];
        expect(await ids({ from: 'anonymous' })).toEqual([first]);
        expect(await ids({ to: made[1]!.number })).toEqual([second]);
        expect(await ids({ reason: 'CALLER_HANGUP' })).toEqual([]);
        expect(await ids({ sinceMs: Date.parse(at(2)), untilMs: Date.parse(at(3)) })).toEqual([second]);
        const page = await stores.live.list(orgId, { limit: 2 });
        expect(page.calls.map(({ call_id: callId }) => callId)).toEqual([third, second]);
        const rest = await stores.live.list(orgId, { limit: 2, before: page.next! });
        expect([rest.calls.map(({ call_id: callId }) => callId), rest.next]).toEqual([[first], null]);
        for (const { call } of made) stores.routes.release(call.call_id);
      });

      it('has the snapshot of an answered call, also when another process resumed it', async () => {
        const { call, number } = await inProgress(1);
        stores.snapshots.persist({ ...snapshotOf(call.call_id, orgId, number), call });
        clock.advance(COMES_TO_REST_MS);
        await untilEqual(async () => (await stores.live.get(orgId, call.call_id))?.answer ?? null, ANSWERED);
        expect((await stores.live.list(orgId, { limit: 1 })).calls[0]?.answer).toEqual(ANSWERED);
        stores.routes.release(call.call_id);
        await untilEqual(() => ids(), []);
        await stores.snapshots.orphaned();
        expect(await ids()).toEqual([call.call_id]);
        stores.snapshots.delete(call.call_id);
        await untilEqual(() => ids(), []);
      });

      it('lacks a call that a limit refused, and one that ended before its look-up did', async () => {
        const number = freshNumber();
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting({ max_concurrent_calls: 0 }) });
        await stores.routes.lookup(number, begun(newUuid()));
        await stores.routes.lookup(number, begun(newUuid()));
        await untilEqual(() => ids(), []);
        const free = freshNumber();
        await stores.numbers.attach(orgId, free, { inbound: inboundSetting() });
        const looked = stores.routes.lookup(free, begun('c'));
        stores.routes.release('c');
        await looked;
        await untilEqual(() => ids(), []);
      });
    });

    describe('a snapshot', () => {
      const snapshotFor = (number: E164, state: unknown = {}): CallSnapshot => snapshotOf(newUuid(), orgId, number, state);

      it('is returned as it was last kept, and counts until it is forgotten', async () => {
        const number = freshNumber();
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        const [kept, forgotten] = [snapshotFor(number, { step: 1 }), snapshotFor(number)];
        stores.snapshots.persist(kept);
        stores.snapshots.persist(forgotten);
        stores.snapshots.delete(forgotten.call_id);
        stores.snapshots.persist({ ...kept, state: { step: 2 } });
        clock.advance(COMES_TO_REST_MS);
        await untilEqual(async () => (await stores.snapshots.orphaned()).map(({ state }) => state), [{ step: 2 }]);
        expect((await stores.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 1, orgCalls: 1 });
        stores.snapshots.delete(kept.call_id);
        clock.advance(COMES_TO_REST_MS);
        await untilEqual(() => stores.snapshots.orphaned(), []);
        expect((await stores.routes.lookup(number, null)).load).toEqual(NO_USAGE);
      });

      it('is forgotten when the call’s record is written, though its gateway was killed between the two', async () => {
        const number = freshNumber();
        await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
        const [going, ended] = [snapshotFor(number), snapshotFor(number)];
        for (const snapshot of [going, ended]) stores.snapshots.persist(snapshot);
        clock.advance(COMES_TO_REST_MS);
        await untilEqual(async () => (await stores.snapshots.orphaned()).length, 2);
        await stores.calls.write(endedCall(callOf(orgId, clock.wallMs(), { call_id: ended.call_id })));
        expect(await stores.snapshots.orphaned()).toEqual([going]);
        expect((await stores.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 1, orgCalls: 1 });
        stores.snapshots.delete(going.call_id);
        clock.advance(COMES_TO_REST_MS);
        await untilEqual(() => stores.snapshots.orphaned(), []);
      });
    });
  });
}

/** Asks until the answer is as wanted: a write that nobody waits for is seen a little later. The test's own time limit ends it. */
async function untilEqual<T>(ask: () => Promise<T>, wanted: T): Promise<void> {
  while (JSON.stringify(await ask()) !== JSON.stringify(wanted)) await turn();
}
