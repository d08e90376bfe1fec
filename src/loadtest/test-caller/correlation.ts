import { Fft } from './fft.js';

/** Audio that may still change behind the last look: packets that came out of order. 100 ms at 8 kHz. */
const LATE_SAMPLES = 800;

export interface Match {
  /** Where in the received audio the phrase begins best, in samples. */
  readonly offsetSamples: number;
  /** Normalised cross-correlation there: 1 is the same audio at any volume, 0 is nothing in common. */
  readonly score: number;
}

/**
 * The normalised cross-correlation of `expected` with `received` at every offset at which it lies wholly inside: -1 to 1 each.
 * Empty when `received` is shorter. A silent stretch scores 0.
 */
export function crossCorrelation(received: Int16Array, expected: Int16Array): Float32Array {
  const offsets = received.length - expected.length + 1;
  if (offsets <= 0 || expected.length === 0) return new Float32Array(0);
  const products = slidingProducts(received, expected, offsets);
  const expectedEnergy = energyOf(expected);
  // Below about -80 dBFS a stretch is noise of the codec; dividing by its energy would make a match of anything.
  const floor = expected.length * 9;
  const scores = new Float32Array(offsets);
  let energy = energyOf(received.subarray(0, expected.length));
  for (let offset = 0; offset < offsets; offset += 1) {
    scores[offset] = energy < floor || expectedEnergy < floor ? 0 : (products[offset] ?? 0) / Math.sqrt(energy * expectedEnergy);
    energy += (received[offset + expected.length] ?? 0) ** 2 - (received[offset] ?? 0) ** 2;
  }
  return scores;
}

/** The best place of `expected` in `received`, or `null` when `received` is shorter. The same rate for both. */
export function findPhrase(received: Int16Array, expected: Int16Array): Match | null {
  const scores = crossCorrelation(received, expected);
  if (scores.length === 0) return null;
  let best = 0;
  for (let offset = 1; offset < scores.length; offset += 1) if ((scores[offset] ?? 0) > (scores[best] ?? 0)) best = offset;
  return { offsetSamples: best, score: scores[best] ?? 0 };
}

/** Looks for one phrase in a recording that grows: each look costs what came since the last one, so that it does not delay the call's audio. */
export class PhraseSearch {
  #searched = 0;
  #score = 0;

  constructor(private readonly expected: Int16Array) {}

  /** The best score so far. `received` begins where it began before. */
  look(received: Int16Array): number {
    const from = Math.max(0, this.#searched - this.expected.length - LATE_SAMPLES);
    this.#searched = received.length;
    this.#score = Math.max(this.#score, findPhrase(received.subarray(from), this.expected)?.score ?? 0);
    return this.#score;
  }
}

/** Every place where `expected` scores at least `minimumScore`, best of each neighbourhood of one phrase's length, in order of time. */
export function findPhrases(received: Int16Array, expected: Int16Array, minimumScore: number): Match[] {
  const scores = crossCorrelation(received, expected);
  const matches: { offsetSamples: number; score: number }[] = [];
  for (let offset = 0; offset < scores.length; offset += 1) {
    const score = scores[offset] ?? 0;
    if (score < minimumScore) continue;
    const last = matches.at(-1);
    if (last === undefined || offset - last.offsetSamples >= expected.length) matches.push({ offsetSamples: offset, score });
    else if (score > last.score) Object.assign(last, { offsetSamples: offset, score });
  }
  return matches;
}

function energyOf(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return sum;
}

/** Sums of received[offset + i] · expected[i], by FFT in overlapping blocks, so that memory does not grow with `received`. */
function slidingProducts(received: Int16Array, expected: Int16Array, offsets: number): Float64Array {
  const fft = new Fft(2 ** Math.max(10, Math.ceil(Math.log2(2 * expected.length))));
  const phraseReal = new Float64Array(fft.size);
  const phraseImaginary = new Float64Array(fft.size);
  phraseReal.set(expected);
  fft.transform(phraseReal, phraseImaginary);

  const products = new Float64Array(offsets);
  const real = new Float64Array(fft.size);
  const imaginary = new Float64Array(fft.size);
  const advance = fft.size - expected.length + 1;
  for (let start = 0; start < offsets; start += advance) {
    real.fill(0);
    imaginary.fill(0);
    real.set(received.subarray(start, start + fft.size));
    fft.transform(real, imaginary);
    multiplyByConjugate(real, imaginary, phraseReal, phraseImaginary);
    fft.inverse(real, imaginary);
    products.set(real.subarray(0, Math.min(advance, offsets - start)), start);
  }
  return products;
}

function multiplyByConjugate(real: Float64Array, imaginary: Float64Array, otherReal: Float64Array, otherImaginary: Float64Array): void {
  for (let i = 0; i < real.length; i += 1) {
    const [a, b, c, d] = [real[i] ?? 0, imaginary[i] ?? 0, otherReal[i] ?? 0, otherImaginary[i] ?? 0];
    real[i] = a * c + b * d;
    imaginary[i] = b * c - a * d;
  }
}
