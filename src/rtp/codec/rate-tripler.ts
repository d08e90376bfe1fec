import { kaiser, toSample } from './filter.js';

/**
 * A low-pass at 24 kHz. Its 97 taps pass 3.4 kHz, stop 4.6 kHz by more than 55 dB, and delay by 2 ms.
 */
const SIDE_TAPS = 48;
const TAPS = 2 * SIDE_TAPS + 1;
const FACTOR = 3;
const CUT_OFF_HZ = 4_000;
const HIGH_RATE_HZ = 24_000;
/** Samples of 24 kHz per block at most, so that a stream's memory has a fixed size. */
const BLOCK = 480;

/** Their sum is 1. */
const WEIGHTS = weights();

function weights(): Float64Array {
  const taps = Float64Array.from({ length: TAPS }, (_, i) => {
    const distance = i - SIDE_TAPS;
    const angle = (2 * Math.PI * CUT_OFF_HZ * distance) / HIGH_RATE_HZ;
    const sinc = distance === 0 ? 1 : Math.sin(angle) / angle;
    return sinc * kaiser(distance / (SIDE_TAPS + 1));
  });
  const sum = taps.reduce((total, tap) => total + tap, 0);
  return taps.map((tap) => tap / sum);
}

/** Resamples a stream from 24 kHz to 8 kHz. Keeps its state between calls, which may have any length. */
export class RateThird {
  readonly #samples = new Float64Array(TAPS - 1 + BLOCK);
  /** Samples until the next one of 8 kHz. */
  #phase = FACTOR - 1;

  process(input: Int16Array): Int16Array {
    const output = new Int16Array(Math.floor((input.length + FACTOR - 1 - this.#phase) / FACTOR));
    let written = 0;
    for (let start = 0; start < input.length; start += BLOCK) {
      const count = Math.min(BLOCK, input.length - start);
      for (let i = 0; i < count; i += 1) this.#samples[TAPS - 1 + i] = input[start + i] ?? 0;
      for (; this.#phase < count; this.#phase += FACTOR) {
        let sum = 0;
        for (let j = 0; j < TAPS; j += 1) sum += (WEIGHTS[j] ?? 0) * (this.#samples[this.#phase + j] ?? 0);
        output[written] = toSample(sum);
        written += 1;
      }
      this.#phase -= count;
      this.#samples.copyWithin(0, count, count + TAPS - 1);
    }
    return output;
  }
}

/** Resamples a stream from 8 kHz to 24 kHz. Keeps its state between calls. */
export class RateTripler {
  /** At 8 kHz: what the window reaches back to. */
  #samples = new Float64Array(Math.ceil(TAPS / FACTOR));

  /** Three samples for each of `input`. */
  process(input: Int16Array): Int16Array {
    const kept = this.#samples.length;
    const samples = new Float64Array(kept + input.length);
    samples.set(this.#samples);
    samples.set(input, kept);
    const output = new Int16Array(FACTOR * input.length);
    for (let n = 0; n < output.length; n += 1) {
      let sum = 0;
      // Between samples of 8 kHz there are zeros, whose weights do not matter.
      for (let j = n % FACTOR; j < TAPS; j += FACTOR) sum += (WEIGHTS[j] ?? 0) * (samples[kept + (n - j) / FACTOR] ?? 0);
      output[n] = toSample(FACTOR * sum);
    }
    this.#samples = samples.slice(-kept);
    return output;
  }
}
