import type { Clock } from './clock.js';

const MAX_SOURCES = 10_000;

/**
 * A token bucket for each source address, which holds one second's worth. Kept as the time at which the bucket would be full again, so
 * that one number a source does (the virtual scheduling of ITU-T I.371). The source heard longest ago goes when there are too many.
 */
export class SourceRates {
  readonly #fullAtMs = new Map<string, number>();
  readonly #intervalMs: number;
  readonly #depthMs: number;
  /** Heard last. */
  #last = '';

  constructor(
    perSecond: number,
    private readonly clock: Clock,
  ) {
    this.#intervalMs = 1_000 / perSecond;
    // Half an interval more, so that rounding cannot cost the last token.
    this.#depthMs = Math.max(1_000, this.#intervalMs) + this.#intervalMs / 2;
  }

  /** Takes one token; false: there is none. */
  take(source: string): boolean {
    const nowMs = this.clock.nowMs();
    const fullAtMs = Math.max(this.#fullAtMs.get(source) ?? nowMs, nowMs) + this.#intervalMs;
    if (fullAtMs - nowMs > this.#depthMs) return false;
    // The same source again has the last place already.
    if (source !== this.#last) this.#fullAtMs.delete(source);
    this.#last = source;
    this.#fullAtMs.set(source, fullAtMs);
    if (this.#fullAtMs.size > MAX_SOURCES) this.#dropOldest();
    return true;
  }

  get size(): number {
    return this.#fullAtMs.size;
  }

  #dropOldest(): void {
    for (const source of this.#fullAtMs.keys()) {
      this.#fullAtMs.delete(source);
      return;
    }
  }
}

const WINDOW_MS = 1_000;

/** Counts what each source sends in a second, to tell under overload who causes it. */
export class SourceShares {
  #previous = new SecondOfSources();
  #current = new SecondOfSources();
  #startedMs = -Infinity;

  constructor(private readonly clock: Clock) {}

  count(source: string): void {
    this.#turn();
    this.#current.add(source);
  }

  /** Whether in this second and the previous one the source sent less than half of an equal share. A lone source never did. */
  isModest(source: string): boolean {
    this.#turn();
    const count = Math.max(this.#current.of(source), this.#previous.of(source));
    return count < Math.max(this.#current.mean, this.#previous.mean) / 2;
  }

  #turn(): void {
    const nowMs = this.clock.nowMs();
    if (nowMs - this.#startedMs >= WINDOW_MS) {
      this.#previous = nowMs - this.#startedMs < 2 * WINDOW_MS ? this.#current : new SecondOfSources();
      this.#current = new SecondOfSources();
      this.#startedMs = nowMs;
    }
  }
}

class SecondOfSources {
  readonly #counts = new Map<string, number>();
  #total = 0;

  get mean(): number {
    return this.#total / Math.max(1, this.#counts.size);
  }

  /** Infinite for a source that there is no space for. */
  of(source: string): number {
    return this.#counts.get(source) ?? (this.#counts.size < MAX_SOURCES ? 0 : Infinity);
  }

  add(source: string): void {
    const count = this.of(source) + 1;
    if (count === Infinity) return;
    this.#counts.set(source, count);
    this.#total += 1;
  }
}
