/** After the last excess, so long a fifth of the limit holds. */
const TIGHT_MS = 2_000;
const TIGHT_SHARE = 0.2;

/**
 * A limit on a delay that lets a burst pass and keeps a standing queue short: once the delay was above the limit, a fifth of it is the limit,
 * until the delay has stayed below that for two seconds.
 */
export class DelayLimit {
  #tightUntilMs = -Infinity;

  constructor(private readonly maxMs: number) {}

  /** Whether a delay, in milliseconds, is too long now. */
  isExceeded(delayMs: number, nowMs: number): boolean {
    if (delayMs <= this.maxMs * (nowMs < this.#tightUntilMs ? TIGHT_SHARE : 1)) return false;
    this.#tightUntilMs = nowMs + TIGHT_MS;
    return true;
  }
}
