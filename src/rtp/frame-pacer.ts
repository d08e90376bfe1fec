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
