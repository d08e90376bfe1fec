import { sequenceDelta } from './rtp-packet.js';

// RFC 3550 A.1
const MAX_DROPOUT = 3_000;
const MAX_MISORDER = 100;

/** A sender's clock may be slow by 390 ppm at 50 packets a second before its packets seem later and later. */
const DRIFT_TICKS = 1 / 16;

/** Figures of one report block (RFC 3550 §6.4.1). */
export interface ReceptionFigures {
  /** Packets lost since the previous report, in 1/256. */
  readonly fractionLost: number;
  /** Since the start, a signed 24-bit number; negative when duplicates outnumber losses. */
  readonly cumulativeLost: number;
  readonly extendedHighestSequence: number;
  readonly jitterTicks: number;
}

/**
 * Reception figures of one source: RFC 3550 A.1, A.3 and A.8. Signalling announced the source, so there is no probation: its first packet
 * counts.
 */
export class ReceptionStatistics {
  #isStarted = false;
  #baseSequence = 0;
  #highestSequence = 0;
  #cycles = 0;
  #badSequence = -1;
  #received = 0;
  #expectedPrior = 0;
  #receivedPrior = 0;
  /** Sixteen times the jitter estimate, in ticks. */
  #jitterTimes16 = 0;
  #lastTransitTicks: number | undefined;
  /** Of late, and since the last look. */
  #fastestTransitTicks = 0;
  #fastestSinceLookTicks: number | undefined;
  /** Totals from before a restart of the source. */
  #earlierReceived = 0;
  #earlierLost = 0;

  constructor(private readonly clockRateHz: number) {}

  /**
   * Counts one packet. False if its sequence number jumps far: discard such a packet, unless a second one follows it, which means that the
   * source restarted (A.1).
   * @param hasMediaTime false for a packet whose timestamp is not its sampling instant, such as a telephone-event
   */
  receive(sequenceNumber: number, rtpTimestamp: number, arrivalMs: number, hasMediaTime: boolean): boolean {
    if (!this.#isStarted) {
      this.#restart(sequenceNumber);
    } else if (!this.#updateSequence(sequenceNumber)) {
      return false;
    }
    this.#received += 1;
    if (hasMediaTime) this.#updateJitter(rtpTimestamp, arrivalMs);
    return true;
  }

  get packetsReceived(): number {
    return this.#earlierReceived + this.#received;
  }

  get packetsLost(): number {
    return this.#earlierLost + Math.max(0, this.#expected() - this.#received);
  }

  get jitterMs(): number {
    return (this.#jitterTimes16 / 16 / this.clockRateHz) * 1_000;
  }

  /**
   * How many milliseconds longer than the fastest of late the fastest packet since the last look was on its way; `null`: there was none.
   * Jitter of the network does not delay the fastest one; a queue delays all.
   */
  takeDelayMs(): number | null {
    const fastest = this.#fastestSinceLookTicks;
    this.#fastestSinceLookTicks = undefined;
    return fastest === undefined ? null : (((fastest - this.#fastestTransitTicks) | 0) / this.clockRateHz) * 1_000;
  }

  /** The figures of the report that is sent now; the next fraction lost counts from here (A.3). */
  takeReport(): ReceptionFigures {
    const expected = this.#expected();
    const expectedInterval = expected - this.#expectedPrior;
    const lostInterval = expectedInterval - (this.#received - this.#receivedPrior);
    this.#expectedPrior = expected;
    this.#receivedPrior = this.#received;
    return {
      fractionLost: expectedInterval === 0 || lostInterval <= 0 ? 0 : Math.min(255, Math.floor((lostInterval * 256) / expectedInterval)),
      cumulativeLost: Math.max(-0x800000, Math.min(0x7fffff, expected - this.#received)),
      extendedHighestSequence: (this.#cycles + this.#highestSequence) >>> 0,
      jitterTicks: Math.floor(this.#jitterTimes16 / 16),
    };
  }

  #expected(): number {
    return this.#isStarted ? this.#cycles + this.#highestSequence - this.#baseSequence + 1 : 0;
  }

  #updateSequence(sequenceNumber: number): boolean {
    const delta = sequenceDelta(sequenceNumber, this.#highestSequence);
    if (delta > 0 && delta < MAX_DROPOUT) {
      if (sequenceNumber < this.#highestSequence) this.#cycles += 65_536;
      this.#highestSequence = sequenceNumber;
    } else if (delta <= -MAX_MISORDER || delta >= MAX_DROPOUT) {
      if (sequenceNumber !== this.#badSequence) {
        this.#badSequence = (sequenceNumber + 1) & 0xffff;
        return false;
      }
      this.#restart(sequenceNumber);
    }
    // Otherwise a duplicate or a reordered packet, which RFC 3550 §6.4.1 counts.
    return true;
  }

  #restart(sequenceNumber: number): void {
    this.#earlierLost = this.packetsLost;
    this.#earlierReceived += this.#received;
    this.#isStarted = true;
    this.#baseSequence = sequenceNumber;
    this.#highestSequence = sequenceNumber;
    this.#cycles = 0;
    this.#badSequence = -1;
    this.#received = 0;
    this.#expectedPrior = 0;
    this.#receivedPrior = 0;
    this.#lastTransitTicks = undefined;
  }

  // RFC 3550 A.8
  #updateJitter(rtpTimestamp: number, arrivalMs: number): void {
    const transitTicks = Math.round((arrivalMs * this.clockRateHz) / 1_000) - rtpTimestamp;
    const last = this.#lastTransitTicks;
    this.#lastTransitTicks = transitTicks;
    const difference = last === undefined ? Infinity : Math.abs((transitTicks - last) | 0);
    // A jump of a second or more is a restart of the source's timestamp, not jitter.
    const isRestart = difference >= this.clockRateHz;
    this.#updateFastest(transitTicks, isRestart);
    if (!isRestart) this.#jitterTimes16 += difference - Math.floor((this.#jitterTimes16 + 8) / 16);
  }

  #updateFastest(transitTicks: number, isRestart: boolean): void {
    if (isRestart) this.#fastestSinceLookTicks = undefined;
    const isFastest = isRestart || ((transitTicks - this.#fastestTransitTicks) | 0) < 0;
    this.#fastestTransitTicks = isFastest ? transitTicks : this.#fastestTransitTicks + DRIFT_TICKS;
    const since = this.#fastestSinceLookTicks;
    if (since === undefined || ((transitTicks - since) | 0) < 0) this.#fastestSinceLookTicks = transitTicks;
  }
}

/** Ten minutes at one sample per 5 s; a longer call has fewer per minute. */
const MAX_SAMPLES = 120;
/** What a receiver's jitter buffer adds to the delay beyond the jitter. */
const BUFFER_MS = 20;

/** One direction, as in an RTCP report. */
export interface ReportedStream {
  /** Share of packets lost since the previous report, 0 to 1. */
  readonly lossRate: number;
  readonly jitterMs: number;
}

/** The figures at one moment. */
export interface QualityReading {
  readonly atMs: number;
  readonly fromCaller: ReportedStream | null;
  readonly toCaller: ReportedStream | null;
  readonly roundTripMs: number | null;
}

/** A call's quality over time, in a bounded number of samples. */
export class QualityLog {
  #samples: QualitySample[] = [];
  /** Reports per sample, and the reports that wait to become one. */
  #step = 1;
  #waiting: QualitySample[] = [];

  add({ atMs, fromCaller, toCaller, roundTripMs }: QualityReading): void {
    this.#waiting.push({
      at_ms: Math.round(atMs),
      from_caller: sampleOf(fromCaller, roundTripMs),
      to_caller: sampleOf(toCaller, roundTripMs),
      round_trip_ms: tenths(roundTripMs),
    });
    if (this.#waiting.length < this.#step) return;
    this.#samples.push(merged(this.#waiting));
    this.#waiting = [];
    if (this.#samples.length < MAX_SAMPLES) return;
    this.#step *= 2;
    this.#samples = Array.from({ length: MAX_SAMPLES / 2 }, (_, index) => merged(this.#samples.slice(2 * index, 2 * index + 2)));
  }

  /** Oldest first. */
  get samples(): readonly QualitySample[] {
    return this.#waiting.length === 0 ? this.#samples : [...this.#samples, merged(this.#waiting)];
  }
}

function sampleOf(stream: ReportedStream | null, roundTripMs: number | null): StreamSample | null {
  if (stream === null) return null;
  const { lossRate, jitterMs } = stream;
  const mos = meanOpinionScore({ lossRate, delayMs: (roundTripMs ?? 0) / 2 + 2 * jitterMs + BUFFER_MS });
  return { lost_percent: rounded(100 * lossRate, 100), jitter_ms: rounded(jitterMs, 10), mos: rounded(mos, 100) };
}

/** Merges samples into one with the worst values. */
function merged(samples: readonly QualitySample[]): QualitySample {
  const streams = (direction: 'from_caller' | 'to_caller'): StreamSample | null => {
    const heard = samples.map((sample) => sample[direction]).filter((stream) => stream !== null);
    if (heard.length === 0) return null;
    return {
      lost_percent: Math.max(...heard.map(({ lost_percent: lost }) => lost)),
      jitter_ms: Math.max(...heard.map(({ jitter_ms: jitter }) => jitter)),
      mos: Math.min(...heard.map(({ mos }) => mos)),
    };
  };
  const roundTrips = samples.map(({ round_trip_ms: roundTrip }) => roundTrip).filter((roundTrip) => roundTrip !== null);
  return {
    at_ms: samples.at(-1)?.at_ms ?? 0,
    from_caller: streams('from_caller'),
    to_caller: streams('to_caller'),
    round_trip_ms: roundTrips.length === 0 ? null : Math.max(...roundTrips),
  };
}

function tenths(ms: number | null): number | null {
  return ms === null ? null : rounded(ms, 10);
}

function rounded(value: number, parts: number): number {
  return Math.round(value * parts) / parts;
}

/** Audio of one direction since the previous sample. */
export interface StreamSample {
  /** Percent of the expected packets, 0 to 100. */
  readonly lost_percent: number;
  /** RFC 3550 §6.4.1, at the end of the interval. */
  readonly jitter_ms: number;
  /** Mean opinion score by the E-model, 1.0 to 4.5. */
  readonly mos: number;
}

/** A call's quality at one moment. */
export interface QualitySample {
  /** Milliseconds after audio began. */
  readonly at_ms: number;
  /** `null`: no packet since the previous sample, for example during hold. */
  readonly from_caller: StreamSample | null;
  /** By the caller's RTCP reports; `null`: none since the previous sample. */
  readonly to_caller: StreamSample | null;
  /** By RTCP. */
  readonly round_trip_ms: number | null;
}

/** Input of the E-model. */
interface HeardQuality {
  /** Share of lost packets, 0 to 1. */
  readonly lossRate: number;
  /** From mouth to ear, one way, in milliseconds. */
  readonly delayMs: number;
}

/** ITU-T G.107 (06/2015) §7.7: R with all parameters at their defaults. */
const DEFAULT_R = 93.2;
/** Ie and Bpl of ITU-T G.113 Appendix I for G.711 with packet loss concealment, at random loss. */
const G711_EQUIPMENT_IMPAIRMENT = 0;
const G711_LOSS_ROBUSTNESS = 25.1;
/** One-way delay from which turn-taking suffers. */
const DELAY_KNEE_MS = 177.3;

/** The mean opinion score of G.711, 1.0 to 4.5, by the E-model of ITU-T G.107 with defaults for all but loss and delay. */
export function meanOpinionScore({ lossRate, delayMs }: HeardQuality): number {
  return scoreOfRating(DEFAULT_R - delayImpairment(Math.max(0, delayMs)) - lossImpairment(Math.min(1, Math.max(0, lossRate))));
}

/** G.107 §7.5 with BurstR = 1: Ie,eff = Ie + (95 - Ie) · Ppl / (Ppl + Bpl). */
function lossImpairment(lossRate: number): number {
  const percent = 100 * lossRate;
  return G711_EQUIPMENT_IMPAIRMENT + ((95 - G711_EQUIPMENT_IMPAIRMENT) * percent) / (percent + G711_LOSS_ROBUSTNESS);
}

/**
 * Id of G.107 §7.4 at the default echo loss, as two straight lines: Cole and Rosenbluth, “Voice over IP performance monitoring”,
 * ACM SIGCOMM Computer Communication Review 31(2), 2001.
 */
function delayImpairment(delayMs: number): number {
  return 0.024 * delayMs + 0.11 * Math.max(0, delayMs - DELAY_KNEE_MS);
}

/** G.107 Annex B: R, 0 to 100, as a mean opinion score. */
export function scoreOfRating(r: number): number {
  if (r <= 0) return 1;
  if (r >= 100) return 4.5;
  // The cubic dips below 1 for the smallest of R.
  return Math.max(1, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6);
}
