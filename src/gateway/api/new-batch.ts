import { completeEvent, lifecycleEvent, type BatchCounts, type BatchNumber, type BatchPlan, type BatchState } from '../model/batch.js';
import type { BatchEvent } from '../model/batch-log.js';
import type { BatchRuns } from '../ports/batches.js';
import type { BatchLog } from '../ports/stores.js';
import type { Clock } from '../../lib/clock.js';
import { numberOf, type GivenNumber, type InvalidNumber } from './batch-numbers.js';

interface NewBatch {
  readonly orgId: string;
  readonly batchId: string;
  readonly name: string;
  readonly plan: BatchPlan;
  /** A few hundred at a time, and how many there are. */
  readonly given: Iterable<readonly GivenNumber[]>;
  readonly count: number;
  /** Its request still has its idempotency key. */
  readonly keep: () => Promise<boolean>;
}

/** How many times as long as writing some numbers took the next ones wait, so that calls have thread and Redis for most of the time. */
const REST = 3;
const NAMED_AT_ONCE = 100;
/** Invalid numbers that the log names; it counts the others. */
const MOST_NAMED = 2_000;

/** Makes a batch, writes its numbers and lets it dial. Killed before the end, it stays in `validating`, and nothing is dialled. */
export async function makeBatch(
  stores: { readonly batches: BatchLog; readonly batchRuns: BatchRuns },
  batch: NewBatch,
  clock: Pick<Clock, 'nowMs' | 'setTimer'>,
): Promise<void> {
  const { batches, batchRuns } = stores;
  const { orgId, batchId, name, plan, given, count, keep } = batch;
  let counts = { ...NOTHING, requested: count };
  const entry = (to: BatchState, why = ''): BatchEvent => lifecycleEvent({ counts, plan }, to, why);
  await batches.create({ orgId, name, batchId });
  await batches.append(orgId, batchId, entry('created'));
  await batches.append(orgId, batchId, entry('validating'));
  await batchRuns.begin(orgId, batchId, plan, count);
  const seen = new Set<string>();
  const invalid: InvalidNumber[] = [];
  let from = 0;
  for (const some of given) {
    const startedMs = clock.nowMs();
    const numbers: BatchNumber[] = [];
    for (const one of some) {
      const read = numberOf(one);
      if (!read.ok) invalid.push(read.error);
      else if (seen.has(read.value.number)) invalid.push({ row: one.row, phone_number: read.value.number, error: 'is there already' });
      else {
        seen.add(read.value.number);
        numbers.push(read.value);
      }
    }
    await batchRuns.add(batchId, numbers, from);
    from += some.length;
    const restMs = REST * (clock.nowMs() - startedMs);
    if (restMs > 0) await new Promise<void>((rested) => void clock.setTimer(restMs, rested));
  }
  counts = { ...counts, validated: seen.size, waiting: seen.size };
  const named = invalid.slice(0, MOST_NAMED);
  for (let at = 0; at < named.length; at += NAMED_AT_ONCE) {
    const payload = { numbers: named.slice(at, at + NAMED_AT_ONCE), invalid_total: invalid.length };
    await batches.append(orgId, batchId, { event_type: 'invalid', payload });
  }
  const isOurs = await keep();
  if (isOurs && seen.size > 0) {
    await batchRuns.move(batchId, { to: 'in_progress', from: ['validating'], events: [entry('in_progress')] });
    return;
  }
  const failed = entry('failed', isOurs ? '' : 'its idempotency-key has expired meanwhile');
  await batchRuns.move(batchId, { to: 'failed', from: ['validating'], isEnd: true, events: [failed, completeEvent(counts)] });
}

const NOTHING: BatchCounts = {
  requested: 0,
  validated: 0,
  waiting: 0,
  dialling: 0,
  dispatched: 0,
  successful: 0,
  failed: 0,
  ambiguous: 0,
  answered_today: 0,
  abandoned_today: 0,
};
