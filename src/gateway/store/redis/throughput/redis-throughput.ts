import type { Throughput } from '../../../model/throughput.js';
import type { CancelTimer, Clock } from '../../../../lib/clock.js';
import { orgLeasesKey, orgThroughputKey } from '../keys.js';
import type { RedisCommand, RedisConnection } from '../redis.js';
import type { ThroughputLog } from '../../../ports/stores.js';
import { intervalOf, intervalsUntil, oldestInterval, ThroughputCounts, type Counted } from './throughput-counts.js';

const FLUSH_MS = 1_000;
const MINUTE_MS = 60_000;
/** Longer than anybody asks for. */
const KEPT_S = 1_200;

/**
 * Calls of all gateways by stretches of 10 s. A gateway counts in its memory and adds to Redis once a second, in one pipeline: a call
 * costs no command, and one that is killed loses what it counted in its last second.
 */
export class RedisThroughput implements ThroughputLog {
  readonly #counts = new ThroughputCounts();
  #cancel: CancelTimer | null = null;
  #isClosed = false;

  constructor(
    private readonly redis: RedisConnection,
    /** Where it is read. */
    private readonly api: RedisConnection,
    private readonly clock: Clock,
  ) {}

  count(orgId: string, kind: Counted): void {
    this.#counts.add({ orgId, kind, atMs: intervalOf(this.clock.wallMs()), calls: 1 });
    this.#flushSoon();
  }

  async read(orgId: string): Promise<Throughput> {
    const nowMs = this.clock.wallMs();
    const minutes: number[] = [];
    for (let minute = minuteOf(oldestInterval(nowMs)); minute <= minuteOf(nowMs); minute += 1) minutes.push(minute);
    // Places are kept by the clock of Redis, whatever ours says.
    const [seconds] = await this.api.run((client) => client.time());
    const [inProgress, ...hashes] = await this.api.pipeline([
      ['zcount', orgLeasesKey(orgId), 1_000 * Number(seconds), '+inf'],
      ...minutes.map((minute): RedisCommand => ['hgetall', orgThroughputKey(orgId, minute)]),
    ]);
    const counts = new Map(hashes.flatMap(pairs));
    return {
      inProgress: Number(inProgress),
      intervals: intervalsUntil(nowMs, (atMs, kind) => Number(counts.get(fieldOf(atMs, kind)) ?? 0)),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#flush();
  }

  #flushSoon(): void {
    if (this.#isClosed) return;
    this.#cancel ??= this.clock.setTimer(FLUSH_MS, () => {
      this.#cancel = null;
      void this.#flush();
    });
  }

  /** What cannot be written is kept until it can, or nobody asks for it any more. */
  async #flush(): Promise<void> {
    if (this.#counts.size === 0) return;
    const taken = this.#counts.takeAll();
    const keys = new Set(taken.map(({ orgId, atMs }) => orgThroughputKey(orgId, minuteOf(atMs))));
    try {
      await this.redis.pipeline([
        ...taken.map(({ orgId, atMs, kind, calls }): RedisCommand => [
          'hincrby',
          orgThroughputKey(orgId, minuteOf(atMs)),
          fieldOf(atMs, kind),
          calls,
        ]),
        ...[...keys].map((key): RedisCommand => ['expire', key, KEPT_S]),
      ]);
    } catch {
      for (const count of taken) this.#counts.add(count);
      this.#counts.dropBefore(oldestInterval(this.clock.wallMs()));
      this.#flushSoon();
    }
  }
}

function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS);
}

function fieldOf(atMs: number, kind: Counted): string {
  return `${String(atMs)}:${kind}`;
}

/** A hash, as an object or as names and values in turn. */
function pairs(hash: unknown): [string, string][] {
  if (!Array.isArray(hash)) return Object.entries((hash ?? {}) as Record<string, string>);
  return Array.from({ length: hash.length / 2 }, (_, index) => [String(hash[2 * index]), String(hash[2 * index + 1])]);
}
