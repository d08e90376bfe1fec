import { FRAME_MS } from '../../rtp/codec/g711.js';
/** Frames between two looks at the buffer: ten a second are plenty. */
const FRAMES_PER_LOOK = 5;
/** The last 3.2 s count. */
const KEPT_LOOKS = 32;

/**
 * How long the caller's audio takes from its arrival until it goes out again: what waits in the jitter buffer when a frame was taken
 * out of it, and half a frame, since packets arrive at any moment between two frames. The median of the last looks: a key that is
 * pressed empties the buffer, for its telephone-events come in place of audio.
 */
export class EchoDelay {
  readonly #looks: number[] = [];
  #frames = 0;

  /** To be called once a frame of echo. */
  frame(bufferedMs: () => number | undefined): void {
    this.#frames += 1;
    if (this.#frames % FRAMES_PER_LOOK !== 0) return;
    const looked = bufferedMs();
    if (looked === undefined) return;
    this.#looks.push(looked);
    if (this.#looks.length > KEPT_LOOKS) this.#looks.shift();
  }

  /** `null`: there was no echo yet. */
  get delayMs(): number | null {
    const sorted = [...this.#looks].sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    return median === undefined ? null : median + FRAME_MS / 2;
  }
}
