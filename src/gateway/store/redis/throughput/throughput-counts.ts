import { THROUGHPUT_INTERVALS, THROUGHPUT_STEP_S, type ThroughputInterval } from '../../../model/throughput.js';

export type Counted = 'begun' | 'ended' | 'refused';

const STEP_MS = THROUGHPUT_STEP_S * 1_000;
/** Most counts (organization, interval, kind) that a gateway keeps while it cannot write. */
const MAX_COUNTS = 100_000;

export interface Count {
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

/** When the oldest stretch of time began that is told of. */
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
