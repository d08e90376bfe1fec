import type { RedisCommand, RedisConnection } from './redis.js';

// Who names a record: numbers an agent, agents a tool. The index stands beside the record that is named, in its hash slot, and is
// secondary: it is written after the record that names, and what it holds counts only if that record confirms it.

const MAX_ROUNDS = 5;
const LOOKED_AT_ONCE = 100;

/** A record that names others, and where each of those keeps its index. */
export interface Naming {
  readonly user: string;
  readonly keyOf: (id: string) => string;
  /** Ids that the record names at this moment. */
  readonly read: () => Promise<readonly string[]>;
}

/**
 * Makes the indexes agree with the record. Reads the record again after each write: a writer in between writes the indexes
 * after that, so the last one to write them has seen the last record.
 * @param before ids that it named before it was changed
 */
export async function settleUsers(redis: RedisConnection, { user, keyOf, read }: Naming, before: readonly string[]): Promise<void> {
  let indexed = before;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const named = await read();
    const commands = [
      ...named.filter((id) => !indexed.includes(id)).map((id): RedisCommand => ['zadd', keyOf(id), 0, user]),
      ...indexed.filter((id) => !named.includes(id)).map((id): RedisCommand => ['zrem', keyOf(id), user]),
    ];
    if (commands.length === 0) return;
    await redis.pipeline(commands);
    indexed = named;
  }
}

/**
 * The first `limit` of the index that name the record indeed.
 * @param confirm of some of them, in order, whether they do
 */
export async function findUsers(
  redis: RedisConnection,
  key: string,
  limit: number,
  confirm: (users: readonly string[]) => Promise<readonly boolean[]>,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (let after = '-'; found.length < limit;) {
    const from = after;
    const users = await redis.run((client) => client.zrange(key, from, '+', 'BYLEX', 'LIMIT', 0, LOOKED_AT_ONCE));
    const confirmed = await confirm(users);
    found.push(...users.filter((_user, index) => confirmed[index] === true));
    const last = users.at(-1);
    if (last === undefined || users.length < LOOKED_AT_ONCE) break;
    after = `(${last}`;
  }
  return found.slice(0, limit);
}
