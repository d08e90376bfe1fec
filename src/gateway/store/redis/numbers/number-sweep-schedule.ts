import type { E164 } from '../../../model/e164.js';
import type { NumberRecord } from '../../../model/records.js';
import type { Clock } from '../../../../lib/clock.js';
import { errorText } from '../../../../lib/result.js';
import type { Log } from '../../../../lib/log.js';
import { SWEEP_LOCK_KEY, agentNumbersKey, inboundIdKey, NUMBER_KEY_PATTERN, numberKey, ORGS_KEY, orgNumbersKey } from '../keys.js';
import { type RedisConnection, decodeRecord } from '../redis.js';
import type { NumberStore, SweepReport } from '../../../ports/stores.js';

const EVERY_MS = 3_600_000;
/** Gateways that start together do not ask together. */
const JITTER_MS = 600_000;
/** Shorter than any pause between two sweeps of one gateway, so that a single one is never kept from its next. */
const LOCK_MS = EVERY_MS - JITTER_MS - 60_000;

export interface SweepParts {
  readonly redis: RedisConnection;
  readonly numbers: Pick<NumberStore, 'sweep'>;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  /** 0 to 1. */
  readonly random?: () => number;
}

/** Sweeps the indexes of numbers every hour, on one gateway of all. Returns what ends it. */
export function scheduleSweep(parts: SweepParts): () => void {
  const { clock, random = Math.random } = parts;
  const next = (): (() => void) =>
    clock.setTimer(EVERY_MS + (2 * random() - 1) * JITTER_MS, () => {
      cancel = next();
      void sweep(parts);
    });
  let cancel = next();
  return () => cancel();
}

async function sweep({ redis, numbers, instance, log }: SweepParts): Promise<void> {
  try {
    // Never given back: it says that a sweep was made lately as well as that one is being made.
    const lock = await redis.run((client) => client.set(SWEEP_LOCK_KEY, instance, 'PX', LOCK_MS, 'NX'));
    if (lock !== 'OK') return;
    log.info({ ...(await numbers.sweep()) }, 'numbers.swept');
  } catch (error) {
    log.warn({ error: errorText(error) }, 'numbers.sweep_failed');
  }
}

const SCAN_COUNT = 500;

/** Walks all records and all indexes in small steps and repairs the indexes. Takes a scan of the whole key space. */
export async function sweepNumbers(redis: RedisConnection): Promise<SweepReport> {
  let numbers = 0;
  let added = 0;
  for await (const keys of redis.scan(NUMBER_KEY_PATTERN, SCAN_COUNT)) {
    numbers += keys.length;
    for (const key of keys) added += await indexRecord(redis, key);
  }
  let removed = 0;
  for (const orgId of await redis.run((client) => client.smembers(ORGS_KEY))) removed += await dropStale(redis, orgId);
  return { numbers, added, removed };
}

async function indexRecord(redis: RedisConnection, key: string): Promise<number> {
  const read = async (): Promise<NumberRecord | null> => decodeRecord('number', await redis.run((client) => client.get(key)));
  const record = await read();
  if (record === null) return 0;
  const [, inIndex] = await Promise.all([
    redis.run((client) => client.set(inboundIdKey(record.inbound_id), record.phone_number)),
    redis.run((client) => client.zadd(orgNumbersKey(record.org_id), 0, record.phone_number)),
  ]);
  const agentId = record.inbound?.agent_id ?? null;
  // Stale entries there do no harm: readers of that index read the number as well.
  if (agentId !== null) await redis.run((client) => client.zadd(agentNumbersKey(agentId), 0, record.phone_number));
  const after = await read();
  // Detached meanwhile: what was just added is stale. A detach after this read removes it itself.
  if (after?.org_id !== record.org_id) await redis.run((client) => client.zrem(orgNumbersKey(record.org_id), record.phone_number));
  if (after?.inbound_id !== record.inbound_id) await redis.run((client) => client.del(inboundIdKey(record.inbound_id)));
  return inIndex;
}

async function dropStale(redis: RedisConnection, orgId: string): Promise<number> {
  const indexKey = orgNumbersKey(orgId);
  let removed = 0;
  let after = '-';
  for (;;) {
    const from = after;
    const members = await redis.run((client) => client.zrange(indexKey, from, '+', 'BYLEX', 'LIMIT', 0, SCAN_COUNT));
    for (const member of members) removed += await dropIfStale(redis, orgId, member as E164);
    const last = members.at(-1);
    if (last === undefined || members.length < SCAN_COUNT) return removed;
    after = `(${last}`;
  }
}

async function dropIfStale(redis: RedisConnection, orgId: string, number: E164): Promise<number> {
  const isOwned = async (): Promise<boolean> =>
    decodeRecord('number', await redis.run((client) => client.get(numberKey(number))))?.org_id === orgId;
  if (await isOwned()) return 0;
  await redis.run((client) => client.zrem(orgNumbersKey(orgId), number));
  if (!(await isOwned())) return 1;
  // Attached between the two reads.
  await redis.run((client) => client.zadd(orgNumbersKey(orgId), 0, number));
  return 0;
}
