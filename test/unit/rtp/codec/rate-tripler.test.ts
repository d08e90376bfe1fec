import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateThird, RateTripler } from '../../../../src/rtp/codec/rate-tripler.js';
import { voiceLikeNoise } from '../../../support/media/audio.js';

interface Converter {
  process(input: Int16Array): Int16Array;
}

/** The whole input in pieces of these sizes, in turn. */
function convert(converter: Converter, input: Int16Array, sizes: readonly number[] = [input.length]): Int16Array {
  const parts: number[] = [];
  for (let start = 0, turn = 0; start < input.length; turn += 1) {
    const piece = input.subarray(start, start + sizes[turn % sizes.length]!);
    parts.push(...converter.process(piece));
    start += piece.length;
  }
  return Int16Array.from(parts);
}

const tripled = (input: Int16Array, sizes?: readonly number[]): Int16Array => convert(new RateTripler(), input, sizes);
const third = (input: Int16Array, sizes?: readonly number[]): Int16Array => convert(new RateThird(), input, sizes);

const AMPLITUDE = 10_000;
/** Both delay by 2 ms: 48 samples of 24 kHz. Before that the stream begins. */
const DELAY = 48;

/** A tone at the sample `at` of a stream. */
const toneAt = (hz: number, rateHz: number, at: number): number => AMPLITUDE * Math.sin((2 * Math.PI * hz * at) / rateHz);
const tone = (hz: number, rateHz: number): Int16Array =>
  Int16Array.from({ length: rateHz / 4 }, (_, n) => Math.round(toneAt(hz, rateHz, n)));
/** The largest difference from what is expected at each sample, once the filter is full. */
const worst = (samples: Int16Array, expected: (n: number) => number): number =>
  samples.slice(100).reduce((most, sample, n) => Math.max(most, Math.abs(sample - expected(n + 100))), 0);

describe('the conversion between 8 and 24 kHz', () => {
  it.each([100, 1_000, 2_500, 3_400])('keeps a tone of %i Hz with a delay of 2 ms, within 200 of 10,000', (hz) => {
    expect(worst(tripled(tone(hz, 8_000)), (n) => toneAt(hz, 24_000, n - DELAY))).toBeLessThan(200);
    // Every third sample, beginning with the third.
    expect(worst(third(tone(hz, 24_000)), (n) => toneAt(hz, 24_000, 3 * n + 2 - DELAY))).toBeLessThan(200);
  });

  it.each([4_600, 6_000, 8_000, 11_000])('leaves no alias of a tone of %i Hz, by 55 dB at least', (hz) => {
    expect(worst(third(tone(hz, 24_000)), () => 0)).toBeLessThan(AMPLITUDE / 560 + 1);
  });

  it('makes the same stream of pieces of any size as of one piece', () => {
    const [slow, fast] = [voiceLikeNoise(2_000, 3), voiceLikeNoise(6_002, 4)];
    const [allTripled, allThird] = [tripled(slow), third(fast)];
    expect([allTripled.length, allThird.length]).toEqual([6_000, 2_000]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1_100 }), { minLength: 1, maxLength: 20 }), (sizes) => {
        expect(tripled(slow, sizes)).toEqual(allTripled);
        expect(third(fast, sizes)).toEqual(allThird);
      }),
      { numRuns: 25 },
    );
  });

  it('keeps constants, and clips the loudest without wrapping', () => {
    expect(worst(tripled(new Int16Array(200).fill(12_345)), () => 12_345)).toBeLessThan(5);
    expect(worst(third(new Int16Array(600).fill(-999)), () => -999)).toBe(0);
    const square = (half: number): Int16Array => Int16Array.from({ length: 1_200 }, (_, n) => (n % (2 * half) < half ? 32_767 : -32_768));
    for (const samples of [tripled(square(20)), third(square(60))]) {
      expect([Math.max(...samples), Math.min(...samples)]).toEqual([32_767, -32_768]);
    }
  });
});
