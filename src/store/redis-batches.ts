import type { BatchEvent, BatchLogEntry, BatchRecord } from '../contracts/batch-log.js';
import type { Clock } from '../lib/clock.js';
import { err, ok, type Result } from '../lib/result.js';
import { newBatch, newBatchEntry, oldestKeptMs } from './batch-entry.js';
import { batchKey, batchLogKey, orgBatchesKey } from './keys.js';
import { decodeRecord, RedisScript, type RedisConnection } from './redis.js';
import type { BatchLog, BatchRetention, LogPage, Page } from './stores.js';

const APPEND = new RedisScript('append-batch-entry');
const READ = new RedisScript('read-batch-log');
const DAY_S = 86_400;

/** One stream a batch. */
export class RedisBatchLog implements BatchLog {
  readonly #redis: RedisConnection;
  readonly #clock: Clock;
  readonly #retention: BatchRetention;

  constructor(redis: RedisConnection, clock: Clock, retention: BatchRetention) {
    this.#redis = redis;
    this.#clock = clock;
    this.#retention = retention;
  }

  async create(batch: { readonly orgId: string; readonly name: string }): Promise<BatchRecord> {
    const record = newBatch(batch, this.#clock);
    const index = orgBatchesKey(record.org_id);
    const seconds = this.#retention.days * DAY_S;
    // The list first: an id in it without a record is skipped.
    await this.#redis.run((client) => client.zadd(index, Date.parse(record.created_at), record.batch_id));
    await this.#redis.run((client) => client.zremrangebyscore(index, '-inf', `(${String(this.#oldestMs())}`));
    await this.#redis.run((client) => client.expire(index, seconds));
    await this.#redis.run((client) => client.set(batchKey(record.batch_id), JSON.stringify(record), 'EX', seconds));
    return record;
  }

  async append(batchId: string, event: BatchEvent): Promise<Result<BatchLogEntry, 'not-found' | { readonly message: string }>> {
    const batch = await this.#find(batchId);
    if (batch === null) return err('not-found');
    const entry = newBatchEntry(batch, event, this.#clock);
    if (!entry.ok) return entry;
    const args = [JSON.stringify(entry.value), String(this.#retention.maxEntries)];
    const isWritten = await this.#redis.script(APPEND, [batchKey(batchId), batchLogKey(batchId)], args);
    return isWritten === 1 ? ok(entry.value) : err('not-found');
  }

  async read(orgId: string, batchId: string, { take, skip, direction }: LogPage): Promise<readonly BatchLogEntry[] | null> {
    if ((await this.#find(batchId))?.org_id !== orgId) return null;
    const texts = await this.#redis.script(READ, [batchLogKey(batchId)], [direction, String(skip), String(take)]);
    if (!Array.isArray(texts)) throw new Error('read-batch-log.lua answered no array');
    return texts.map((text) => JSON.parse(String(text)) as BatchLogEntry);
  }

  async list(orgId: string, { take, skip }: Page): Promise<readonly BatchRecord[]> {
    const oldest = String(this.#oldestMs());
    const ids = await this.#redis.run((client) =>
      client.zrange(orgBatchesKey(orgId), '+inf', oldest, 'BYSCORE', 'REV', 'LIMIT', skip, take),
    );
    const found = await Promise.all(ids.map((id) => this.#find(id)));
    return found.filter((batch) => batch !== null);
  }

  async #find(batchId: string): Promise<BatchRecord | null> {
    const batch = decodeRecord('batch', await this.#redis.run((client) => client.get(batchKey(batchId))));
    return batch !== null && Date.parse(batch.created_at) >= this.#oldestMs() ? batch : null;
  }

  #oldestMs(): number {
    return oldestKeptMs(this.#clock.wallMs(), this.#retention.days);
  }
}
