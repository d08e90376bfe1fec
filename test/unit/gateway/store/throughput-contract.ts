import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newUuid } from '../../../../src/lib/ids.js';
import type { Stores } from '../../../../src/gateway/ports/stores.js';
import { begun } from '../../../support/begun-call.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';
import { callOf, endedCall, freshNumber, inboundSetting, type OpenedStores } from './store-contract.js';

/** What every implementation of `Stores` must do for the throughput. */
export function describeThroughput(name: string, open: () => OpenedStores): void {
  describe(`${name}: throughput`, () => {
    let stores: Stores;
    let clock: VirtualClock;
    let advance: OpenedStores['advance'];
    let orgId: string;
    beforeAll(() => {
      ({ stores, clock, advance } = open());
    });
    beforeEach(async () => {
      orgId = (await stores.orgs.create({ name: 'counted', sip_enabled: true })).org_id;
      clock.advance(10_000 - (clock.wallMs() % 10_000));
    });

    /** Gateways tell once a second. */
    async function latest(): Promise<readonly object[]> {
      await clock.advanceAsync(1_000);
      return (await stores.throughput.read(orgId)).intervals
        .slice(-1)
        .map(({ begun: b, ended, refused }) => ({ begun: b, ended, refused }));
    }

    it('counts calls as they begin, without dry runs and unknown numbers, and shows those in progress', async () => {
      const number = freshNumber();
      await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
      await stores.routes.lookup(number, begun(newUuid()));
      await stores.routes.lookup(number, begun(newUuid()));
      await stores.routes.lookup(number, null);
      await stores.routes.lookup(freshNumber(), begun(newUuid()));
      expect(await latest()).toEqual([{ begun: 2, ended: 0, refused: 0 }]);
      expect((await stores.throughput.read(orgId)).inProgress).toBe(2);
    });

    it('counts calls as their records are written: answered ones as ended, others as refused', async () => {
      const nowMs = clock.wallMs();
      await stores.calls.write(endedCall(callOf(orgId, nowMs)));
      await stores.calls.write(endedCall(callOf(orgId, nowMs, { answered_at: null, sip_status: 403 })));
      await stores.calls.write(endedCall(callOf(null, nowMs)));
      expect(await latest()).toEqual([{ begun: 0, ended: 1, refused: 1 }]);
    });

    it('has 90 intervals of 10 s, without a gap, and drops earlier ones', async () => {
      await stores.calls.write(endedCall(callOf(orgId, clock.wallMs())));
      await latest();
      const { intervals } = await stores.throughput.read(orgId);
      const times = intervals.map(({ at }) => Date.parse(at));
      expect(times).toHaveLength(90);
      expect(times.slice(1).every((at, index) => at - (times[index] ?? 0) === 10_000)).toBe(true);
      await advance(900_000);
      expect((await stores.throughput.read(orgId)).intervals.filter(({ ended }) => ended > 0)).toEqual([]);
    });
  });
}
