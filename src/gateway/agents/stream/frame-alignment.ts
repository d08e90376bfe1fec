import { FRAME_MS } from '../../../rtp/codec/g711.js';

/** What the latest piece of audio of so long waits, all wait: two seconds at first, then ten. */
const FIRST_FRAMES = 100;
const WINDOW_FRAMES = 500;
/** What it waits at least, and `STEP_MS` more at most: it may come a little later the next time. */
const LEAST_WAIT_MS = 5;
const STEP_MS = 5;
/** However often the frames move, they are no farther than this from where they would be. */
const MOST_MOVED_MS = 20;
/** In real time: as much audio as is played in a window, or nearly. */
const PACE_SLACK = 0.15;

/**
 * When the frames of a leg should leave whose agent speaks in real time. A piece of audio waits for the next frame, by chance up to 20 ms;
 * one that comes near the time of a frame is late now and then, and all after it wait a frame longer.
 */
export class FrameAlignment {
  /** When the next frame leaves, by the earliest of those before. */
  #dueMs: number | null = null;
  #wasSpeech = false;
  /** The last frame had no speech, and the one before had. */
  #isStarved = false;
  #windowFrames = FIRST_FRAMES;
  #frames = 0;
  #audioMs = 0;
  #leastWaitMs = Infinity;
  #movedMs = 0;
  #shiftMs = 0;

  /** A piece of the agent's audio came, behind so much that waits. */
  arrived(audioMs: number, queuedMs: number, nowMs: number): void {
    if (this.#dueMs === null) return;
    this.#audioMs += audioMs;
    const waitMs = this.#dueMs + Math.floor(queuedMs / FRAME_MS) * FRAME_MS - nowMs;
    this.#leastWaitMs = Math.min(this.#leastWaitMs, this.#isStarved && queuedMs === 0 ? waitMs - FRAME_MS : waitMs);
  }

  /** By how many milliseconds the next frame should leave later, below 0 earlier; told once. */
  takeShiftMs(): number {
    const shiftMs = this.#shiftMs;
    this.#shiftMs = 0;
    return shiftMs;
  }

  /** A frame left. */
  left(isSpeech: boolean, nowMs: number): void {
    this.#isStarved = this.#wasSpeech && !isSpeech;
    this.#wasSpeech = isSpeech;
    const nextMs = nowMs + FRAME_MS;
    // A frame may leave late, and none leaves early; after a stall they begin anew.
    this.#dueMs = this.#dueMs === null || nowMs - this.#dueMs >= FRAME_MS ? nextMs : Math.min(this.#dueMs + FRAME_MS, nextMs);
    this.#frames += 1;
    if (this.#frames < this.#windowFrames) return;
    const isInRealTime = Math.abs(this.#audioMs / (this.#frames * FRAME_MS) - 1) <= PACE_SLACK;
    const waitMs = this.#leastWaitMs;
    this.#frames = 0;
    this.#windowFrames = WINDOW_FRAMES;
    this.#audioMs = 0;
    this.#leastWaitMs = Infinity;
    // What waits a frame too long is made up for in pauses. After one stall nothing is late again: a step is enough.
    if (isInRealTime && waitMs < FRAME_MS) this.#move(Math.min(STEP_MS, -STEP_MS * Math.floor((waitMs - LEAST_WAIT_MS) / STEP_MS)));
  }

  #move(laterMs: number): void {
    if (this.#dueMs === null || Math.abs(this.#movedMs + laterMs) > MOST_MOVED_MS) return;
    this.#movedMs += laterMs;
    this.#dueMs += laterMs;
    this.#shiftMs += laterMs;
  }
}
