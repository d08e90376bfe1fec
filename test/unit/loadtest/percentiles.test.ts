import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { latencyOf, percentile } from '../../../src/loadtest/percentiles.js';

describe('percentiles', () => {
  it('are measured values, by nearest rank', () => {
    const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
    expect([0.5, 0.99, 1].map((share) => percentile(sorted, share))).toEqual([50, 99, 100]);
    expect(percentile([7], 0.01)).toBe(7);
    expect(percentile([], 0.5)).toBeNull();
  });

  it('have at least their share not above, and less than it below', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (values, share) => {
          const sorted = [...values].sort((one, other) => one - other);
          const found = percentile(sorted, share) ?? Number.NaN;
          expect(values).toContain(found);
          expect(values.filter((value) => value <= found).length).toBeGreaterThanOrEqual(share * values.length - 1e-9);
          expect(values.filter((value) => value < found).length).toBeLessThan(share * values.length + 1e-9);
        },
      ),
    );
  });

  it('are null without measurements', () => {
    expect(latencyOf([])).toBeNull();
    expect(latencyOf([3, 1, 2])).toEqual({ count: 3, p50: 2, p90: 3, p99: 3, max: 3 });
    const thousand = Array.from({ length: 1_000 }, (_, index) => index + 1);
    expect(latencyOf(thousand)).toEqual({ count: 1_000, p50: 500, p90: 900, p99: 990, max: 1_000 });
  });
});
