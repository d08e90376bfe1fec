import type { CancelTimer, Clock } from '../../lib/clock.js';
import { FRAME_MS } from '../../rtp/codec/g711.js';

export interface Ticking {
  /** A period begins, or several after a stall. True: `again` is called at the next phase. */
  tick(skip: number, send: number): boolean;
  /** Between two ticks. True: at the next phase, too. Left out: `tick` never asks for it. */
  again?(): boolean;
}

interface Slot {
  readonly members: Set<Ticking>;
  /** Members of other slots that have something to do at this phase. */
  readonly again: Set<Ticking>;
  pacer: FramePacer;
}

/** Members use this many phases of the period, so that legs do not all send in the same millisecond. */
const SLOTS = 4;

/** Ticks every member once per period, by absolute deadlines, with one timer; without members there is no timer. */
export class SlotClock {
  readonly #slots: readonly Slot[];
  #cancelTimer: CancelTimer | undefined;
  #isFiring = false;
  #isLateAlready = false;

  /**
   * @param onLate gets the delay of each wake-up
   * @param periodMs a frame unless given
   */
  constructor(
    private readonly clock: Clock,
    private readonly onLate: (lateMs: number) => void = () => undefined,
    private readonly periodMs = FRAME_MS,
  ) {
    this.#slots = Array.from({ length: SLOTS }, () => ({
      members: new Set<Ticking>(),
      again: new Set<Ticking>(),
      pacer: new FramePacer(0, periodMs),
    }));
  }

  get size(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.members.size, 0);
  }

  /** Adds a member where there are the fewest. */
  add(member: Ticking): void {
    this.#add(member, (slot, best) => slot.members.size < best.members.size);
  }

  /** Adds a member that has just had a tick: the next one follows as late as possible. */
  addTicked(member: Ticking): void {
    this.#add(member, (slot, best) => slot.pacer.nextDeadlineMs > best.pacer.nextDeadlineMs);
  }

  remove(member: Ticking): void {
    for (const { members, again } of this.#slots) {
      members.delete(member);
      again.delete(member);
    }
    if (this.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #add(member: Ticking, isBetter: (slot: Slot, best: Slot) => boolean): void {
    const isIdle = this.#cancelTimer === undefined && !this.#isFiring;
    if (isIdle) this.#begin();
    this.#slots.reduce((best, slot) => (isBetter(slot, best) ? slot : best)).members.add(member);
    if (isIdle) this.#arm();
  }

  #begin(): void {
    const nowMs = this.clock.nowMs();
    this.#slots.forEach((slot, index) => {
      slot.pacer = new FramePacer(nowMs + (index * this.periodMs) / SLOTS, this.periodMs);
    });
  }

  #arm(): void {
    const deadlineMs = Math.min(...this.#slots.map((slot) => slot.pacer.nextDeadlineMs));
    this.#cancelTimer = this.clock.setTimer(Math.max(0, Math.ceil(deadlineMs - this.clock.nowMs())), () => this.#fire(deadlineMs));
  }

  #fire(deadlineMs: number): void {
    this.#cancelTimer = undefined;
    const lateMs = this.clock.nowMs() - deadlineMs;
    // After a stall timers run before sockets are read: what arrived meanwhile belongs to the due frames.
    if (lateMs >= this.periodMs && !this.#isLateAlready) {
      this.#isLateAlready = true;
      this.#cancelTimer = this.clock.setTimer(0, () => this.#fire(deadlineMs));
      return;
    }
    this.#isLateAlready = false;
    this.#isFiring = true;
    this.onLate(lateMs);
    const first = this.#slots.findIndex(({ pacer }) => pacer.nextDeadlineMs === deadlineMs);
    // In order: a later slot may be due too, and gets what comes to it.
    for (let place = first; place < first + SLOTS; place += 1) this.#tickSlot(place);
    this.#isFiring = false;
    if (this.size > 0) this.#arm();
  }

  #tickSlot(place: number): void {
    const slot = this.#slotAt(place);
    const next = this.#slotAt(place + 1);
    const { skip, send } = slot.pacer.take(this.clock.nowMs());
    if (skip + send === 0) return;
    for (const member of slot.again) {
      slot.again.delete(member);
      if (member.again?.() === true) next.again.add(member);
    }
    for (const member of slot.members) {
      // It may have left.
      if (member.tick(skip, send) && slot.members.has(member)) next.again.add(member);
    }
  }

  #slotAt(place: number): Slot {
    const slot = this.#slots.at(place % SLOTS);
    if (slot === undefined) throw new Error('a clock without slots');
    return slot;
  }
}

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

/** The whole frames that are due. */
export interface DueFrames {
  /** Frames to skip: the RTP timestamp advances over them. They precede the frames to send. */
  readonly skip: number;
  readonly send: number;
}

const NOTHING: DueFrames = { skip: 0, send: 0 };

/**
 * Absolute deadlines of a stream of frames: frame n is due at start + n · frame, however late the previous frames were, so that delays do
 * not add up. After a stall longer than `maxBehindMs` the pacer skips the oldest frames instead of sending a burst.
 */
export class FramePacer {
  readonly #frameMs: number;
  readonly #maxBehindMs: number;
  #next = 0;

  constructor(
    private readonly startMs: number,
    frameMs = 20,
    maxBehindMs = 100,
  ) {
    this.#frameMs = frameMs;
    this.#maxBehindMs = maxBehindMs;
  }

  get nextDeadlineMs(): number {
    return this.startMs + this.#next * this.#frameMs;
  }

  /** Takes the frames that are due. */
  take(nowMs: number): DueFrames {
    if (nowMs < this.nextDeadlineMs) return NOTHING;
    const due = Math.floor((nowMs - this.nextDeadlineMs) / this.#frameMs) + 1;
    this.#next += due;
    const skip = (due - 1) * this.#frameMs > this.#maxBehindMs ? due - 1 : 0;
    return { skip, send: due - skip };
  }
}
