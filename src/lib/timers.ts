import type { CancelTimer, Clock } from './clock.js';

/** An item's place in a heap; given back to remove the item. */
export interface HeapEntry<T> {
  readonly key: number;
  readonly value: T;
  index: number;
}

/** A binary min-heap that can drop any entry in O(log n): the one list of timers of a driver. */
export class MinHeap<T> {
  readonly #entries: HeapEntry<T>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  peek(): HeapEntry<T> | undefined {
    return this.#entries[0];
  }

  push(key: number, value: T): HeapEntry<T> {
    const entry: HeapEntry<T> = { key, value, index: this.#entries.length };
    this.#entries.push(entry);
    this.#up(entry);
    return entry;
  }

  pop(): HeapEntry<T> | undefined {
    const top = this.#entries[0];
    if (top !== undefined) this.remove(top);
    return top;
  }

  /** Drops an entry. False when it is gone already. */
  remove(entry: HeapEntry<T>): boolean {
    if (this.#entries[entry.index] !== entry) return false;
    const last = this.#entries.pop();
    const hole = entry.index;
    entry.index = -1;
    if (last === undefined || last === entry) return true;
    this.#place(last, hole);
    this.#up(last);
    this.#down(last);
    return true;
  }

  #place(entry: HeapEntry<T>, index: number): void {
    this.#entries[index] = entry;
    entry.index = index;
  }

  #up(entry: HeapEntry<T>): void {
    let index = entry.index;
    while (index > 0) {
      const parent = this.#entries[(index - 1) >> 1];
      if (parent === undefined || parent.key <= entry.key) break;
      const parentIndex = parent.index;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(entry, index);
  }

  #down(entry: HeapEntry<T>): void {
    let index = entry.index;
    for (;;) {
      const left = this.#entries[2 * index + 1];
      const right = this.#entries[2 * index + 2];
      const child = right !== undefined && left !== undefined && right.key < left.key ? right : left;
      if (child === undefined || child.key >= entry.key) break;
      const childIndex = child.index;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(entry, index);
  }
}

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
  readonly #heap = new MinHeap<() => void>();
  readonly #lanes = new Map<number, Lane>();
  #size = 0;
  #wakeAtMs = Infinity;
  #cancelWake: CancelTimer | undefined;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.#size;
  }

  start(delayMs: number, fire: () => void): QueuedTimer {
    const dueMs = this.clock.nowMs() + delayMs;
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
    this.#cancelWake = this.clock.setTimer(Math.max(0, delayMs), () => this.#wake());
  }

  #wake(): void {
    this.#wakeAtMs = Infinity;
    this.#cancelWake = undefined;
    const nowMs = this.clock.nowMs();
    let next = this.#earliest();
    // A real timer may fire up to a millisecond early.
    for (; next !== undefined && next.key <= nowMs + 1; next = this.#earliest()) {
      this.stop(next);
      next.value();
    }
    if (next !== undefined && next.key < this.#wakeAtMs) this.#wakeIn(next.key - this.clock.nowMs(), next.key);
  }
}

interface Running<Name> {
  readonly name: Name;
  handle: QueuedTimer;
  next: Running<Name> | undefined;
}

/** The timers of one state machine, by the names that it gives them: one or two at a time, so a chain is shorter than a map. */
export class NamedTimers<Name extends string> {
  #first: Running<Name> | undefined;

  constructor(
    private readonly queue: TimerQueue,
    private readonly onTimer: (name: Name) => void,
  ) {}

  /** One of this name that runs already is started anew. */
  start(name: Name, delayMs: number): void {
    this.stop(name);
    const running: Running<Name> = { name, handle: this.queue.start(delayMs, () => this.#fire(running)), next: this.#first };
    this.#first = running;
  }

  stop(name: Name): void {
    for (let running = this.#first; running !== undefined; running = running.next) {
      if (running.name !== name) continue;
      this.queue.stop(running.handle);
      this.#remove(running);
      return;
    }
  }

  stopAll(): void {
    for (let running = this.#first; running !== undefined; running = running.next) this.queue.stop(running.handle);
    this.#first = undefined;
  }

  #fire(running: Running<Name>): void {
    this.#remove(running);
    this.onTimer(running.name);
  }

  #remove(running: Running<Name>): void {
    if (this.#first === running) {
      this.#first = running.next;
      return;
    }
    let before = this.#first;
    while (before !== undefined && before.next !== running) before = before.next;
    if (before !== undefined) before.next = running.next;
  }
}
