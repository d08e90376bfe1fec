import type { BatchEvent, BatchLogEntry, BatchRecord } from '../../../model/batch-log.js';
import type { Clock } from '../../../../lib/clock.js';
import { newBatch, newBatchEntry, oldestKeptMs } from './batch-entry.js';
import { batchKey, batchLogKey, orgBatchesKey } from '../keys.js';
import { decodeRecord, RedisScript, type RedisConnection } from '../redis.js';
import { isOf, type BatchLog, type BatchRetention, type LogPage, type NewBatch, type Page, type Scope } from '../../../ports/stores.js';

const APPEND = new RedisScript('batches/append-entry');
/** Entries of a log that are read in one round trip. */
const READ_AT_ONCE = 200;
const DAY_S = 86_400;

/** One stream a batch. */
export class RedisBatchLog implements BatchLog {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
    private readonly retention: BatchRetention,
  ) {}

  async create(batch: NewBatch): Promise<BatchRecord> {
    const record = newBatch(batch, this.clock);
    const index = orgBatchesKey(record.org_id);
    const seconds = this.retention.days * DAY_S;
    // The list first: an id in it without a record is skipped.
    await this.redis.run((client) => client.zadd(index, Date.parse(record.created_at), record.batch_id));
    await this.redis.run((client) => client.zremrangebyscore(index, '-inf', `(${String(this.#oldestMs())}`));
    await this.redis.run((client) => client.expire(index, seconds));
    await this.redis.run((client) => client.set(batchKey(record.batch_id), JSON.stringify(record), 'EX', seconds));
    return record;
  }

  async get(scope: Scope, batchId: string): Promise<BatchRecord | null> {
    const batch = await this.#find(batchId);
    return isOf(scope, batch) ? batch : null;
  }

  async append(orgId: string, batchId: string, event: BatchEvent): Promise<BatchLogEntry | null> {
    const batch = await this.#find(batchId);
    if (!isOf(orgId, batch)) return null;
    const entry = newBatchEntry(batch, event, this.clock);
    const args = [JSON.stringify(entry), String(this.retention.maxEntries)];
    const isWritten = await this.redis.script(APPEND, [batchKey(batchId), batchLogKey(batchId)], args);
    return isWritten === 1 ? entry : null;
  }

  async read(scope: Scope, batchId: string, { take, skip, direction }: LogPage): Promise<readonly BatchLogEntry[] | null> {
    if (!isOf(scope, await this.#find(batchId))) return null;
    const entries: BatchLogEntry[] = [];
    let passed = 0;
    for (let last: string | null = null; entries.length < take;) {
      const found = await this.#readAfter(batchLogKey(batchId), direction, last);
      for (const [, [, text = '']] of found) {
        if (passed >= skip && entries.length < take) entries.push(JSON.parse(text) as BatchLogEntry);
        passed += 1;
      }
      last = found.at(-1)?.[0] ?? null;
      if (last === null || found.length < READ_AT_ONCE) break;
    }
    return entries;
  }

  /** A stretch of a log: what is skipped is walked over in steps, so that Redis serves others between two. */
  #readAfter(key: string, direction: LogPage['direction'], last: string | null): Promise<[id: string, fields: string[]][]> {
    const after = last === null ? null : `(${last}`;
    return this.redis.run((client) =>
      direction === 'asc'
        ? client.xrange(key, after ?? '-', '+', 'COUNT', READ_AT_ONCE)
        : client.xrevrange(key, after ?? '+', '-', 'COUNT', READ_AT_ONCE),
    );
  }

  async list(orgId: string, { take, skip }: Page): Promise<readonly BatchRecord[]> {
    const oldest = String(this.#oldestMs());
    const ids = await this.redis.run((client) =>
      client.zrange(orgBatchesKey(orgId), '+inf', oldest, 'BYSCORE', 'REV', 'LIMIT', skip, take),
    );
    const texts = await this.redis.getMany(ids.map(batchKey));
    return texts.flatMap((text) => this.#kept(decodeRecord('batch', text)) ?? []);
  }

  async #find(batchId: string): Promise<BatchRecord | null> {
    return this.#kept(decodeRecord('batch', await this.redis.run((client) => client.get(batchKey(batchId)))));
  }

  #kept(batch: BatchRecord | null): BatchRecord | null {
    return batch !== null && Date.parse(batch.created_at) >= this.#oldestMs() ? batch : null;
  }

  #oldestMs(): number {
    return oldestKeptMs(this.clock.wallMs(), this.retention.days);
  }
}
