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
    this.#fullAtMs.delete(source);
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
