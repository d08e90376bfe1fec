import { idOfMember } from '../../ports/listing.js';
import { decodeRecord, type RecordTypes, type RedisConnection } from './redis.js';
import { MAX_PAGE_BYTES, type ListQuery, type RecordPage } from '../../ports/stores.js';

// Pages of large records, by an index in which order is time.

/** In one round trip: as much as three of the largest records, so that calls get in between. */
const READ_AT_ONCE = 3;

export interface RecordIndex<K extends keyof RecordTypes> {
  readonly kind: K;
  /** Sorted set, all scores 0: `<15 digits>:<id>`. */
  readonly indexKey: string;
  readonly keyOf: (id: string) => string;
}

/** Oldest first. A page ends early when it has `MAX_PAGE_BYTES`; without a limit it has everything. */
export async function readRecordPage<K extends keyof RecordTypes>(
  redis: RedisConnection,
  { kind, indexKey, keyOf }: RecordIndex<K>,
  { limit, before }: ListQuery,
): Promise<RecordPage<RecordTypes[K]>> {
  const records: RecordTypes[K][] = [];
  let bytes = 0;
  for (let last = before ?? null; ;) {
    const from = last === null ? '-' : `(${last}`;
    const count = limit === undefined ? READ_AT_ONCE : Math.min(READ_AT_ONCE, limit - records.length);
    // One more tells whether there is a next page.
    const members = await redis.run((client) => client.zrange(indexKey, from, '+', 'BYLEX', 'LIMIT', 0, count + 1));
    const page = members.slice(0, count);
    for (const text of await redis.getMany(page.map((member) => keyOf(idOfMember(member))))) {
      const record = decodeRecord(kind, text);
      if (record !== null) records.push(record);
      bytes += text?.length ?? 0;
    }
    last = page.at(-1) ?? last;
    if (members.length <= count) return { records, next: null };
    if (limit !== undefined && (records.length >= limit || bytes >= MAX_PAGE_BYTES)) return { records, next: last };
  }
}
