/** Frames in the window: ten seconds. */
const KEPT = 500;
/** Frames in the window that may be later than the target: an occasional stall must not delay everything. */
const MAX_IGNORED = 2;
/** Frames per second that may be later while the window fills. */
const FRAMES_PER_IGNORED = 50;

const NOTHING = -0x8000_0000;

/**
 * Measures how late packets arrive, and so how long audio must wait for them. Transit is the arrival time minus the RTP timestamp, in ticks
 * of any origin: only differences count. Each frame counts its latest packet only, so that a burst after a stall is one event.
 */
export class DelayTarget {
  readonly #transits = new Int32Array(KEPT);
  #reference = 0;
  #count = 0;
  #place = 0;
  /** The current frame's largest delay. */
  #worst = NOTHING;

  /** @param leastTicks added to the target for jitter not seen yet; @param mostTicks the longest wait */
  constructor(
    private readonly leastTicks: number,
    private readonly mostTicks: number,
  ) {}

  /** Frames with packets so far. */
  get framesSeen(): number {
    return this.#count;
  }

  /** Forgets everything: the path or the source changed. */
  restart(transitTicks: number): void {
    this.#reference = transitTicks;
    this.#count = 0;
    this.#place = 0;
    this.#worst = NOTHING;
  }

  /** Counts a packet that is no duplicate. */
  onPacket(transitTicks: number): void {
    this.#worst = Math.max(this.#worst, (transitTicks - this.#reference) | 0);
  }

  /** Ends the current frame. */
  onFrameTick(): void {
    if (this.#worst === NOTHING) return;
    this.#transits[this.#place] = this.#worst;
    this.#place = (this.#place + 1) % KEPT;
    this.#count = Math.min(KEPT, this.#count + 1);
    this.#worst = NOTHING;
  }

  /** The transit up to which packets are waited for: the latest one within the allowance, at least the minimum wait. */
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
