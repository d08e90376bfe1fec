import { DelayTarget } from './delay-target.js';
import { addTicks, timestampDelta } from './sequence.js';

export interface JitterBufferOptions {
  readonly clockRateHz: number;
  /** Samples of a new source wait so long. */
  readonly startMs: number;
  /** The bounds between which the delay follows the jitter. */
  readonly leastMs: number;
  readonly mostMs: number;
  /** A packet further ahead than this is a jump of the source's timestamp, not delay. */
  readonly maxAheadMs: number;
}

export interface JitterBufferFigures {
  readonly latePackets: number;
  readonly duplicatePackets: number;
  /** Played from repetition or silence because nothing had come, or to make the delay longer, in samples. */
  readonly concealedSamples: number;
  /** Thrown away because the buffer had grown beyond need, in samples. */
  readonly skippedSamples: number;
  /** Times that the delay was changed at once, which may be heard; single samples that are left out or doubled do not count. */
  readonly adjustments: number;
  /** Times that playing began anew: another SSRC, a jump of the timestamp, a lasting change of delay. */
  readonly restarts: number;
}

export type PushOutcome = 'stored' | 'late' | 'duplicate' | 'restarted';

const DEFAULTS: JitterBufferOptions = { clockRateHz: 8_000, startMs: 40, leastMs: 20, mostMs: 200, maxAheadMs: 500 };
/** A power of two, so that a timestamp's place survives the wrap at 2^32. One second and a bit. */
const CAPACITY = 8_192;
/** What was played is remembered for 256 ms, so that a late copy of it is not taken for a late packet. */
const REMEMBERED = 2_048;
/** The delay is looked at once a second. */
const LOOK_PULLS = 50;
const DRY_PULLS = 10;
const LATE_PULLS = 5;
const LATE_PACKETS = 3;
/** More than this is too long beyond need to be worked off sample by sample. */
const MAX_SLIP_MS = 60;
/** Less than this is not worth a change. */
const MIN_SLIP_MS = 10;

/** Pulls for each sample that is doubled or left out while there is sound: 0.06 % of pitch, or 0.12 % when much is to be made up for. */
const SLIP_PULLS = 10;
const URGENT_SLIP_PULLS = 5;
const URGENT_SLIP_MS = 30;
/** What stays below it, about -50 dBFS, is a pause: many samples may go or come there. */
const QUIET_PEAK = 100;
const QUIET_SLIP_TICKS = 40;

const MISSING = 0;
const WAITING = 1;
const PLAYED = 2;

/**
 * Turns packets of any length, early, late, twice or never, into an even stream. Samples lie at their RTP timestamp, so that order
 * and packet time do not matter. What is missing is repeated from the last 20 ms and faded out within 60 ms.
 *
 * The delay follows the jitter (`DelayTarget`). It grows at once when packets come too late, in what is concealed anyway. Small
 * differences, such as those of the two clocks, are made up for in pauses, and within sound by a single sample now and then that is left
 * out or doubled, where it changes the signal least: more would put tones out of tune. A frame's time is that between two pulls: they are the clock.
 */
export class JitterBuffer {
  readonly #options: JitterBufferOptions;
  readonly #fadeTicks: number;
  readonly #target: DelayTarget;
  readonly #samples = new Int16Array(CAPACITY);
  readonly #states = new Uint8Array(CAPACITY);
  readonly #history: Int16Array;
  #ssrc: number | undefined;
  /** The timestamp of the sample that is played next. */
  #playTimestamp = 0;
  /** Samples that were pulled, modulo 2^32. */
  #pulledTicks = 0;
  /** One behind the newest sample that was stored. */
  #endTimestamp = 0;
  #historyIndex = 0;
  #concealedRun = Infinity;
  #pullsSinceStored = 0;
  #lateRun = 0;
  #pullsSinceLate = 0;
  #pullsUntilLook = LOOK_PULLS;
  /** Samples to be concealed before the next one is played. */
  #holdTicks = 0;
  /** Samples to be doubled, or left out where negative. */
  #slipTicks = 0;
  #pullsSinceSlip = 0;
  #figures = { latePackets: 0, duplicatePackets: 0, concealedSamples: 0, skippedSamples: 0, adjustments: 0, restarts: 0 };

  constructor(options: Partial<JitterBufferOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    this.#fadeTicks = this.#ticks(60);
    this.#target = new DelayTarget(this.#ticks(this.#options.leastMs), this.#ticks(this.#options.mostMs));
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

  /** Fills `target` with the next samples; with silence as long as nothing has come. */
  pull(target: Int16Array): void {
    if (this.#ssrc === undefined) {
      target.fill(0);
      return;
    }
    this.#target.onFrameTick();
    this.#adapt();
    this.#pullsSinceStored += 1;
    if (this.#lateRun > 0) this.#pullsSinceLate += 1;
    const held = Math.min(this.#holdTicks, target.length);
    for (let i = 0; i < held; i += 1) target[i] = this.#conceal();
    this.#holdTicks -= held;
    this.#pulledTicks = addTicks(this.#pulledTicks, target.length);
    if (this.#slipTicks === 0 || held > 0 || !this.#timeScale(target)) this.#read(target, held, target.length);
  }

  #ticks(milliseconds: number): number {
    return Math.round((milliseconds * this.#options.clockRateHz) / 1_000);
  }

  #isJump(rtpTimestamp: number, length: number): boolean {
    const aheadTicks = timestampDelta(rtpTimestamp, this.#playTimestamp);
    return aheadTicks + length > this.#ticks(this.#options.maxAheadMs) || aheadTicks < -CAPACITY;
  }

  /** Counts a late packet; true when they have been late for so long that waiting longer is better than losing them. */
  #isLastingDelay(): boolean {
    this.#figures.latePackets += 1;
    if (this.#lateRun === 0) this.#pullsSinceLate = 0;
    this.#lateRun += 1;
    return this.#pullsSinceStored >= DRY_PULLS || (this.#lateRun >= LATE_PACKETS && this.#pullsSinceLate >= LATE_PULLS);
  }

  #restart(ssrc: number, rtpTimestamp: number, packet: Int16Array): PushOutcome {
    if (this.#ssrc !== undefined) this.#figures.restarts += 1;
    this.#states.fill(MISSING);
    this.#ssrc = ssrc;
    this.#playTimestamp = addTicks(rtpTimestamp, -this.#ticks(this.#options.startMs));
    this.#endTimestamp = rtpTimestamp;
    this.#lateRun = 0;
    this.#holdTicks = 0;
    this.#slipTicks = 0;
    this.#pullsUntilLook = LOOK_PULLS;
    const transit = (this.#pulledTicks - rtpTimestamp) | 0;
    this.#target.restart(transit);
    this.#target.onPacket(transit);
    this.#store(rtpTimestamp, packet);
    return 'restarted';
  }

  /** False when all of it was there already. */
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

  /** How much later than now samples would have to be played, in ticks; negative: earlier. */
  #missingDelay(): number {
    const transit = (this.#pulledTicks - this.#playTimestamp) | 0;
    return ((this.#target.targetDelay() - transit) | 0) - this.#holdTicks;
  }

  /** A packet came too late, all or in part. */
  #grow(): void {
    const missing = this.#missingDelay();
    if (missing <= 0) return;
    this.#holdTicks += missing;
    this.#slipTicks = 0;
    this.#figures.adjustments += 1;
  }

  #adapt(): void {
    this.#pullsUntilLook -= 1;
    if (this.#pullsUntilLook > 0 || this.#target.framesSeen < LOOK_PULLS) return;
    this.#pullsUntilLook = LOOK_PULLS;
    const missing = this.#missingDelay();
    if (-missing > this.#ticks(MAX_SLIP_MS)) this.#skip(-missing);
    // Once begun it goes on to the end: what is left over would be missing at the next change.
    else if (this.#slipTicks !== 0 || Math.abs(missing) >= this.#ticks(MIN_SLIP_MS)) this.#slipTicks = missing;
  }

  #skip(ticks: number): void {
    for (let i = 0; i < ticks; i += 1) this.#consume();
    this.#slipTicks = 0;
    this.#figures.skippedSamples += ticks;
    this.#figures.adjustments += 1;
  }

  /** Whether the next samples are there, looked at in the first and the last of them. */
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

  /** The place of the next sample, which is over with. */
  #consume(): number {
    const index = this.#playTimestamp & (CAPACITY - 1);
    if (this.#states[index] === WAITING) this.#states[index] = PLAYED;
    // Far enough behind, the place is one of a timestamp to come.
    this.#states[(this.#playTimestamp - REMEMBERED) & (CAPACITY - 1)] = MISSING;
    this.#playTimestamp = addTicks(this.#playTimestamp, 1);
    return index;
  }

  /** Fills `target` with a sample more or fewer than it has, or many in a pause; false when it is not the moment. */
  #timeScale(target: Int16Array): boolean {
    this.#pullsSinceSlip += 1;
    const many = Math.max(-QUIET_SLIP_TICKS, Math.min(QUIET_SLIP_TICKS, this.#slipTicks));
    const isQuiet = this.#isQuiet(target.length - many);
    const count = isQuiet ? many : Math.sign(many);
    if (!isQuiet) {
      const isUrgent = Math.abs(this.#slipTicks) > this.#ticks(URGENT_SLIP_MS);
      if (this.#pullsSinceSlip < (isUrgent ? URGENT_SLIP_PULLS : SLIP_PULLS) || !this.#isWaiting(target.length - count)) return false;
    }
    this.#pullsSinceSlip = 0;
    this.#slipTicks -= count;
    if (count > 0) this.#expand(target, count);
    else this.#accelerate(target, -count);
    return true;
  }

  /** Whether the next samples are all there and none is loud. */
  #isQuiet(count: number): boolean {
    for (let i = 0; i < count; i += 1) {
      const index = (this.#playTimestamp + i) & (CAPACITY - 1);
      if (this.#states[index] !== WAITING || Math.abs(this.#samples[index] ?? 0) > QUIET_PEAK) return false;
    }
    return true;
  }

  /** Plays `count` samples fewer: one is doubled instead. */
  #expand(target: Int16Array, count: number): void {
    const end = target.length - count;
    this.#read(target, 0, end);
    const at = smoothest(target, end);
    target.copyWithin(at + count, at, end);
    target.fill(target[at] ?? 0, at, at + count);
  }

  /** Plays `count` samples more, and leaves as many out. */
  #accelerate(target: Int16Array, count: number): void {
    // All but one of many: they are of a pause.
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

/** Where two neighbours differ least among the first `length` samples. */
function smoothest(samples: Int16Array, length: number): number {
  let best = 0;
  let least = Infinity;
  for (let i = 0; i + 1 < length; i += 1) {
    const step = Math.abs((samples[i + 1] ?? 0) - (samples[i] ?? 0));
    if (step < least) [best, least] = [i, step];
  }
  return best;
}
