import type { CancelTimer, Clock } from '../../src/lib/clock.js';
import { MinHeap } from '../../src/lib/timers.js';

/** Time that passes only when a test says so. */
export class VirtualClock implements Clock {
  readonly #timers = new MinHeap<() => void>();
  #nowMs = 0;
  #setByMs = 0;

  constructor(readonly epochMs = Date.UTC(2026, 0, 1)) {}

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.epochMs + this.#setByMs + this.#nowMs;
  }

  setTimer(delayMs: number, fire: () => void): CancelTimer {
    const entry = this.#timers.push(this.#nowMs + Math.max(0, delayMs), fire);
    return () => this.#timers.remove(entry);
  }

  /** Somebody sets the wall clock; monotonic time goes on as it was. */
  setWall(byMs: number): void {
    this.#setByMs += byMs;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves time on, firing every timer that falls due, each at its own time. */
  advance(byMs: number): void {
    const until = this.#nowMs + byMs;
    for (let next = this.#timers.peek(); next !== undefined && next.key <= until; next = this.#timers.peek()) {
      this.#timers.remove(next);
      this.#nowMs = next.key;
      next.value();
    }
    this.#nowMs = until;
  }

  /** As `advance`, letting promises settle between timers. */
  async advanceAsync(byMs: number): Promise<void> {
    const until = this.#nowMs + byMs;
    await settle();
    for (let next = this.#timers.peek(); next !== undefined && next.key <= until; next = this.#timers.peek()) {
      this.#timers.remove(next);
      this.#nowMs = next.key;
      next.value();
      await settle();
    }
    this.#nowMs = until;
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
