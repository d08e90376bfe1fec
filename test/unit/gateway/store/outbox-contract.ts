import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AddressedDelivery, Delivery } from '../../../../src/gateway/model/delivery.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { MAX_DEAD_LETTERS, outboxLane, type Outbox } from '../../../../src/gateway/ports/stores.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';
import type { OpenedStores } from './store-contract.js';

/** A webhook that was never tried. */
export function deliveryOf(orgId: string, fields: Partial<AddressedDelivery> = {}): AddressedDelivery {
  return {
    delivery_id: newUuid(),
    org_id: orgId,
    url: 'https://example.com/hook',
    body: '{"call_id":"1"}',
    created_at: '2026-01-01T00:00:00.000Z',
    attempts: 0,
    last_error: null,
    ...fields,
  };
}

const LONG_MS = 60_000;

/** What every implementation of `Outbox` must do. */
export function describeOutbox(name: string, open: () => OpenedStores): void {
  describe(`${name}: outbox`, () => {
    let outbox: Outbox;
    let clock: VirtualClock;
    let advance: OpenedStores['advance'];
    let orgId: string;
    beforeAll(() => {
      const opened = open();
      ({ outbox } = opened.stores);
      ({ clock, advance } = opened);
    });
    beforeEach(() => {
      orgId = newUuid();
    });

    /** Takes what is due of the organization; claimed for no time, so that a second look sees it again. */
    const due = async (claimMs = 0, limit = 100): Promise<readonly Delivery[]> =>
      (await outbox.claim(outboxLane(orgId), limit, claimMs)).filter(({ org_id }) => org_id === orgId);

    it('returns each delivery as long as it is neither settled nor claimed', async () => {
      const [one, two] = [deliveryOf(orgId), deliveryOf(orgId)];
      await outbox.add(one);
      await outbox.add(two);
      expect(new Set(await due())).toEqual(new Set([one, two]));
      expect(await due(LONG_MS)).toHaveLength(2);
      expect(await due()).toEqual([]);
      await advance(LONG_MS);
      expect(new Set(await due())).toEqual(new Set([one, two]));
    });

    it('names the lane of each that is due: new, deferred until now, or claimed by a gateway that died', async () => {
      const delivery = deliveryOf(orgId);
      const isNamed = async (): Promise<boolean> => (await outbox.dueLanes()).includes(outboxLane(orgId));
      await outbox.add(delivery);
      expect(await isNamed()).toBe(true);
      expect(await due(LONG_MS)).toEqual([delivery]);
      await advance(LONG_MS);
      expect(await isNamed()).toBe(true);
      expect(await due(LONG_MS)).toEqual([delivery]);
      await outbox.defer(delivery, 0);
      expect(await isNamed()).toBe(true);
      await outbox.settle(delivery);
    });

    it('returns no more than the requested number', async () => {
      for (let count = 0; count < 5; count += 1) await outbox.add(deliveryOf(orgId));
      expect(await due(LONG_MS, 3)).toHaveLength(3);
      expect(await due(LONG_MS, 3)).toHaveLength(2);
    });

    it('has a delivery that is added twice once, with what was learned in between', async () => {
      const delivery = deliveryOf(orgId);
      await outbox.add(delivery);
      await outbox.defer({ ...delivery, attempts: 1 }, 0);
      await outbox.add(delivery);
      expect(await due()).toEqual([{ ...delivery, attempts: 1 }]);
    });

    it('drops one that was settled, even when it is deferred after that', async () => {
      const delivery = deliveryOf(orgId);
      await outbox.add(delivery);
      await outbox.settle(delivery);
      await outbox.defer(delivery, 0);
      expect(await due()).toEqual([]);
    });

    it('counts the waiting ones, claimed and deferred ones too', async () => {
      const before = await outbox.waiting();
      const [one, two] = [deliveryOf(orgId), deliveryOf(orgId)];
      await outbox.add(one);
      await outbox.add(two);
      await outbox.defer(two, LONG_MS);
      expect(await outbox.waiting()).toBe(before + 2);
      await outbox.settle(one);
      await outbox.settle(two);
      expect(await outbox.waiting()).toBe(before);
    });

    it('holds one back that is deferred', async () => {
      const delivery = deliveryOf(orgId);
      await outbox.add(delivery);
      await outbox.defer(delivery, LONG_MS);
      expect(await due()).toEqual([]);
      await advance(LONG_MS);
      expect(await due()).toEqual([delivery]);
      await outbox.defer(delivery, LONG_MS);
      await outbox.defer({ ...delivery, last_error: 'it answered 500' }, 0);
      expect(await due()).toEqual([{ ...delivery, last_error: 'it answered 500' }]);
    });

    it('lists what was given up, newest first and in pages, to its organization only', async () => {
      const letters: Delivery[] = [];
      for (let count = 0; count < 5; count += 1) {
        clock.advance(10);
        const delivery = deliveryOf(orgId, { attempts: count });
        await outbox.add(delivery);
        await outbox.bury(delivery);
        letters.unshift(delivery);
      }
      expect(await due()).toEqual([]);
      const first = await outbox.dead(orgId, 3, null);
      expect(first.letters).toMatchObject(letters.slice(0, 3));
      expect(Date.parse(first.letters[0]!.died_at)).toBe(clock.wallMs());
      const second = await outbox.dead(orgId, 3, first.next);
      expect(second.letters).toMatchObject(letters.slice(3));
      expect(second.next).toBeNull();
      expect(await outbox.dead(newUuid(), 3, null)).toEqual({ letters: [], next: null });
    });

    it('sends one again that was given up as if it were new, once', async () => {
      const delivery = deliveryOf(orgId, { attempts: 9, last_error: 'it answered 500' });
      await outbox.add(delivery);
      await outbox.bury(delivery);
      expect(await outbox.revive(newUuid(), delivery.delivery_id)).toBe(false);
      expect(await outbox.revive(orgId, delivery.delivery_id)).toBe(true);
      const created_at = new Date(clock.wallMs()).toISOString();
      expect(await due()).toEqual([{ ...delivery, created_at, attempts: 0, last_error: null }]);
      expect(await outbox.revive(orgId, delivery.delivery_id)).toBe(false);
      expect((await outbox.dead(orgId, 3, null)).letters).toEqual([]);
    });

    it('keeps the newest that were given up', async () => {
      for (let count = 0; count <= MAX_DEAD_LETTERS; count += 1) {
        clock.advance(1);
        await outbox.bury(deliveryOf(orgId, { attempts: count }));
      }
      const { letters } = await outbox.dead(orgId, MAX_DEAD_LETTERS + 10, null);
      expect(letters).toHaveLength(MAX_DEAD_LETTERS);
      expect(letters.at(-1)!.attempts).toBe(1);
    });
  });
}
