import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { BatchRecord } from '../../../../src/gateway/model/batch-log.js';
import { newUuid } from '../../../../src/lib/ids.js';
import type { BatchRetention, Stores } from '../../../../src/gateway/ports/stores.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';
import type { OpenedStores } from './store-contract.js';

const HOUR_MS = 3_600_000;

/** Retention under which the suite's stores run. */
export const TEST_BATCH_RETENTION: BatchRetention = { days: 3, maxEntries: 10 };

/** What every implementation of `BatchLog` and `AuditLog` must do, under `TEST_BATCH_RETENTION`. */
export function describeLogs(name: string, open: () => OpenedStores): void {
  describe(`batches: ${name}`, () => {
    let stores: Stores;
    let clock: VirtualClock;
    let advance: OpenedStores['advance'];
    let orgId: string;
    let batch: BatchRecord;
    beforeAll(() => {
      ({ stores, clock, advance } = open());
    });
    beforeEach(async () => {
      orgId = newUuid();
      batch = await stores.batches.create({ orgId, name: 'Reminders' });
    });
    const append = (step: number) => stores.batches.append(orgId, batch.batch_id, { event_type: 'step', payload: { step } });
    const steps = async (take: number, skip: number, direction: 'asc' | 'desc') =>
      (await stores.batches.read(orgId, batch.batch_id, { take, skip, direction }))?.map(({ payload }) => payload['step']);

    it('have log entries with organization, time and event', async () => {
      const payload = { message: '100 requested, 98 validated', state_change: 'in_progress' };
      const entry = await stores.batches.append(orgId, batch.batch_id, { event_type: 'lifecycle', payload });
      const now = new Date(clock.wallMs()).toISOString();
      const written = {
        id: expect.any(String) as string,
        batch_id: batch.batch_id,
        org_id: orgId,
        event_type: 'lifecycle',
        timestamp: now,
        payload,
      };
      expect(entry).toEqual(written);
      const timestamp = '2026-01-02T03:04:05.000Z';
      const complete = { calls_total: 3, calls_failed: 1, calls_successful: 2 };
      await stores.batches.append(orgId, batch.batch_id, { event_type: 'complete', payload: complete, timestamp });
      const read = await stores.batches.read(orgId, batch.batch_id, { take: 10, skip: 0, direction: 'desc' });
      expect(read?.[0]).toMatchObject({ event_type: 'complete', timestamp, payload: complete });
      expect(read?.[1]).toEqual(entry);
    });

    it('return log pages, in either direction', async () => {
      for (let step = 0; step < 5; step += 1) await append(step);
      expect(await steps(100, 0, 'asc')).toEqual([0, 1, 2, 3, 4]);
      expect(await steps(2, 0, 'desc')).toEqual([4, 3]);
      expect(await steps(2, 1, 'desc')).toEqual([3, 2]);
      expect(await steps(2, 4, 'asc')).toEqual([4]);
      expect(await steps(2, 5, 'asc')).toEqual([]);
      expect(await steps(2, 1_000_000, 'desc')).toEqual([]);
    });

    it('keep the newest log entries', async () => {
      for (let step = 0; step < 13; step += 1) await append(step);
      expect(await steps(100, 0, 'asc')).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    });

    it('are visible to their own organization only', async () => {
      const other = newUuid();
      expect(await stores.batches.read(other, batch.batch_id, { take: 1, skip: 0, direction: 'asc' })).toBeNull();
      expect(await stores.batches.read(orgId, newUuid(), { take: 1, skip: 0, direction: 'asc' })).toBeNull();
      expect(await stores.batches.append(orgId, newUuid(), { event_type: 'step', payload: {} })).toBeNull();
      expect(await stores.batches.append(other, batch.batch_id, { event_type: 'step', payload: {} })).toBeNull();
      expect(await steps(10, 0, 'asc')).toEqual([]);
      expect(await stores.batches.list(other, { take: 10, skip: 0 })).toEqual([]);
    });

    it('are listed newest first, and expire', async () => {
      await append(1);
      await advance(HOUR_MS);
      const newer = await stores.batches.create({ orgId, name: 'newer' });
      expect(await stores.batches.list(orgId, { take: 10, skip: 0 })).toEqual([newer, batch]);
      expect(await stores.batches.list(orgId, { take: 10, skip: 1 })).toEqual([batch]);
      await advance(TEST_BATCH_RETENTION.days * 86_400_000 - HOUR_MS / 2);
      expect(await stores.batches.list(orgId, { take: 10, skip: 0 })).toEqual([newer]);
      expect(await steps(10, 0, 'asc')).toBeUndefined();
      expect(await append(2)).toBeNull();
    });
  });

  describe(`audit log: ${name}`, () => {
    it('returns the newest entries first, page by page, to its own organization', async () => {
      const { stores, clock } = open();
      const orgId = newUuid();
      const by = { key_id: newUuid(), name: 'ci' };
      for (const action of ['agent.create', 'agent.update', 'agent.delete'])
        await stores.audit.append(orgId, { by, action, record: 'a-1', fields: ['prompt'] });
      const first = await stores.audit.list(orgId, { take: 2 });
      expect(first.map(({ action }) => action)).toEqual(['agent.delete', 'agent.update']);
      const at = new Date(clock.wallMs()).toISOString();
      expect(first[0]).toEqual({
        id: expect.stringMatching(/^\d+-\d+$/) as string,
        at,
        by,
        action: 'agent.delete',
        record: 'a-1',
        fields: ['prompt'],
      });
      const rest = await stores.audit.list(orgId, { take: 2, before: first[1]!.id });
      expect(rest.map(({ action }) => action)).toEqual(['agent.create']);
      expect(await stores.audit.list(orgId, { take: 2, before: rest[0]!.id })).toEqual([]);
      expect(await stores.audit.list(newUuid(), { take: 2 })).toEqual([]);
    });
  });
}
