const MAX_SAMPLES = 1_024;
const PERCENTILE = 0.99;

/** How late the frames of a media thread are: the 99th percentile of the wake-ups since the last look. */
export class FrameDelay {
  readonly #samples = new Float64Array(MAX_SAMPLES);
  #count = 0;

  /** @param lateMs of one wake-up */
  add(lateMs: number): void {
    if (this.#count < MAX_SAMPLES) this.#samples[this.#count] = lateMs;
    this.#count = Math.min(MAX_SAMPLES, this.#count + 1);
  }

  /** Whole milliseconds, and starts anew; 0 without a wake-up: no leg sends. */
  take(): number {
    const sorted = this.#samples.subarray(0, this.#count).sort();
    this.#count = 0;
    return Math.round(sorted[Math.ceil(sorted.length * PERCENTILE) - 1] ?? 0);
  }
}
