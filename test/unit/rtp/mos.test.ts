import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { meanOpinionScore, scoreOfRating } from '../../../src/rtp/quality.js';

describe('the mean opinion score', () => {
  it.each([
    // ITU-T G.107 Annex B, Table B.1, and the default R of 93.2.
    [93.2, 4.41],
    [90, 4.34],
    [80, 4.03],
    [70, 3.6],
    [60, 3.1],
    [50, 2.58],
    [-5, 1],
    [101, 4.5],
  ])('of R %d is %d', (r, score) => {
    expect(Math.abs(scoreOfRating(r) - score)).toBeLessThanOrEqual(0.011);
  });

  it.each([
    // R = 93.2 - 0.024 d - 0.11 (d - 177.3)+ - 95 p / (p + 25.1), worked out by hand.
    [0, 0, 93.2],
    [0.01, 0, 89.56],
    [0.05, 0, 77.42],
    [0.251, 0, 45.7],
    [0, 150, 89.6],
    [0, 277.3, 75.54],
    [0.02, 100, 83.79],
  ])('with a loss of %d and %d ms follows R of %d', (lossRate, delayMs, r) => {
    expect(meanOpinionScore({ lossRate, delayMs })).toBeCloseTo(scoreOfRating(r), 2);
  });

  it('lies between 1.0 and 4.5, and never improves with more loss or delay', () => {
    const rate = fc.double({ min: -1, max: 2, noNaN: true });
    const delay = fc.double({ min: -100, max: 5_000, noNaN: true });
    fc.assert(
      fc.property(rate, rate, delay, delay, (a, b, x, y) => {
        const better = meanOpinionScore({ lossRate: Math.min(a, b), delayMs: Math.min(x, y) });
        const worse = meanOpinionScore({ lossRate: Math.max(a, b), delayMs: Math.max(x, y) });
        expect(worse).toBeGreaterThanOrEqual(1);
        expect(better).toBeLessThanOrEqual(4.5);
        expect(worse).toBeLessThanOrEqual(better + 1e-9);
      }),
    );
  });
});
