import type { CancelTimer, Clock } from '../../lib/clock.js';
import { FRAME_MS } from '../../rtp/codec/g711.js';
import { FramePacer } from '../../rtp/frame-pacer.js';

/** Called once per frame, or with the frames that a stall skipped. */
export interface Ticking {
  tick(skip: number, send: number): void;
}

interface Slot {
  readonly members: Set<Ticking>;
  pacer: FramePacer;
}

/** Legs use this many phases of the frame, so that they do not all send in the same millisecond. */
const SLOTS = 4;

/** Ticks every member each 20 ms, by absolute deadlines, with one timer; without members there is no timer. */
export class SlotClock {
  readonly #slots: readonly Slot[];
  #cancelTimer: CancelTimer | undefined;
  #isFiring = false;
  #isLateAlready = false;

  /** @param onLate gets the delay of each wake-up */
  constructor(
    private readonly clock: Clock,
    private readonly onLate: (lateMs: number) => void = () => undefined,
  ) {
    this.#slots = Array.from({ length: SLOTS }, () => ({ members: new Set<Ticking>(), pacer: new FramePacer(0, FRAME_MS) }));
  }

  get size(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.members.size, 0);
  }

  add(member: Ticking): void {
    const isIdle = this.#cancelTimer === undefined && !this.#isFiring;
    if (isIdle) this.#begin();
    let emptiest = this.#slots[0];
    for (const slot of this.#slots) if (emptiest === undefined || slot.members.size < emptiest.members.size) emptiest = slot;
    emptiest?.members.add(member);
    if (isIdle) this.#arm();
  }

  remove(member: Ticking): void {
    for (const slot of this.#slots) slot.members.delete(member);
    if (this.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #begin(): void {
    const nowMs = this.clock.nowMs();
    this.#slots.forEach((slot, index) => {
      slot.pacer = new FramePacer(nowMs + (index * FRAME_MS) / SLOTS, FRAME_MS);
    });
  }

  #arm(): void {
    const deadlineMs = Math.min(...this.#slots.map((slot) => slot.pacer.nextDeadlineMs));
    this.#cancelTimer = this.clock.setTimer(Math.max(0, Math.ceil(deadlineMs - this.clock.nowMs())), () => this.#fire(deadlineMs));
  }

  #fire(deadlineMs: number): void {
    this.#cancelTimer = undefined;
    const lateMs = this.clock.nowMs() - deadlineMs;
    // After a stall timers run before sockets are read: packets that arrived meanwhile belong to the due frames.
    if (lateMs >= FRAME_MS && !this.#isLateAlready) {
      this.#isLateAlready = true;
      this.#cancelTimer = this.clock.setTimer(0, () => this.#fire(deadlineMs));
      return;
    }
    this.#isLateAlready = false;
    this.#isFiring = true;
    this.onLate(lateMs);
    for (const slot of this.#slots) {
      const { skip, send } = slot.pacer.take(this.clock.nowMs());
      if (skip + send > 0) for (const member of slot.members) member.tick(skip, send);
    }
    this.#isFiring = false;
    if (this.size > 0) this.#arm();
  }
}
