import { batchEventProblem, type BatchEvent, type BatchLogEntry, type BatchRecord } from '../../../model/batch-log.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { newUuid } from '../../../../lib/ids.js';
import { err, ok, type Result } from '../../../../lib/result.js';

// What batches and their logs hold, apart from where they are kept.

const DAY_MS = 86_400_000;

export function newBatch({ orgId, name }: { readonly orgId: string; readonly name: string }, clock: Clock): BatchRecord {
  return { batch_id: newUuid(), org_id: orgId, name, created_at: isoNow(clock) };
}

/** When the oldest batch was made that is still kept. */
export function oldestKeptMs(nowMs: number, days: number): number {
  return nowMs - days * DAY_MS;
}

export function newBatchEntry(batch: BatchRecord, event: BatchEvent, clock: Clock): Result<BatchLogEntry, { readonly message: string }> {
  const problem = batchEventProblem(event);
  if (problem !== null) return err({ message: problem });
  const { event_type, payload, timestamp } = event;
  const at = timestamp === undefined ? isoNow(clock) : new Date(timestamp).toISOString();
  return ok({ id: newUuid(), batch_id: batch.batch_id, org_id: batch.org_id, event_type, timestamp: at, payload });
}
