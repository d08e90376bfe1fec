import { addTicks, timestampDelta } from './rtp-packet.js';

export interface JitterBufferOptions {
  readonly clockRateHz: number;
  /** Delay of a new source's first samples. */
  readonly startMs: number;
  /** Bounds of the adaptive delay. */
  readonly leastMs: number;
  readonly mostMs: number;
  /** A packet further ahead than this is a timestamp jump of the source, not delay. */
  readonly maxAheadMs: number;
}

export interface JitterBufferFigures {
  readonly latePackets: number;
  readonly duplicatePackets: number;
  /** Samples concealed by repetition or silence, because none had arrived or to increase the delay. */
  readonly concealedSamples: number;
  /** Samples discarded because the delay was longer than needed. */
  readonly skippedSamples: number;
  /** Audible changes of the delay; single samples that are left out or doubled do not count. */
  readonly adjustments: number;
  /** Restarts: another SSRC, a timestamp jump, a lasting change of delay. */
  readonly restarts: number;
}

export type PushOutcome = 'stored' | 'late' | 'duplicate' | 'restarted';

const DEFAULTS: JitterBufferOptions = { clockRateHz: 8_000, startMs: 40, leastMs: 20, mostMs: 200, maxAheadMs: 500 };
/** A power of two, so that indexes survive the timestamp's wrap at 2^32. Just over one second. */
const CAPACITY = 8_192;
/** Played samples are remembered for 256 ms, so that a late duplicate does not count as a late packet. */
const REMEMBERED = 2_048;
/** The buffer adjusts its delay once a second. */
const ADAPT_PULLS = 50;
const DRY_PULLS = 10;
const LATE_PULLS = 5;
const LATE_PACKETS = 3;
/** An excess delay above this is too long to reduce sample by sample. */
const MAX_SLIP_MS = 60;
/** A smaller difference is ignored. */
const MIN_SHIFT_MS = 10;

/** Pulls per doubled or omitted sample within sound: 0.06 % of pitch, or 0.12 % for a large difference. */
const SLIP_PULLS = 10;
const URGENT_SLIP_PULLS = 5;
const URGENT_SHIFT_MS = 30;
/** Below this level, about -50 dBFS, the signal is a pause, in which many samples may be added or removed. */
const QUIET_PEAK = 100;
const QUIET_SHIFT_TICKS = 40;

const NO_SAMPLES = new Int16Array(0);
const NO_STATES = new Uint8Array(0);

const MISSING = 0;
const WAITING = 1;
const PLAYED = 2;

/**
 * Turns packets of any length, early, late, duplicated or lost, into an even stream. It stores samples at their RTP timestamp, so order
 * and packet time do not matter. It conceals missing samples with the last 20 ms, faded out within 60 ms.
 *
 * The delay follows the jitter (`DelayTarget`). It grows at once when packets arrive too late, within the concealment. The buffer
 * compensates small differences, such as clock drift, in pauses, and within sound by leaving out or doubling a single sample now and then
 * where it changes the signal least: more would detune tones. Its clock is the pulls: a frame's time is that between two of them.
 */
export class JitterBuffer {
  readonly #options: JitterBufferOptions;
  readonly #fadeTicks: number;
  readonly #target: DelayTarget;
  // Empty until the first packet: a call may have none.
  #samples = NO_SAMPLES;
  #states = NO_STATES;
  #history = NO_SAMPLES;
  #ssrc: number | undefined;
  /** The timestamp of the next sample to play. */
  #playTimestamp = 0;
  /** Samples pulled so far, modulo 2^32. */
  #pulledTicks = 0;
  /** One after the newest stored sample. */
  #endTimestamp = 0;
  #historyIndex = 0;
  #concealedRun = Infinity;
  #pullsSinceStored = 0;
  #lateRun = 0;
  #pullsSinceLate = 0;
  #pullsUntilAdapt = ADAPT_PULLS;
  /** Samples to conceal before the next one is played. */
  #waitTicks = 0;
  /** Samples to double; negative: to leave out. */
  #shiftTicks = 0;
  #pullsSinceSlip = 0;
  #figures = { latePackets: 0, duplicatePackets: 0, concealedSamples: 0, skippedSamples: 0, adjustments: 0, restarts: 0 };

  constructor(options: Partial<JitterBufferOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    this.#fadeTicks = this.#ticks(60);
    this.#target = new DelayTarget(this.#ticks(this.#options.leastMs), this.#ticks(this.#options.mostMs));
  }

  get figures(): JitterBufferFigures {
    return { ...this.#figures };
  }

  /** Buffered audio in milliseconds; negative if playing has overtaken the packets. */
  get depthMs(): number {
    return (timestampDelta(this.#endTimestamp, this.#playTimestamp) * 1_000) / this.#options.clockRateHz;
  }

  /** Stores the samples of one packet, half a second at most. */
  push(ssrc: number, rtpTimestamp: number, samples: Int16Array): PushOutcome {
    const packet = samples.length > CAPACITY / 2 ? samples.subarray(0, CAPACITY / 2) : samples;
    if (ssrc !== this.#ssrc || this.#isJump(rtpTimestamp, packet.length)) return this.#restart(ssrc, rtpTimestamp, packet);
    const aheadTicks = timestampDelta(rtpTimestamp, this.#playTimestamp);
    if (aheadTicks < 0 && aheadTicks >= -REMEMBERED && this.#states[rtpTimestamp & (CAPACITY - 1)] === PLAYED) {
      this.#figures.duplicatePackets += 1;
      return 'duplicate';
    }
    if (aheadTicks + packet.length <= 0) {
      if (this.#isLastingDelay()) return this.#restart(ssrc, rtpTimestamp, packet);
      this.#target.onPacket((this.#pulledTicks - rtpTimestamp) | 0);
      this.#grow();
      return 'late';
    }
    this.#lateRun = 0;
    if (!this.#store(rtpTimestamp, packet)) {
      this.#figures.duplicatePackets += 1;
      return 'duplicate';
    }
    this.#target.onPacket((this.#pulledTicks - rtpTimestamp) | 0);
    if (aheadTicks < 0) this.#grow();
    return 'stored';
  }

  /** Fills `target` with the next samples; with silence until the first packet. */
  pull(target: Int16Array): void {
    if (this.#ssrc === undefined) {
      target.fill(0);
      return;
    }
    this.#target.onFrameTick();
    this.#adapt();
    this.#pullsSinceStored += 1;
    this.#pullsSinceLate += 1;
    const held = Math.min(this.#waitTicks, target.length);
    for (let i = 0; i < held; i += 1) target[i] = this.#conceal();
    this.#waitTicks -= held;
    this.#pulledTicks = addTicks(this.#pulledTicks, target.length);
    if (this.#shiftTicks === 0 || held > 0 || !this.#timeScale(target)) this.#read(target, held, target.length);
  }

  #ticks(milliseconds: number): number {
    return Math.round((milliseconds * this.#options.clockRateHz) / 1_000);
  }

  #isJump(rtpTimestamp: number, length: number): boolean {
    const aheadTicks = timestampDelta(rtpTimestamp, this.#playTimestamp);
    return aheadTicks + length > this.#ticks(this.#options.maxAheadMs) || aheadTicks < -CAPACITY;
  }

  /** Counts a late packet; true if so long a row of packets was late that a longer delay is better than losing them. */
  #isLastingDelay(): boolean {
    this.#figures.latePackets += 1;
    if (this.#lateRun === 0) this.#pullsSinceLate = 0;
    this.#lateRun += 1;
    return this.#pullsSinceStored >= DRY_PULLS || (this.#lateRun >= LATE_PACKETS && this.#pullsSinceLate >= LATE_PULLS);
  }

  #restart(ssrc: number, rtpTimestamp: number, packet: Int16Array): PushOutcome {
    if (this.#ssrc === undefined) {
      this.#samples = new Int16Array(CAPACITY);
      this.#states = new Uint8Array(CAPACITY);
      this.#history = new Int16Array(this.#ticks(20));
    } else {
      this.#figures.restarts += 1;
      this.#states.fill(MISSING);
    }
    this.#ssrc = ssrc;
    this.#playTimestamp = addTicks(rtpTimestamp, -this.#ticks(this.#options.startMs));
    this.#endTimestamp = rtpTimestamp;
    this.#lateRun = 0;
    this.#waitTicks = 0;
    this.#shiftTicks = 0;
    this.#pullsUntilAdapt = ADAPT_PULLS;
    const transit = (this.#pulledTicks - rtpTimestamp) | 0;
    this.#target.restart(transit);
    this.#target.onPacket(transit);
    this.#store(rtpTimestamp, packet);
    return 'restarted';
  }

  /** False if all samples were stored already. */
  #store(rtpTimestamp: number, samples: Int16Array): boolean {
    this.#pullsSinceStored = 0;
    const skip = Math.max(0, -timestampDelta(rtpTimestamp, this.#playTimestamp));
    let isNew = false;
    for (let i = skip; i < samples.length; i += 1) {
      const index = (rtpTimestamp + i) & (CAPACITY - 1);
      isNew ||= this.#states[index] !== WAITING;
      this.#samples[index] = samples[i] ?? 0;
      this.#states[index] = WAITING;
    }
    const end = addTicks(rtpTimestamp, samples.length);
    if (timestampDelta(end, this.#endTimestamp) > 0) this.#endTimestamp = end;
    return isNew;
  }

  /** Change of the delay that the target asks for, in ticks; negative: play earlier. */
  #missingDelay(): number {
    const transit = (this.#pulledTicks - this.#playTimestamp) | 0;
    return ((this.#target.targetDelay() - transit) | 0) - this.#waitTicks;
  }

  /** A packet arrived too late, wholly or in part. */
  #grow(): void {
    const missing = this.#missingDelay();
    if (missing <= 0) return;
    this.#waitTicks += missing;
    this.#shiftTicks = 0;
    this.#figures.adjustments += 1;
  }

  #adapt(): void {
    this.#pullsUntilAdapt -= 1;
    if (this.#pullsUntilAdapt > 0 || this.#target.framesSeen < ADAPT_PULLS) return;
    this.#pullsUntilAdapt = ADAPT_PULLS;
    const missing = this.#missingDelay();
    if (-missing > this.#ticks(MAX_SLIP_MS)) this.#skip(-missing);
    // Once begun, the adjustment goes on to its end: a remainder would be missing at the next one.
    else if (this.#shiftTicks !== 0 || Math.abs(missing) >= this.#ticks(MIN_SHIFT_MS)) this.#shiftTicks = missing;
  }

  #skip(ticks: number): void {
    for (let i = 0; i < ticks; i += 1) this.#consume();
    this.#shiftTicks = 0;
    this.#figures.skippedSamples += ticks;
    this.#figures.adjustments += 1;
  }

  /** Whether the next samples are stored; checks the first and the last of them. */
  #isWaiting(count: number): boolean {
    const first = this.#states[this.#playTimestamp & (CAPACITY - 1)];
    return first === WAITING && this.#states[(this.#playTimestamp + count - 1) & (CAPACITY - 1)] === WAITING;
  }

  #read(target: Int16Array, from: number, to: number): void {
    for (let i = from; i < to; i += 1) {
      const index = this.#consume();
      target[i] = this.#states[index] === PLAYED ? this.#play(this.#samples[index] ?? 0) : this.#conceal();
    }
  }

  /** Frees the index of the sample just played. */
  #consume(): number {
    const index = this.#playTimestamp & (CAPACITY - 1);
    if (this.#states[index] === WAITING) this.#states[index] = PLAYED;
    // Far enough behind, the index belongs to a future timestamp.
    this.#states[(this.#playTimestamp - REMEMBERED) & (CAPACITY - 1)] = MISSING;
    this.#playTimestamp = addTicks(this.#playTimestamp, 1);
    return index;
  }

  /** Fills `target` with one sample more or fewer than it has, or with many in a pause; false when the signal does not allow it. */
  #timeScale(target: Int16Array): boolean {
    this.#pullsSinceSlip += 1;
    const many = Math.max(-QUIET_SHIFT_TICKS, Math.min(QUIET_SHIFT_TICKS, this.#shiftTicks));
    const isQuiet = this.#isQuiet(target.length - many);
    const count = isQuiet ? many : Math.sign(many);
    if (!isQuiet) {
      const isUrgent = Math.abs(this.#shiftTicks) > this.#ticks(URGENT_SHIFT_MS);
      if (this.#pullsSinceSlip < (isUrgent ? URGENT_SLIP_PULLS : SLIP_PULLS) || !this.#isWaiting(target.length - count)) return false;
    }
    this.#pullsSinceSlip = 0;
    this.#shiftTicks -= count;
    if (count > 0) this.#expand(target, count);
    else this.#accelerate(target, -count);
    return true;
  }

  /** Whether all of the next samples are stored and none is loud. */
  #isQuiet(count: number): boolean {
    for (let i = 0; i < count; i += 1) {
      const index = (this.#playTimestamp + i) & (CAPACITY - 1);
      if (this.#states[index] !== WAITING || Math.abs(this.#samples[index] ?? 0) > QUIET_PEAK) return false;
    }
    return true;
  }

  /** Consumes `count` samples fewer: doubles one. */
  #expand(target: Int16Array, count: number): void {
    const end = target.length - count;
    this.#read(target, 0, end);
    const at = smoothest(target, end);
    target.copyWithin(at + count, at, end);
    target.fill(target[at] ?? 0, at, at + count);
  }

  /** Consumes `count` samples more: leaves them out. */
  #accelerate(target: Int16Array, count: number): void {
    // Several are left out only in a pause.
    for (let i = 1; i < count; i += 1) this.#consume();
    this.#read(target, 0, target.length);
    const at = smoothest(target, target.length);
    target.copyWithin(at, at + 1);
    this.#read(target, target.length - 1, target.length);
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
}

/** The index, among the first `length` samples, where two neighbours differ least. */
function smoothest(samples: Int16Array, length: number): number {
  let best = 0;
  let least = Infinity;
  for (let i = 0; i + 1 < length; i += 1) {
    const step = Math.abs((samples[i + 1] ?? 0) - (samples[i] ?? 0));
    if (step < least) [best, least] = [i, step];
  }
  return best;
}

/** Frames in the window: ten seconds. */
const KEPT = 500;
/** Frames in the window that may be later than the target: an occasional stall must not delay everything. */
const MAX_IGNORED = 2;
/** Frames per second that may be later while the window fills. */
const FRAMES_PER_IGNORED = 50;

const NOTHING = -0x8000_0000;
const NO_TRANSITS = new Int32Array(0);

/**
 * Measures how late packets arrive, and so how long audio must wait for them. Transit is the arrival time minus the RTP timestamp, in ticks
 * of any origin: only differences count. Each frame counts its latest packet only, so that a burst after a stall is one event.
 */
export class DelayTarget {
  #transits = NO_TRANSITS;
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
    if (this.#transits.length === 0) this.#transits = new Int32Array(KEPT);
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
