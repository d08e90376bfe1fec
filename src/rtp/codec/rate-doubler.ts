import { kaiser, toSample } from './filter.js';

/**
 * Non-zero taps on each side of a half-band low-pass at 16 kHz (every second tap is zero). Its 63 taps pass 3.4 kHz, stop 4.6 kHz by more
 * than 55 dB, and delay by at most 31 samples of 16 kHz, 1.94 ms.
 */
const SIDE_TAPS = 16;
/** Samples per block at most, so that a stream's memory has a fixed size. */
const BLOCK = 320;

/** Weights of an interpolated sample: SIDE[j] for the j-th neighbour on each side. Their sum is 1. */
const SIDE = sideTaps();

function sideTaps(): Float64Array {
  const taps = Float64Array.from({ length: SIDE_TAPS }, (_, j) => {
    const distance = 2 * j + 1;
    const sinc = Math.sin((Math.PI * distance) / 2) / ((Math.PI * distance) / 2);
    return sinc * kaiser(distance / (2 * SIDE_TAPS));
  });
  const sum = taps.reduce((total, tap) => total + 2 * tap, 0);
  return taps.map((tap) => tap / sum);
}

/** Resamples a stream from 8 kHz to 16 kHz. Keeps its state between calls; allocates nothing. */
export class RateDoubler {
  /** The last samples, then the current block. */
  readonly #samples = new Float64Array(2 * SIDE_TAPS - 1 + BLOCK);

  /**
   * Writes two samples to `output` for each of `input`, which may have any length.
   * @returns the number of samples written
   * @throws RangeError when `output` is too small
   */
  process(input: Int16Array, output: Int16Array): number {
    if (output.length < 2 * input.length) throw new RangeError(`no room for ${2 * input.length} samples`);
    for (let start = 0; start < input.length; start += BLOCK) {
      const count = Math.min(BLOCK, input.length - start);
      this.#block(input, start, count, output);
    }
    return 2 * input.length;
  }

  #block(input: Int16Array, start: number, count: number, output: Int16Array): void {
    const samples = this.#samples;
    const kept = 2 * SIDE_TAPS - 1;
    for (let i = 0; i < count; i += 1) samples[kept + i] = input[start + i] ?? 0;
    for (let i = 0; i < count; i += 1) {
      // Between the two middle samples of the window that ends with the new sample.
      let sum = 0;
      for (let j = 0, before = i + SIDE_TAPS - 1, after = i + SIDE_TAPS; j < SIDE_TAPS; j += 1, before -= 1, after += 1) {
        sum += (SIDE[j] ?? 0) * ((samples[before] ?? 0) + (samples[after] ?? 0));
      }
      output[2 * (start + i)] = toSample(sum);
      output[2 * (start + i) + 1] = samples[i + SIDE_TAPS] ?? 0;
    }
    samples.copyWithin(0, count, count + kept);
  }
}

/** Resamples a stream from 16 kHz to 8 kHz. Keeps its state between calls; allocates nothing. */
export class RateHalver {
  readonly #samples = new Float64Array(4 * SIDE_TAPS - 2 + BLOCK);
  /** The next sample is the second of a pair. */
  #isOdd = false;

  /**
   * Writes one sample to `output` for every second one of `input`, counted from the start of the stream.
   * @returns the number of samples written
   * @throws RangeError when `output` is too small
   */
  process(input: Int16Array, output: Int16Array): number {
    const room = Math.floor((input.length + (this.#isOdd ? 1 : 0)) / 2);
    if (output.length < room) throw new RangeError(`no room for ${room} samples`);
    let written = 0;
    for (let start = 0; start < input.length; start += BLOCK) {
      written += this.#block(input, start, Math.min(BLOCK, input.length - start), output, written);
    }
    return written;
  }

  #block(input: Int16Array, start: number, count: number, output: Int16Array, at: number): number {
    const samples = this.#samples;
    const kept = 4 * SIDE_TAPS - 2;
    for (let i = 0; i < count; i += 1) samples[kept + i] = input[start + i] ?? 0;
    let written = 0;
    // The second sample of each pair ends a window. Half of its middle sample, plus half of what its neighbours interpolate.
    for (let i = this.#isOdd ? 0 : 1; i < count; i += 2) {
      const middle = i + 2 * SIDE_TAPS - 1;
      let sum = samples[middle] ?? 0;
      for (let j = 0, before = middle - 1, after = middle + 1; j < SIDE_TAPS; j += 1, before -= 2, after += 2) {
        sum += (SIDE[j] ?? 0) * ((samples[before] ?? 0) + (samples[after] ?? 0));
      }
      output[at + written] = toSample(sum / 2);
      written += 1;
    }
    this.#isOdd = this.#isOdd !== (count % 2 === 1);
    samples.copyWithin(0, count, count + kept);
    return written;
  }
}
