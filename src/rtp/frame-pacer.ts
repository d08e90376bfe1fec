/** What a pacer says is due now, in whole frames. */
export interface DueFrames {
  /** To be given up, their time not sent: the RTP timestamp moves on over them. They come before the frames to send. */
  readonly skip: number;
  readonly send: number;
}

const NOTHING: DueFrames = { skip: 0, send: 0 };

/**
 * Absolute deadlines of a stream of frames: frame n is due at start + n · frame, however late the frames before it were, so that
 * lateness never adds up. After a stall longer than `maxBehindMs` the oldest frames are skipped instead of being sent as a burst.
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

  /** Takes the frames whose deadline has come. */
  take(nowMs: number): DueFrames {
    if (nowMs < this.nextDeadlineMs) return NOTHING;
    const due = Math.floor((nowMs - this.nextDeadlineMs) / this.#frameMs) + 1;
    this.#next += due;
    const skip = (due - 1) * this.#frameMs > this.#maxBehindMs ? due - 1 : 0;
    return { skip, send: due - skip };
  }
}
