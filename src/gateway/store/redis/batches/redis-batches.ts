import type { BatchEvent, BatchLogEntry, BatchRecord } from '../../../model/batch-log.js';
import type { Clock } from '../../../../lib/clock.js';
import { newBatch, newBatchEntry, oldestKeptMs } from './batch-entry.js';
import { batchKey, batchLogKey, batchOutcomesKey, orgBatchesKey } from '../keys.js';
import { decodeRecord, RedisScript, type RedisConnection } from '../redis.js';
import { isOf, type BatchLog, type BatchRetention, type LogPage, type NewBatch, type Page, type Scope } from '../../../ports/stores.js';

const APPEND = new RedisScript('batches/append-entry');
/** Entries of a log that are read in one round trip. */
const READ_AT_ONCE = 200;
const DAY_S = 86_400;

interface StreamEntry {
  /** `<ms>-<sequence>` */
  readonly id: string;
  readonly text: string;
}

/** Two streams a batch, read as one. */
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
    const texts: string[] = [];
    let passed = 0;
    for await (const { text } of inOrder(
      this.#walk(batchLogKey(batchId), direction),
      this.#walk(batchOutcomesKey(batchId), direction),
      direction,
    )) {
      if (passed >= skip) texts.push(text);
      passed += 1;
      if (texts.length === take) break;
    }
    return texts.map((text) => JSON.parse(text) as BatchLogEntry);
  }

  /** In stretches: what is skipped is walked over in steps, so that Redis serves others between two. */
  async *#walk(key: string, direction: LogPage['direction']): AsyncGenerator<StreamEntry> {
    for (let last: string | null = null; ;) {
      const after = last === null ? null : `(${last}`;
      const found: [id: string, fields: string[]][] = await this.redis.run((client) =>
        direction === 'asc'
          ? client.xrange(key, after ?? '-', '+', 'COUNT', READ_AT_ONCE)
          : client.xrevrange(key, after ?? '+', '-', 'COUNT', READ_AT_ONCE),
      );
      for (const [id, [, text = '']] of found) yield { id, text };
      last = found.at(-1)?.[0] ?? null;
      if (last === null || found.length < READ_AT_ONCE) return;
    }
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

/** Both streams as one, by their ids. */
async function* inOrder(
  one: AsyncGenerator<StreamEntry>,
  other: AsyncGenerator<StreamEntry>,
  direction: LogPage['direction'],
): AsyncGenerator<StreamEntry> {
  let [first, second] = await Promise.all([one.next(), other.next()]);
  while (first.done !== true || second.done !== true) {
    const isFirst = second.done === true || (first.done !== true && isBefore(first.value.id, second.value.id) === (direction === 'asc'));
    const next = isFirst ? first : second;
    if (next.done !== true) yield next.value;
    if (isFirst) first = await one.next();
    else second = await other.next();
  }
}

function isBefore(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number);
  return ms < otherMs || (ms === otherMs && sequence < otherSequence);
}
