import { expect, it } from 'vitest';
import { makeBatch } from '../../../../src/gateway/api/new-batch.js';
import type { BatchPlan } from '../../../../src/gateway/model/batch.js';
import { DEFAULT_CALLING_HOURS } from '../../../../src/gateway/model/calling-hours.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { untilSo } from '../../../support/turn.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

it('the API writes numbers in pieces, and rests three times as long after each, so that calls have thread and Redis', async () => {
  const clock = new VirtualClock();
  const writtenMs: number[] = [];
  const add = (): Promise<number> => {
    writtenMs.push(clock.nowMs());
    clock.advance(10);
    return Promise.resolve(1);
  };
  const done = () => Promise.resolve(true);
  const stores = { batches: { create: done, append: done }, batchRuns: { begin: done, add, show: done, move: done } };
  const piece = (row: number) => [{ row, phone_number: `+4930${String(1_000_000 + row)}` }];
  const batch = {
    orgId: newUuid(),
    batchId: newUuid(),
    name: 'Three',
    plan: { hours: DEFAULT_CALLING_HOURS } as BatchPlan,
    given: [0, 1, 2].map(piece),
    count: 3,
    unreadable: [],
    start: true,
  };
  const doNotCall = { find: () => Promise.resolve(new Set<never>()) };
  const terms = { doNotCall, priceOf: () => ({ ok: true, value: 0 }) as const, minutes: 1 };
  const made = makeBatch(stores as never, { ...batch, terms, keep: done }, clock);
  const startMs = clock.nowMs();
  for (const pieces of [1, 2, 3]) {
    await untilSo(() => writtenMs.length === pieces && clock.pendingTimers > 0);
    clock.advance(30);
  }
  await made;
  expect(writtenMs.map((ms) => ms - startMs)).toEqual([0, 40, 80]);
});
