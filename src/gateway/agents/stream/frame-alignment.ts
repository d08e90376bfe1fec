import { FRAME_MS } from '../../../rtp/codec/g711.js';

/** What the latest piece of audio of so long waits, all wait: two seconds at first and after a late piece, else ten. */
const FIRST_FRAMES = 100;
const WINDOW_FRAMES = 500;
/** What it waits at most. */
const STEP_MS = 5;
/** However often the frames move, they are no farther than this from where they would be. */
const MOST_MOVED_MS = 20;
/** In real time: as much audio as is played in a window, or nearly. */
const PACE_SLACK = 0.15;

/**
 * When the frames of a leg should leave whose agent speaks in real time. A piece of audio waits for the next frame, by chance up to 20 ms;
 * one that comes near the time of a frame is late now and then: the frame waits for it. Without that, all after it would wait a frame longer.
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
  /** In the last window. */
  #isInRealTime = false;
  #movedMs = 0;
  /** What the frame that is due has waited for its audio. */
  #heldMs = 0;

  /** A piece of the agent's audio came, behind so much that waits. */
  arrived(audioMs: number, queuedMs: number, nowMs: number): void {
    if (this.#dueMs === null) return;
    this.#audioMs += audioMs;
    const waitMs = this.#dueMs + Math.floor(queuedMs / FRAME_MS) * FRAME_MS - nowMs;
    this.#leastWaitMs = Math.min(this.#leastWaitMs, this.#isStarved && queuedMs === 0 ? waitMs - FRAME_MS : waitMs);
  }

  /**
   * Before a frame: by how many milliseconds it, and all after it, should leave later. Below 0 it leaves now, and those after it earlier.
   * @param hasAudio what waits fills it, or is the last
   */
  shiftMs(hasAudio: boolean): number {
    const heldMs = this.#heldMs;
    this.#heldMs = 0;
    if (!hasAudio) {
      const laterMs = this.#isInRealTime && this.#wasSpeech && heldMs + STEP_MS < FRAME_MS ? this.#move(STEP_MS) : 0;
      if (laterMs > 0) {
        this.#heldMs = heldMs + laterMs;
        return laterMs;
      }
      // Nothing came: the agent has said what it had to say.
      if (heldMs > 0) return this.#move(-heldMs);
    }
    // Perhaps it stalled only once.
    if (heldMs > 0) this.#begin(FIRST_FRAMES);
    if (this.#frames < this.#windowFrames) return 0;
    this.#isInRealTime = Math.abs(this.#audioMs / (this.#frames * FRAME_MS) - 1) <= PACE_SLACK;
    const waitMs = this.#leastWaitMs;
    this.#begin(WINDOW_FRAMES);
    // What waits a frame too long is made up for in pauses. After one stall nothing is late again: a step is enough.
    if (!this.#isInRealTime || waitMs >= FRAME_MS) return 0;
    return this.#move(Math.min(STEP_MS, -STEP_MS * Math.floor(waitMs / STEP_MS)));
  }

  /** A frame left. */
  left(isSpeech: boolean, nowMs: number): void {
    this.#isStarved = this.#wasSpeech && !isSpeech;
    this.#wasSpeech = isSpeech;
    const nextMs = nowMs + FRAME_MS;
    // A frame may leave late, and none leaves early; after a stall they begin anew.
    this.#dueMs = this.#dueMs === null || nowMs - this.#dueMs >= FRAME_MS ? nextMs : Math.min(this.#dueMs + FRAME_MS, nextMs);
    this.#frames += 1;
  }

  #begin(windowFrames: number): void {
    this.#windowFrames = windowFrames;
    this.#frames = 0;
    this.#audioMs = 0;
    this.#leastWaitMs = Infinity;
  }

  #move(laterMs: number): number {
    if (this.#dueMs === null || Math.abs(this.#movedMs + laterMs) > MOST_MOVED_MS) return 0;
    this.#movedMs += laterMs;
    this.#dueMs += laterMs;
    return laterMs;
  }
}
