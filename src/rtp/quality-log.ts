import { meanOpinionScore } from './mos.js';

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
