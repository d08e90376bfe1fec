import { StoreUnavailableError } from '../../ports/ports.js';
import { err, ok, type Result } from '../../../lib/result.js';
import { decodeRecord, type RecordTypes, type RedisConnection } from './redis.js';

// Each lost race means that another writer won, so this many in a row on one record is no race any more.
const MAX_ATTEMPTS = 50;

/** What is to be there; `null`: nothing. */
export type RecordDecision<T, F> = (current: T | null) => Result<T | null, F>;

/** Writes what `decide` makes of the record, if nobody else wrote meanwhile; then it is asked again. */
export async function updateRecord<K extends keyof RecordTypes, F>(
  redis: RedisConnection,
  kind: K,
  key: string,
  decide: RecordDecision<RecordTypes[K], F>,
): Promise<Result<RecordTypes[K] | null, F>> {
  let raw = await redis.run((client) => client.get(key));
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const decided = decide(decodeRecord(kind, raw));
    if (!decided.ok) return err(decided.error);
    const current = await redis.compareAndSet(key, raw, decided.value === null ? null : JSON.stringify(decided.value));
    if (current === undefined) return ok(decided.value);
    raw = current;
  }
  throw new StoreUnavailableError(`too many writers on one ${kind}`);
}

/** Deletes the record that `decide` agrees to; resolves with it. */
export async function deleteRecord<K extends keyof RecordTypes, F>(
  redis: RedisConnection,
  kind: K,
  key: string,
  decide: (current: RecordTypes[K] | null) => Result<RecordTypes[K], F>,
): Promise<Result<RecordTypes[K], F>> {
  // After several attempts, the last decision counts.
  let decided: Result<RecordTypes[K], F> | undefined;
  await updateRecord(redis, kind, key, (current) => {
    decided = decide(current);
    return decided.ok ? ok(null) : decided;
  });
  if (decided === undefined) throw new Error('nothing was decided');
  return decided;
}
