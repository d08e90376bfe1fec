import type { CancelTimer, Clock } from './clock.js';

/** A timer of a queue; give it back to `stop`. */
export type QueuedTimer = LaneTimer | LoneTimer;

/** Different delays with a lane of their own: the protocol timers of RFC 3261 are fewer. */
const MAX_LANES = 16;

/** A timer among others of the same delay, which fire in the order in which they were started. */
class LaneTimer {
  previous: LaneTimer | undefined;
  next: LaneTimer | undefined;

  constructor(
    readonly lane: Lane,
    readonly dueMs: number,
    readonly fire: () => void,
  ) {}
}

/** A timer whose delay has no lane: a real timer of its own. */
class LoneTimer {
  cancel: CancelTimer = () => undefined;
}

/** Timers of one delay: starting and stopping one costs the same however many there are. */
class Lane {
  first: LaneTimer | undefined;
  #last: LaneTimer | undefined;

  push(dueMs: number, fire: () => void): LaneTimer {
    const timer = new LaneTimer(this, dueMs, fire);
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
 * Any number of timers on one real timer: those of the usual delays stand in lanes, a queue for each, and the earliest is the first of a
 * lane. A timer whose delay finds no lane is a real one.
 */
export class TimerQueue {
  readonly #lanes = new Map<number, Lane>();
  readonly #alone = new Set<LoneTimer>();
  #size = 0;
  #wakeAtMs = Infinity;
  #cancelWake: CancelTimer | undefined;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.#size + this.#alone.size;
  }

  start(delayMs: number, fire: () => void): QueuedTimer {
    const lane = this.#laneOf(delayMs);
    if (lane === undefined) return this.#startAlone(delayMs, fire);
    const dueMs = this.clock.nowMs() + delayMs;
    const timer = lane.push(dueMs, fire);
    this.#size += 1;
    if (dueMs < this.#wakeAtMs) this.#wakeIn(delayMs, dueMs);
    return timer;
  }

  /** Stopping a timer that fired already does nothing. */
  stop(timer: QueuedTimer): void {
    if (timer instanceof LoneTimer) {
      if (this.#alone.delete(timer)) timer.cancel();
      return;
    }
    if (!timer.lane.remove(timer)) return;
    this.#size -= 1;
    // The real timer stays: waking once for nothing is cheaper than moving it for each stop. With nothing left it goes.
    if (this.#size === 0) this.#disarm();
  }

  /** Drops every timer. */
  clear(): void {
    for (let next = this.#earliest(); next !== undefined; next = this.#earliest()) this.stop(next);
    for (const timer of this.#alone) this.stop(timer);
  }

  #startAlone(delayMs: number, fire: () => void): LoneTimer {
    const timer = new LoneTimer();
    this.#alone.add(timer);
    timer.cancel = this.clock.setTimer(Math.max(0, delayMs), () => {
      this.#alone.delete(timer);
      fire();
    });
    return timer;
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

  #earliest(): LaneTimer | undefined {
    let earliest: LaneTimer | undefined;
    for (const { first } of this.#lanes.values()) {
      if (first !== undefined && (earliest === undefined || first.dueMs < earliest.dueMs)) earliest = first;
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
    for (; next !== undefined && next.dueMs <= nowMs + 1; next = this.#earliest()) {
      this.stop(next);
      next.fire();
    }
    if (next !== undefined && next.dueMs < this.#wakeAtMs) this.#wakeIn(next.dueMs - this.clock.nowMs(), next.dueMs);
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

  close(): void {
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
