import { completeEvent, lifecycleEvent, type BatchCounts, type BatchPlan, type BatchState } from '../model/batch.js';
import type { BatchEvent } from '../model/batch-log.js';
import { MOST_NAMED_ROWS, type RefusedRow } from '../model/batch-preview.js';
import type { BatchRuns } from '../ports/batches.js';
import type { BatchLog } from '../ports/stores.js';
import type { Clock } from '../../lib/clock.js';
import type { GivenNumber } from './batch-numbers.js';
import { RowJudge, type BatchTerms } from './batch-preview.js';

interface NewBatch {
  readonly orgId: string;
  readonly batchId: string;
  readonly name: string;
  readonly plan: BatchPlan;
  readonly terms: Omit<BatchTerms, 'orgId' | 'plan' | 'nowMs'>;
  /** A few hundred at a time, and how many there are. */
  readonly given: Iterable<readonly GivenNumber[]>;
  readonly count: number;
  /** Rows that could not be read. */
  readonly unreadable: readonly RefusedRow[];
  /** It dials at once, if no row is refused; else when somebody starts it. */
  readonly start: boolean;
  /** Its request still has its idempotency key. */
  readonly keep: () => Promise<boolean>;
}

/** How many times as long as writing some numbers took the next ones wait, so that calls have thread and Redis for most of the time. */
const REST = 3;
const NAMED_AT_ONCE = 100;

/**
 * Makes a batch and writes its numbers: it is ready. Killed before the end, it stays in `validating`, and nothing is dialled.
 * Resolves with the first of its refused rows.
 */
export async function makeBatch(
  stores: { readonly batches: BatchLog; readonly batchRuns: BatchRuns },
  batch: NewBatch,
  clock: Pick<Clock, 'nowMs' | 'wallMs' | 'setTimer'>,
): Promise<readonly RefusedRow[]> {
  const { batches, batchRuns } = stores;
  const { orgId, batchId, name, plan, terms, given, unreadable, keep } = batch;
  const count = batch.count + unreadable.length;
  let counts = { ...NOTHING, requested: count };
  const entry = (to: BatchState, why = ''): BatchEvent => lifecycleEvent({ counts, plan }, to, why);
  await batches.create({ orgId, name, batchId });
  await batches.append(orgId, batchId, entry('created'));
  await batches.append(orgId, batchId, entry('validating'));
  await batchRuns.begin(orgId, batchId, plan, count);
  const judge = new RowJudge({ ...terms, orgId, plan, nowMs: clock.wallMs() });
  for (const row of unreadable) judge.refuse(row);
  let [from, validated] = [0, 0];
  for (const some of given) {
    const startedMs = clock.nowMs();
    const numbers = await judge.judge(some);
    await batchRuns.add(batchId, numbers, from);
    from += some.length;
    validated += numbers.length;
    const restMs = REST * (clock.nowMs() - startedMs);
    if (restMs > 0) await new Promise<void>((rested) => void clock.setTimer(restMs, rested));
  }
  counts = { ...counts, validated, waiting: validated };
  const { preview, refused } = judge;
  for (let at = 0; at < refused.length; at += NAMED_AT_ONCE) {
    const payload = { rows: refused.slice(at, at + NAMED_AT_ONCE), refused_total: preview.refused };
    await batches.append(orgId, batchId, { event_type: ROWS_REFUSED, payload });
  }
  await batchRuns.show(batchId, preview);
  const isOurs = await keep();
  if (isOurs && validated > 0) {
    const ready = [entry('ready')];
    if (batch.start && preview.refused === 0)
      await batchRuns.move(batchId, { to: 'in_progress', from: ['validating'], events: [...ready, entry('in_progress')] });
    else await batchRuns.move(batchId, { to: 'ready', from: ['validating'], events: ready });
    return refused;
  }
  const failed = entry('failed', isOurs ? 'no row is left to dial' : 'its idempotency-key has expired meanwhile');
  await batchRuns.move(batchId, { to: 'failed', from: ['validating'], isEnd: true, events: [failed, completeEvent(counts)] });
  return refused;
}

/** The type of the log's entries that name refused rows. */
const ROWS_REFUSED = 'rows_refused';
/** Those entries stand at the beginning of the log. */
const FIRST_ENTRIES = 2 + MOST_NAMED_ROWS / NAMED_AT_ONCE;

/** The refused rows of a batch that was made before, as far as its log still names them. */
export async function refusedRows(batches: Pick<BatchLog, 'read'>, orgId: string, batchId: string): Promise<readonly RefusedRow[]> {
  const entries = (await batches.read(orgId, batchId, { take: FIRST_ENTRIES, skip: 0, direction: 'asc' })) ?? [];
  return entries.filter(({ event_type: type }) => type === ROWS_REFUSED).flatMap(({ payload }) => payload['rows'] as readonly RefusedRow[]);
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
