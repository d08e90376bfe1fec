import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterTrial, nextValue, NOTHING_TRIED, type Search, type SearchLimits } from '../../../src/loadtest/stages.js';

const limits = (over: Partial<SearchLimits> = {}): SearchLimits => ({ first: 50, highest: 20_000, precision: 0.05, attempts: 2, ...over });

/** Runs a search against a gateway that bears everything up to a threshold. */
function searched(threshold: number, how: SearchLimits): { search: Search; tried: number[] } {
  let search = NOTHING_TRIED;
  const tried: number[] = [];
  for (let value = nextValue(search, how); value !== null; value = nextValue(search, how)) {
    tried.push(value);
    if (tried.length > 200) throw new Error('it does not end');
    search = afterTrial(search, value, value <= threshold, how);
  }
  return { search, tried };
}

describe('the search for the highest value', () => {
  it('doubles while all is well, then halves the gap, and tries a failure once more', () => {
    expect(searched(330, limits()).tried).toEqual([50, 100, 200, 400, 400, 300, 350, 350, 325, 337, 337]);
  });

  it('goes below the first value when that fails', () => {
    expect(searched(10, limits({ attempts: 1 })).search).toEqual({ low: 10, high: 11, failures: 0 });
  });

  it('blames the machine for a failure that does not repeat itself', () => {
    let search = afterTrial({ low: 100, high: null, failures: 0 }, 200, false, limits());
    expect(nextValue(search, limits())).toBe(200);
    search = afterTrial(search, 200, true, limits());
    expect(search).toEqual({ low: 200, high: null, failures: 0 });
  });

  it('ends at the highest value allowed', () => {
    expect(searched(Infinity, limits({ first: 60, highest: 100 }))).toEqual({
      search: { low: 100, high: null, failures: 0 },
      tried: [60, 100],
    });
  });

  it('finds any threshold to its precision, and never tries outside of the open range', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 30_000 }),
        fc.integer({ min: 1, max: 2_000 }),
        fc.integer({ min: 1, max: 3 }),
        (threshold, first, attempts) => {
          const how = limits({ first, attempts });
          let search = NOTHING_TRIED;
          let trials = 0;
          for (let value = nextValue(search, how); value !== null; value = nextValue(search, how)) {
            expect(value).toBeGreaterThan(search.low);
            if (search.high === null) expect(value).toBeLessThanOrEqual(how.highest);
            else expect(value).toBeLessThan(search.high);
            search = afterTrial(search, value, value <= threshold, how);
            trials += 1;
          }
          expect(trials).toBeLessThanOrEqual(40 * attempts);
          expect(search.low).toBeLessThanOrEqual(threshold);
          if (search.high === null) expect(search.low).toBe(how.highest);
          else {
            expect(search.high).toBeGreaterThan(threshold);
            expect(search.high - search.low).toBeLessThanOrEqual(Math.max(1, 0.05 * search.low));
          }
        },
      ),
    );
  });
});
