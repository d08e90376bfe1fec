import { StoreUnavailableError } from '../../ports/ports.js';
import { ok, type Result } from '../../../lib/result.js';
import { decodeRecord, type RecordTypes, type RedisConnection } from './redis.js';

// Each lost race means that another writer won, so this many in a row on one record is no race any more.
const MAX_ATTEMPTS = 200;

/** Writes what `decide` makes of the record (`null`: deletes it), if nobody else wrote meanwhile; then it is asked again. */
export async function updateRecord<K extends keyof RecordTypes, V extends RecordTypes[K] | null, F>(
  redis: RedisConnection,
  kind: K,
  key: string,
  decide: (current: RecordTypes[K] | null) => Result<V, F> | Promise<Result<V, F>>,
): Promise<Result<V, F>> {
  let raw = await redis.run((client) => client.get(key));
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const decided = await decide(decodeRecord(kind, raw));
    if (!decided.ok) return decided;
    const current = await redis.compareAndSet(key, raw, decided.value === null ? null : JSON.stringify(decided.value));
    if (current === undefined) return decided;
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
