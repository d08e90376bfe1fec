import type { BatchEvent, BatchLogEntry, BatchRecord } from '../../../model/batch-log.js';
import type { NewBatch } from '../../../ports/stores.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { newUuid } from '../../../../lib/ids.js';

// What batches and their logs hold, apart from where they are kept.

const DAY_MS = 86_400_000;

export function newBatch({ orgId, name, batchId }: NewBatch, clock: Clock): BatchRecord {
  return { batch_id: batchId ?? newUuid(), org_id: orgId, name, created_at: isoNow(clock) };
}

/** When the oldest batch was made that is still kept. */
export function oldestKeptMs(nowMs: number, days: number): number {
  return nowMs - days * DAY_MS;
}

export function newBatchEntry(batch: BatchRecord, { event_type, payload, timestamp }: BatchEvent, clock: Clock): BatchLogEntry {
  const at = timestamp === undefined ? isoNow(clock) : new Date(timestamp).toISOString();
  return { id: newUuid(), batch_id: batch.batch_id, org_id: batch.org_id, event_type, timestamp: at, payload };
}
