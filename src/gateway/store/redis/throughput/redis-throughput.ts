import type { CallStore, RouteStore } from '../../../ports/ports.js';
import { type Throughput, THROUGHPUT_INTERVALS, THROUGHPUT_STEP_S, type ThroughputInterval } from '../../../model/throughput.js';
import type { CancelTimer, Clock } from '../../../../lib/clock.js';
import { orgLeasesKey, orgThroughputKey } from '../keys.js';
import { RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import type { ThroughputLog } from '../../../ports/stores.js';

const COUNT_SLOTS = new RedisScript('leases/count-slots');

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

  count(orgId: string, kind: Counted, calls = 1): void {
    this.#counts.add({ orgId, kind, atMs: intervalOf(this.clock.wallMs()), calls });
    this.#flushSoon();
  }

  async read(orgId: string): Promise<Throughput> {
    const nowMs = this.clock.wallMs();
    const minutes: number[] = [];
    for (let minute = minuteOf(oldestInterval(nowMs)); minute <= minuteOf(nowMs); minute += 1) minutes.push(minute);
    const [inProgress, hashes] = await Promise.all([
      this.api.script(COUNT_SLOTS, [orgLeasesKey(orgId)], []),
      this.api.pipeline(minutes.map((minute): RedisCommand => ['hgetall', orgThroughputKey(orgId, minute)])),
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

export type Counted = 'begun' | 'ended' | 'refused';

const STEP_MS = THROUGHPUT_STEP_S * 1_000;
/** Most counts (organization, interval, kind) that a gateway keeps while it cannot write. */
const MAX_COUNTS = 100_000;

interface Count {
  readonly orgId: string;
  /** The stretch of time, by its beginning. */
  readonly atMs: number;
  readonly kind: Counted;
  readonly calls: number;
}

/** The stretch of time that a moment is in, by its beginning. */
export function intervalOf(ms: number): number {
  return ms - (ms % STEP_MS);
}

/** Calls by organization, stretch of time, and what became of them. */
export class ThroughputCounts {
  readonly #counts = new Map<string, Count>();

  add({ orgId, atMs, kind, calls }: Count): void {
    const key = `${orgId} ${String(atMs)} ${kind}`;
    const before = this.#counts.get(key);
    if (before === undefined && this.#counts.size >= MAX_COUNTS) return;
    this.#counts.set(key, { orgId, atMs, kind, calls: calls + (before?.calls ?? 0) });
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Those of before this moment are forgotten. */
  dropBefore(ms: number): void {
    for (const [key, { atMs }] of this.#counts) if (atMs < ms) this.#counts.delete(key);
  }

  /** Hands all of them over. */
  takeAll(): readonly Count[] {
    const all = [...this.#counts.values()];
    this.#counts.clear();
    return all;
  }

  countOf(orgId: string, atMs: number, kind: Counted): number {
    return this.#counts.get(`${orgId} ${String(atMs)} ${kind}`)?.calls ?? 0;
  }
}

/** When the oldest reported interval began. */
export function oldestInterval(nowMs: number): number {
  return intervalOf(nowMs) - (THROUGHPUT_INTERVALS - 1) * STEP_MS;
}

/** Every stretch of time until now, with zeros where nothing was counted. */
export function intervalsUntil(nowMs: number, countOf: (atMs: number, kind: Counted) => number): readonly ThroughputInterval[] {
  const oldestMs = oldestInterval(nowMs);
  return Array.from({ length: THROUGHPUT_INTERVALS }, (_, index) => {
    const atMs = oldestMs + index * STEP_MS;
    return {
      at: new Date(atMs).toISOString(),
      begun: countOf(atMs, 'begun'),
      ended: countOf(atMs, 'ended'),
      refused: countOf(atMs, 'refused'),
    };
  });
}

// Where calls are counted for the throughput: at the look-up of their number and at the writing of their record.

export type CountCall = (orgId: string, kind: Counted, calls?: number) => void;

export function meteredRoutes(routes: RouteStore, count: CountCall): RouteStore {
  return {
    lookup: async (number, call) => {
      const found = await routes.lookup(number, call);
      if (call !== null && found.route !== null) count(found.route.org.org_id, 'begun');
      return found;
    },
    release: (callId, wasRefused) => routes.release(callId, wasRefused),
    disown: (callId) => routes.disown(callId),
  };
}

export function meteredCalls(calls: CallStore, count: CountCall): CallStore {
  return {
    write: (call) => {
      const { org_id: orgId, answered_at: answeredAt, summed_calls: summed } = call.record;
      if (orgId === null) return calls.write(call);
      // Nobody looked up the number of each.
      if (summed !== null) count(orgId, 'begun', summed);
      count(orgId, answeredAt === null ? 'refused' : 'ended', summed ?? 1);
      return calls.write(call);
    },
  };
}
