import { addTicks, timestampDelta } from './sequence.js';

export interface JitterBufferOptions {
  readonly clockRateHz: number;
  /** Samples wait at least this long for those that are late. */
  readonly targetMs: number;
  /** A packet further ahead than this is a jump of the source's timestamp, not delay. */
  readonly maxAheadMs: number;
}

export interface JitterBufferFigures {
  readonly latePackets: number;
  readonly duplicatePackets: number;
  /** Played from repetition or silence because nothing had come, in samples. */
  readonly concealedSamples: number;
  /** Thrown away because the buffer had grown beyond need, in samples. */
  readonly skippedSamples: number;
  /** Times that playing began anew: another SSRC, a jump of the timestamp, a lasting change of delay. */
  readonly restarts: number;
}

export type PushOutcome = 'stored' | 'late' | 'duplicate' | 'restarted';

const DEFAULTS: JitterBufferOptions = { clockRateHz: 8_000, targetMs: 60, maxAheadMs: 500 };
/** A power of two, so that a timestamp's place survives the wrap at 2^32. One second and a bit. */
const CAPACITY = 8_192;
/** One second of 20 ms frames over which the least depth is looked for. */
const SHRINK_WINDOW_PULLS = 50;
const DRY_PULLS = 10;
const LATE_PULLS = 5;
const LATE_PACKETS = 3;

/**
 * Turns packets of any length, early, late, twice or never, into an even stream. Samples lie at their RTP timestamp, so that order
 * and packet time do not matter. What is missing is repeated from the last 20 ms and faded out within 60 ms.
 *
 * The delay adapts: it grows when packets keep coming too late, and shrinks when the least depth over a second shows that the
 * target would have been enough.
 */
export class JitterBuffer {
  readonly #options: JitterBufferOptions;
  readonly #targetTicks: number;
  readonly #fadeTicks: number;
  readonly #samples = new Int16Array(CAPACITY);
  readonly #present = new Uint8Array(CAPACITY);
  readonly #history: Int16Array;
  #ssrc: number | undefined;
  /** The timestamp of the sample that is played next. */
  #playTimestamp = 0;
  /** One behind the newest sample that was stored. */
  #endTimestamp = 0;
  #historyIndex = 0;
  #concealedRun = Infinity;
  #pullsSinceStored = 0;
  #lateRun = 0;
  #pullsSinceLate = 0;
  #windowPulls = 0;
  #windowLeastTicks = Infinity;
  #figures = { latePackets: 0, duplicatePackets: 0, concealedSamples: 0, skippedSamples: 0, restarts: 0 };

  constructor(options: Partial<JitterBufferOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    this.#targetTicks = this.#ticks(this.#options.targetMs);
    this.#fadeTicks = this.#ticks(60);
    this.#history = new Int16Array(this.#ticks(20));
  }

  get figures(): JitterBufferFigures {
    return { ...this.#figures };
  }

  /** How much is waiting, in milliseconds; negative when playing has run beyond what came. */
  get depthMs(): number {
    return (timestampDelta(this.#endTimestamp, this.#playTimestamp) * 1_000) / this.#options.clockRateHz;
  }

  /** Stores the samples of one packet. At most half a second is taken. */
  push(ssrc: number, rtpTimestamp: number, samples: Int16Array): PushOutcome {
    const packet = samples.length > CAPACITY / 2 ? samples.subarray(0, CAPACITY / 2) : samples;
    if (ssrc !== this.#ssrc || this.#isJump(rtpTimestamp, packet.length)) {
      this.#restart(ssrc, rtpTimestamp);
      this.#store(rtpTimestamp, packet);
      return 'restarted';
    }
    if (timestampDelta(rtpTimestamp, this.#playTimestamp) + packet.length <= 0) {
      if (!this.#isLastingDelay()) return 'late';
      this.#restart(ssrc, rtpTimestamp);
      this.#store(rtpTimestamp, packet);
      return 'restarted';
    }
    this.#lateRun = 0;
    return this.#store(rtpTimestamp, packet) ? 'stored' : 'duplicate';
  }

  /** Fills `target` with the next samples; with silence as long as nothing has come. */
  pull(target: Int16Array): void {
    if (this.#ssrc === undefined) {
      target.fill(0);
      return;
    }
    this.#shrink(target.length);
    this.#pullsSinceStored += 1;
    if (this.#lateRun > 0) this.#pullsSinceLate += 1;
    for (let i = 0; i < target.length; i += 1) {
      const index = (this.#playTimestamp + i) & (CAPACITY - 1);
      target[i] = this.#present[index] === 1 ? this.#play(this.#samples[index] ?? 0) : this.#conceal();
      this.#present[index] = 0;
    }
    this.#playTimestamp = addTicks(this.#playTimestamp, target.length);
  }

  #ticks(milliseconds: number): number {
    return Math.round((milliseconds * this.#options.clockRateHz) / 1_000);
  }

  #isJump(rtpTimestamp: number, length: number): boolean {
    const aheadTicks = timestampDelta(rtpTimestamp, this.#playTimestamp);
    return aheadTicks + length > this.#ticks(this.#options.maxAheadMs) + this.#targetTicks || aheadTicks < -CAPACITY;
  }

  /** Counts a late packet; true when they have been late for so long that waiting longer is better than losing them. */
  #isLastingDelay(): boolean {
    this.#figures.latePackets += 1;
    if (this.#lateRun === 0) this.#pullsSinceLate = 0;
    this.#lateRun += 1;
    return this.#pullsSinceStored >= DRY_PULLS || (this.#lateRun >= LATE_PACKETS && this.#pullsSinceLate >= LATE_PULLS);
  }

  #restart(ssrc: number, rtpTimestamp: number): void {
    if (this.#ssrc !== undefined) this.#figures.restarts += 1;
    this.#present.fill(0);
    this.#ssrc = ssrc;
    this.#playTimestamp = addTicks(rtpTimestamp, -this.#targetTicks);
    this.#endTimestamp = rtpTimestamp;
    this.#lateRun = 0;
    this.#windowPulls = 0;
    this.#windowLeastTicks = Infinity;
  }

  /** False when all of it was there already. */
  #store(rtpTimestamp: number, samples: Int16Array): boolean {
    this.#pullsSinceStored = 0;
    const skip = Math.max(0, -timestampDelta(rtpTimestamp, this.#playTimestamp));
    let isNew = false;
    for (let i = skip; i < samples.length; i += 1) {
      const index = (rtpTimestamp + i) & (CAPACITY - 1);
      isNew ||= this.#present[index] === 0;
      this.#samples[index] = samples[i] ?? 0;
      this.#present[index] = 1;
    }
    if (!isNew) this.#figures.duplicatePackets += 1;
    const end = addTicks(rtpTimestamp, samples.length);
    if (timestampDelta(end, this.#endTimestamp) > 0) this.#endTimestamp = end;
    return isNew;
  }

  #play(sample: number): number {
    this.#history[this.#historyIndex] = sample;
    this.#historyIndex = (this.#historyIndex + 1) % this.#history.length;
    this.#concealedRun = 0;
    return sample;
  }

  #conceal(): number {
    this.#figures.concealedSamples += 1;
    if (this.#concealedRun >= this.#fadeTicks) return 0;
    const sample = this.#history[(this.#historyIndex + this.#concealedRun) % this.#history.length] ?? 0;
    const gain = 1 - this.#concealedRun / this.#fadeTicks;
    this.#concealedRun += 1;
    return Math.round(sample * gain);
  }

  #shrink(pullTicks: number): void {
    const depthTicks = timestampDelta(this.#endTimestamp, this.#playTimestamp);
    this.#windowLeastTicks = Math.min(this.#windowLeastTicks, depthTicks);
    this.#windowPulls += 1;
    if (this.#windowPulls < SHRINK_WINDOW_PULLS) return;
    const excessTicks = this.#windowLeastTicks - this.#targetTicks - pullTicks;
    this.#windowPulls = 0;
    this.#windowLeastTicks = Infinity;
    if (excessTicks <= this.#ticks(40)) return;
    for (let i = 0; i < excessTicks; i += 1) this.#present[(this.#playTimestamp + i) & (CAPACITY - 1)] = 0;
    this.#playTimestamp = addTicks(this.#playTimestamp, excessTicks);
    this.#figures.skippedSamples += excessTicks;
  }
}
