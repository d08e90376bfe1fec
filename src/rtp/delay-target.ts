/** Ten seconds of frames are remembered. */
const KEPT = 500;
/** So many of them may be worse than the target allows for: a stall now and then is no reason to delay everything. */
const MAX_IGNORED = 2;
/** One of them a second while there is less to go by. */
const FRAMES_PER_IGNORED = 50;

const NOTHING = -0x8000_0000;

/**
 * How late packets come, and so how long audio must wait for them. Transit is the time of arrival less the RTP timestamp, in ticks of
 * any origin: only differences mean anything. Of each frame's time the worst packet counts, so that a burst after a stall is one event.
 */
export class DelayTarget {
  readonly #transits = new Int32Array(KEPT);
  #reference = 0;
  #count = 0;
  #place = 0;
  /** The current frame's largest delay. */
  #worst = NOTHING;

  /** @param leastTicks what is added for jitter that was not seen yet; @param mostTicks the longest wait */
  constructor(
    private readonly leastTicks: number,
    private readonly mostTicks: number,
  ) {}

  /** Frames in which packets came. */
  get framesSeen(): number {
    return this.#count;
  }

  /** Forgets everything: the path, or the source, is another one. */
  restart(transitTicks: number): void {
    this.#reference = transitTicks;
    this.#count = 0;
    this.#place = 0;
    this.#worst = NOTHING;
  }

  /** A packet arrived; not one that had come before. */
  onPacket(transitTicks: number): void {
    this.#worst = Math.max(this.#worst, (transitTicks - this.#reference) | 0);
  }

  /** The time of a frame is over. */
  onFrameTick(): void {
    if (this.#worst === NOTHING) return;
    this.#transits[this.#place] = this.#worst;
    this.#place = (this.#place + 1) % KEPT;
    this.#count = Math.min(KEPT, this.#count + 1);
    this.#worst = NOTHING;
  }

  /** The transit up to which packets are waited for: that of the worst which count, and the least wait beyond. */
  targetDelay(): number {
    let fastest = this.#worst === NOTHING ? 0x7fff_ffff : this.#worst;
    let [first, second, third] = [this.#worst, NOTHING, NOTHING];
    for (let i = 0; i < this.#count; i += 1) {
      const transit = this.#transits[i] ?? 0;
      if (transit < fastest) fastest = transit;
      if (transit <= third) continue;
      if (transit > first) [first, second, third] = [transit, first, second];
      else if (transit > second) [second, third] = [transit, second];
      else third = transit;
    }
    const ignored = Math.min(MAX_IGNORED, Math.floor(this.#count / FRAMES_PER_IGNORED));
    const slowest = ignored === 0 ? first : ignored === 1 ? second : third;
    const wanted = Math.max(slowest, fastest) + this.leastTicks;
    return (this.#reference + Math.min(wanted, fastest + this.mostTicks)) | 0;
  }
}
