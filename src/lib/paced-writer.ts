import type { CancelTimer, Clock } from './clock.js';

/**
 * Gathers what is written in one turn of the event loop into one write, and, when writes follow each other closely, what is written within
 * `gapMs` of the last one. A write costs as much as the work of a message, on both ends: under load, fewer and larger ones are the cheapest
 * gain; without load nothing waits.
 */
export class PacedWriter {
  #texts: string[] = [];
  #lastMs = -Infinity;
  #cancelTimer: CancelTimer | undefined;
  readonly #flush = (): void => this.flush();

  constructor(
    private readonly write: (text: string) => void,
    private readonly clock: Clock,
    /** 0: only within a turn. */
    private readonly gapMs: number,
  ) {}

  push(text: string): void {
    if (this.#texts.push(text) > 1) return;
    const leftMs = this.#lastMs + this.gapMs - this.clock.nowMs();
    // When everything that has arrived was looked at.
    if (this.gapMs === 0 || leftMs <= 0) setImmediate(this.#flush);
    else this.#cancelTimer = this.clock.setTimer(leftMs, this.#flush);
  }

  /** Writes at once what waits. */
  flush(): void {
    if (this.#texts.length === 0) return;
    const text = this.#texts.length === 1 ? (this.#texts[0] ?? '') : this.#texts.join('');
    this.#texts = [];
    if (this.gapMs > 0) this.#lastMs = this.clock.nowMs();
    this.write(text);
  }

  /** What waits is not written any more. */
  clear(): void {
    this.#texts = [];
    this.#cancelTimer?.();
  }
}
