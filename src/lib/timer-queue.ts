import type { CancelTimer, Clock } from './clock.js';
import { MinHeap, type HeapEntry } from './min-heap.js';

/** A timer of a queue; give it back to `stop`. */
export type QueuedTimer = HeapEntry<() => void> | LaneTimer;

/** Different delays with a lane of their own: the protocol timers of RFC 3261 are fewer. */
const MAX_LANES = 16;

/** A timer among others of the same delay, which fire in the order in which they were started. */
class LaneTimer {
  previous: LaneTimer | undefined;
  next: LaneTimer | undefined;

  constructor(
    readonly lane: Lane,
    readonly key: number,
    readonly value: () => void,
  ) {}
}

/** Timers of one delay: starting and stopping one costs the same however many there are. */
class Lane {
  first: LaneTimer | undefined;
  #last: LaneTimer | undefined;

  push(key: number, fire: () => void): LaneTimer {
    const timer = new LaneTimer(this, key, fire);
    timer.previous = this.#last;
    if (this.#last === undefined) this.first = timer;
    else this.#last.next = timer;
    this.#last = timer;
    return timer;
  }

  /** False when it is gone already. */
  remove(timer: LaneTimer): boolean {
    const { previous, next } = timer;
    if (previous === undefined && this.first !== timer) return false;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    timer.previous = undefined;
    timer.next = undefined;
    return true;
  }
}

/**
 * Any number of timers on one real timer. Those of the usual delays stand in lanes, a queue for each; the others in a heap.
 * The earliest is the first of a lane or the top of the heap.
 */
export class TimerQueue {
  readonly #clock: Clock;
  readonly #heap = new MinHeap<() => void>();
  readonly #lanes = new Map<number, Lane>();
  #size = 0;
  #wakeAtMs = Infinity;
  #cancelWake: CancelTimer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  start(delayMs: number, fire: () => void): QueuedTimer {
    const dueMs = this.#clock.nowMs() + delayMs;
    const timer = this.#laneOf(delayMs)?.push(dueMs, fire) ?? this.#heap.push(dueMs, fire);
    this.#size += 1;
    if (dueMs < this.#wakeAtMs) this.#wakeIn(delayMs, dueMs);
    return timer;
  }

  /** Stopping a timer that fired already does nothing. */
  stop(timer: QueuedTimer): void {
    const isRemoved = timer instanceof LaneTimer ? timer.lane.remove(timer) : this.#heap.remove(timer);
    if (!isRemoved) return;
    this.#size -= 1;
    // The real timer stays: waking once for nothing is cheaper than moving it for each stop. With nothing left it goes.
    if (this.#size === 0) this.#disarm();
  }

  /** Drops every timer. */
  clear(): void {
    for (let next = this.#earliest(); next !== undefined; next = this.#earliest()) this.stop(next);
    this.#disarm();
  }

  #laneOf(delayMs: number): Lane | undefined {
    const known = this.#lanes.get(delayMs);
    if (known !== undefined) return known;
    if (this.#lanes.size >= MAX_LANES && !this.#dropEmptyLane()) return undefined;
    const lane = new Lane();
    this.#lanes.set(delayMs, lane);
    return lane;
  }

  #dropEmptyLane(): boolean {
    for (const [delayMs, lane] of this.#lanes) if (lane.first === undefined) return this.#lanes.delete(delayMs);
    return false;
  }

  #earliest(): QueuedTimer | undefined {
    let earliest: QueuedTimer | undefined = this.#heap.peek();
    for (const { first } of this.#lanes.values()) {
      if (first !== undefined && (earliest === undefined || first.key < earliest.key)) earliest = first;
    }
    return earliest;
  }

  #disarm(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    this.#wakeAtMs = Infinity;
  }

  #wakeIn(delayMs: number, dueMs: number): void {
    this.#cancelWake?.();
    this.#wakeAtMs = dueMs;
    this.#cancelWake = this.#clock.setTimer(Math.max(0, delayMs), () => this.#wake());
  }

  #wake(): void {
    this.#wakeAtMs = Infinity;
    this.#cancelWake = undefined;
    const nowMs = this.#clock.nowMs();
    let next = this.#earliest();
    // A real timer may fire up to a millisecond early.
    for (; next !== undefined && next.key <= nowMs + 1; next = this.#earliest()) {
      this.stop(next);
      next.value();
    }
    if (next !== undefined && next.key < this.#wakeAtMs) this.#wakeIn(next.key - this.#clock.nowMs(), next.key);
  }
}
