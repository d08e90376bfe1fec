import type { CancelTimer, Clock } from './clock.js';
import { MinHeap, type HeapEntry } from './min-heap.js';

/** A timer of a queue; give it back to `stop`. */
export type QueuedTimer = HeapEntry<() => void>;

/** Any number of timers on one heap and one real timer. */
export class TimerQueue {
  readonly #clock: Clock;
  readonly #heap = new MinHeap<() => void>();
  #wakeAtMs = Infinity;
  #cancelWake: CancelTimer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#heap.size;
  }

  start(delayMs: number, fire: () => void): QueuedTimer {
    const timer = this.#heap.push(this.#clock.nowMs() + delayMs, fire);
    this.#rearm();
    return timer;
  }

  /** Stopping a timer that fired already does nothing. */
  stop(timer: QueuedTimer): void {
    this.#heap.remove(timer);
    // The real timer stays: waking once for nothing is cheaper than moving it for each stop. With nothing left it goes.
    if (this.#heap.size === 0) this.#disarm();
  }

  /** Drops every timer. */
  clear(): void {
    while (this.#heap.pop() !== undefined);
    this.#disarm();
  }

  #disarm(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    this.#wakeAtMs = Infinity;
  }

  #rearm(): void {
    const next = this.#heap.peek();
    if (next === undefined || next.key >= this.#wakeAtMs) return;
    this.#cancelWake?.();
    this.#wakeAtMs = next.key;
    this.#cancelWake = this.#clock.setTimer(Math.max(0, next.key - this.#clock.nowMs()), () => this.#wake());
  }

  #wake(): void {
    this.#wakeAtMs = Infinity;
    this.#cancelWake = undefined;
    const nowMs = this.#clock.nowMs();
    // A real timer may fire up to a millisecond early.
    for (let next = this.#heap.peek(); next !== undefined && next.key <= nowMs + 1; next = this.#heap.peek()) {
      this.#heap.remove(next);
      next.value();
    }
    this.#rearm();
  }
}
