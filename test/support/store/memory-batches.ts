import type { BatchEvent, BatchLogEntry, BatchRecord } from '../../../src/gateway/model/batch-log.js';
import type { Clock } from '../../../src/lib/clock.js';
import { newBatch, newBatchEntry, oldestKeptMs } from '../../../src/gateway/store/redis/batches/batch-entry.js';
import {
  isOf,
  type BatchLog,
  type BatchRetention,
  type LogPage,
  type NewBatch,
  type Page,
  type Scope,
} from '../../../src/gateway/ports/stores.js';

interface Batch {
  readonly record: BatchRecord;
  /** Oldest first. */
  entries: readonly BatchLogEntry[];
}

export class MemoryBatchLog implements BatchLog {
  readonly #batches = new Map<string, Batch>();
  readonly #clock: Clock;
  readonly #retention: BatchRetention;

  constructor(clock: Clock, retention: BatchRetention) {
    this.#clock = clock;
    this.#retention = retention;
  }

  create(batch: NewBatch): Promise<BatchRecord> {
    const record = newBatch(batch, this.#clock);
    this.#batches.set(record.batch_id, { record, entries: [] });
    return Promise.resolve(record);
  }

  get(scope: Scope, batchId: string): Promise<BatchRecord | null> {
    const batch = this.#find(batchId)?.record ?? null;
    return Promise.resolve(isOf(scope, batch) ? batch : null);
  }

  append(orgId: string, batchId: string, event: BatchEvent): Promise<BatchLogEntry | null> {
    const batch = this.#find(batchId);
    if (batch === undefined || !isOf(orgId, batch.record)) return Promise.resolve(null);
    const entry = newBatchEntry(batch.record, event, this.#clock);
    batch.entries = [...batch.entries, entry].slice(-this.#retention.maxEntries);
    return Promise.resolve(entry);
  }

  read(scope: Scope, batchId: string, { take, skip, direction }: LogPage): Promise<readonly BatchLogEntry[] | null> {
    const batch = this.#find(batchId);
    if (batch === undefined || !isOf(scope, batch.record)) return Promise.resolve(null);
    const ordered = direction === 'asc' ? batch.entries : [...batch.entries].reverse();
    return Promise.resolve(ordered.slice(skip, skip + take));
  }

  list(orgId: string, { take, skip }: Page): Promise<readonly BatchRecord[]> {
    const kept = [...this.#batches.keys()].flatMap((id) => this.#find(id)?.record ?? []);
    const newest = kept.filter((batch) => batch.org_id === orgId).sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
    return Promise.resolve(newest.slice(skip, skip + take));
  }

  #find(batchId: string): Batch | undefined {
    const batch = this.#batches.get(batchId);
    const oldestMs = oldestKeptMs(this.#clock.wallMs(), this.#retention.days);
    return batch !== undefined && Date.parse(batch.record.created_at) >= oldestMs ? batch : undefined;
  }
}
