import { setImmediate } from 'node:timers/promises';

/** Zero crossings of the sinc on each side; with a Blackman window its first stop-band lobe is below -70 dB. */
const ZERO_CROSSINGS = 16;
/** The cut-off as a part of the lower rate's Nyquist frequency: room for the filter's slope. */
const CUT_OFF = 0.92;

interface Kernel {
  /** Output sample n lies at input position n · step / phases. */
  readonly phases: number;
  readonly step: number;
  readonly tapsPerSide: number;
  /** One row of 2 · tapsPerSide coefficients a phase. */
  readonly rows: Float64Array;
}

const kernels = new Map<string, Kernel>();

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function blackman(x: number): number {
  // x from -1 to 1 over the window.
  return Math.abs(x) >= 1 ? 0 : 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x);
}

function kernelFor(fromHz: number, toHz: number): Kernel {
  const key = `${fromHz}:${toHz}`;
  const known = kernels.get(key);
  if (known !== undefined) return known;
  const divisor = greatestCommonDivisor(fromHz, toHz);
  const phases = toHz / divisor;
  const step = fromHz / divisor;
  const cutOff = CUT_OFF * Math.min(1, toHz / fromHz);
  const tapsPerSide = Math.ceil(ZERO_CROSSINGS / cutOff);
  const rows = new Float64Array(phases * 2 * tapsPerSide);
  for (let phase = 0; phase < phases; phase += 1) {
    let sum = 0;
    const start = phase * 2 * tapsPerSide;
    for (let tap = 0; tap < 2 * tapsPerSide; tap += 1) {
      const distance = tap - tapsPerSide + 1 - phase / phases;
      const coefficient = sinc(cutOff * distance) * blackman(distance / tapsPerSide);
      rows[start + tap] = coefficient;
      sum += coefficient;
    }
    // Each phase passes a constant unchanged, else the phases would sound as a tone.
    for (let tap = 0; tap < 2 * tapsPerSide; tap += 1) rows[start + tap] = (rows[start + tap] ?? 0) / sum;
  }
  const kernel: Kernel = { phases, step, tapsPerSide, rows };
  kernels.set(key, kernel);
  return kernel;
}

/** Output samples that are worked out in one turn of the event loop: about 1 ms, so that a media thread keeps its pace. */
const SAMPLES_A_TURN = 2_000;

/**
 * 16-bit linear samples at another rate, through a windowed-sinc low-pass below the lower rate's Nyquist frequency. What is long takes many
 * turns of the event loop.
 * Rejects with RangeError for a rate that is no integer from 1,000 to 192,000.
 */
export async function resample(samples: Int16Array, fromHz: number, toHz: number): Promise<Int16Array> {
  for (const rateHz of [fromHz, toHz]) {
    if (!Number.isInteger(rateHz) || rateHz < 1_000 || rateHz > 192_000) throw new RangeError(`sample rate ${rateHz} Hz`);
  }
  if (fromHz === toHz) return samples.slice();
  const kernel = kernelFor(fromHz, toHz);
  const output = new Int16Array(Math.floor((samples.length * kernel.phases) / kernel.step));
  for (let from = 0; from < output.length; from += SAMPLES_A_TURN) {
    if (from > 0) await setImmediate();
    convert(kernel, samples, output, from, Math.min(from + SAMPLES_A_TURN, output.length));
  }
  return output;
}

function convert({ phases, step, tapsPerSide, rows }: Kernel, samples: Int16Array, output: Int16Array, from: number, to: number): void {
  for (let n = from; n < to; n += 1) {
    const position = n * step;
    const first = Math.floor(position / phases) - tapsPerSide + 1;
    const row = (position % phases) * 2 * tapsPerSide;
    let sum = 0;
    for (let tap = 0; tap < 2 * tapsPerSide; tap += 1) sum += (samples[first + tap] ?? 0) * (rows[row + tap] ?? 0);
    output[n] = Math.max(-32_768, Math.min(32_767, Math.round(sum)));
  }
}
