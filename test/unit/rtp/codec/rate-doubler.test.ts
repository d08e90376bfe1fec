import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateDoubler, RateHalver } from '../../../../src/rtp/codec/rate-doubler.js';
import { voiceLikeNoise } from '../../../support/media/audio.js';

interface Converter {
  process(input: Int16Array, output: Int16Array): number;
}

/** The whole input in pieces of these sizes, in turn. */
function convert(converter: Converter, input: Int16Array, sizes: readonly number[]): Int16Array {
  const parts: number[] = [];
  const output = new Int16Array(2 * Math.max(...sizes));
  for (let start = 0, turn = 0; start < input.length; turn += 1) {
    const piece = input.subarray(start, start + sizes[turn % sizes.length]!);
    const written = converter.process(piece, output);
    parts.push(...output.subarray(0, written));
    start += piece.length;
  }
  return Int16Array.from(parts);
}

const doubled = (input: Int16Array, ...sizes: number[]): Int16Array =>
  convert(new RateDoubler(), input, sizes.length === 0 ? [160] : sizes);
const halved = (input: Int16Array, ...sizes: number[]): Int16Array => convert(new RateHalver(), input, sizes.length === 0 ? [320] : sizes);

const AMPLITUDE = 10_000;

function tone(hz: number, rateHz: number, seconds = 1): Int16Array {
  return Int16Array.from({ length: rateHz * seconds }, (_, n) => Math.round(AMPLITUDE * Math.sin((2 * Math.PI * hz * n) / rateHz)));
}

/** What is in the signal at one frequency, in dB against a tone of AMPLITUDE; its beginning is left out. */
function levelAt(hz: number, rateHz: number, samples: Int16Array): number {
  let [real, imaginary] = [0, 0];
  const from = rateHz / 10;
  // Whole periods of each multiple of 10 Hz, under a window that keeps other tones out.
  const count = rateHz / 2;
  for (let n = 0; n < count; n += 1) {
    const weight = 1 - Math.cos((2 * Math.PI * n) / count);
    real += (samples[from + n] ?? 0) * weight * Math.cos((2 * Math.PI * hz * n) / rateHz);
    imaginary += (samples[from + n] ?? 0) * weight * Math.sin((2 * Math.PI * hz * n) / rateHz);
  }
  return 20 * Math.log10((2 * Math.hypot(real, imaginary)) / count / AMPLITUDE + 1e-9);
}

describe('the rate doubler and halver', () => {
  it.each([100, 300, 1_000, 2_500, 3_000, 3_400])('pass a tone of %i Hz unchanged, within 0.2 dB', (hz) => {
    expect(Math.abs(levelAt(hz, 16_000, doubled(tone(hz, 8_000))))).toBeLessThan(0.2);
    expect(Math.abs(levelAt(hz, 8_000, halved(tone(hz, 16_000))))).toBeLessThan(0.2);
  });

  it.each([100, 1_000, 3_000, 3_400])('leave no image of a tone of %i Hz above 4 kHz once doubled, by 50 dB at least', (hz) => {
    expect(levelAt(8_000 - hz, 16_000, doubled(tone(hz, 8_000)))).toBeLessThan(-50);
  });

  it.each([4_600, 5_000, 6_000, 7_000, 7_900])('leave no alias of a tone of %i Hz once halved, by 50 dB at least', (hz) => {
    expect(levelAt(8_000 - hz, 8_000, halved(tone(hz, 16_000)))).toBeLessThan(-50);
  });

  it('delay by less than 2 ms each', () => {
    const impulse = (length: number): Int16Array => {
      const samples = new Int16Array(length);
      samples[length / 2] = 20_000;
      return samples;
    };
    const peak = (samples: Int16Array): number => samples.indexOf(Math.max(...samples));
    expect(peak(doubled(impulse(1_600))) / 16 - 100).toBeCloseTo(31 / 16, 5);
    expect(peak(halved(impulse(3_200))) / 8 - 100).toBeCloseTo(30 / 16, 5);
  });

  it('make the same stream of pieces of any size as of one piece', () => {
    const slow = voiceLikeNoise(4_000, 3);
    const fast = voiceLikeNoise(8_001, 4);
    const [allDoubled, allHalved] = [doubled(slow, 4_000), halved(fast, 8_001)];
    expect(allDoubled).toHaveLength(8_000);
    expect(allHalved).toHaveLength(4_000);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 }), (sizes) => {
        expect(doubled(slow, ...sizes)).toEqual(allDoubled);
        expect(halved(fast, ...sizes)).toEqual(allHalved);
      }),
      { numRuns: 25 },
    );
  });

  it('leave no clicks in a sine at the borders of frames', () => {
    const samples = doubled(tone(440, 8_000)).subarray(400);
    const expected = 2 * Math.sin((Math.PI * 440) / 16_000);
    let worst = 0;
    // The second difference of a sine is itself, scaled.
    for (let n = 1; n + 1 < samples.length; n += 1) {
      const bend = samples[n + 1]! - 2 * samples[n]! + samples[n - 1]!;
      worst = Math.max(worst, Math.abs(bend + expected ** 2 * samples[n]!));
    }
    expect(worst).toBeLessThan(8);
  });

  it('return a doubled signal as it was, 31 samples of 8 kHz later at most', () => {
    const original = tone(700, 8_000);
    const back = halved(doubled(original));
    // 31 and 30 of 16 kHz: 30.5 of 8 kHz. Between them lies the mean of two neighbours.
    let error = 0;
    for (let n = 1_000; n < 7_000; n += 1) {
      const before = Math.sin((2 * Math.PI * 700 * (n - 30.5)) / 8_000) * AMPLITUDE;
      error = Math.max(error, Math.abs(back[n]! - before));
    }
    expect(error).toBeLessThan(60);
  });

  it('keep constants and silence, and clip the loudest without wrapping', () => {
    const loud = Int16Array.from({ length: 800 }, (_, n) => (n % 40 < 20 ? 32_767 : -32_768));
    for (const samples of [doubled(loud), halved(loud)]) {
      expect(Math.max(...samples)).toBe(32_767);
      expect(Math.min(...samples)).toBe(-32_768);
    }
    expect(new Set(doubled(new Int16Array(400).fill(12_345)).subarray(100))).toEqual(new Set([12_345]));
    expect(new Set(halved(new Int16Array(400).fill(-999)).subarray(100))).toEqual(new Set([-999]));
    expect(new Set(doubled(new Int16Array(400)))).toEqual(new Set([0]));
  });

  it('throw when there is no room', () => {
    expect(() => new RateDoubler().process(new Int16Array(160), new Int16Array(319))).toThrow(RangeError);
    const halver = new RateHalver();
    expect(halver.process(new Int16Array(1), new Int16Array(0))).toBe(0);
    expect(() => halver.process(new Int16Array(1), new Int16Array(0))).toThrow(RangeError);
  });
});
