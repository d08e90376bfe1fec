import type { CancelTimer, Clock } from '../../src/lib/clock.js';

interface Timer {
  readonly dueMs: number;
  readonly fire: () => void;
}

/** Time that passes only when a test says so. */
export class VirtualClock implements Clock {
  /** By their time; of one time, in the order in which they were set. */
  readonly #timers: Timer[] = [];
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
    const timer: Timer = { dueMs: this.#nowMs + Math.max(0, delayMs), fire };
    this.#timers.splice(this.#timers.findLastIndex(({ dueMs }) => dueMs <= timer.dueMs) + 1, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index >= 0) this.#timers.splice(index, 1);
    };
  }

  /** Somebody sets the wall clock; monotonic time goes on as it was. */
  setWall(byMs: number): void {
    this.#setByMs += byMs;
  }

  /** The process stands still: what falls due meanwhile comes with the next `advance`. */
  standStill(forMs: number): void {
    this.#nowMs += forMs;
  }

  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** Moves time on to the next timer, and fires it; nothing without one. */
  fireNext(): void {
    const next = this.#timers.shift();
    if (next === undefined) return;
    this.#nowMs = Math.max(this.#nowMs, next.dueMs);
    next.fire();
  }

  /** Moves time on, firing every timer that falls due, each at its own time. */
  advance(byMs: number): void {
    const until = this.#nowMs + byMs;
    for (let next = this.#timers[0]; next !== undefined && next.dueMs <= until; next = this.#timers[0]) {
      this.#timers.shift();
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.fire();
    }
    this.#nowMs = until;
  }

  /** As `advance`, letting promises settle between timers. */
  async advanceAsync(byMs: number): Promise<void> {
    const until = this.#nowMs + byMs;
    await settle();
    for (let next = this.#timers[0]; next !== undefined && next.dueMs <= until; next = this.#timers[0]) {
      this.#timers.shift();
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.fire();
      await settle();
    }
    this.#nowMs = until;
  }
}

/**
 * Moves time on in steps until the state is there. Between two steps real files, sockets and processes do their part: however long they take, no step is
 * lost, for another one follows.
 */
export async function passUntil(clock: VirtualClock, holds: () => boolean, stepMs = 100): Promise<void> {
  while (!holds()) {
    await clock.advanceAsync(stepMs);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
