// The search for the highest value that passes: doubling, then bisection. Pure: who runs the stages tells how each went.

export interface Search {
  /** Highest that passed; 0: none did. */
  readonly low: number;
  /** Lowest that failed; null: none did. */
  readonly high: number | null;
  /** How often the value that is being tried has failed. */
  readonly failures: number;
}

export interface SearchLimits {
  readonly first: number;
  readonly highest: number;
  /** How near the two ends come, as a share of the lower one: 0.05. */
  readonly precision: number;
  /** A value has failed after this many failures: one may be the machine's. */
  readonly attempts: number;
}

export const NOTHING_TRIED: Search = { low: 0, high: null, failures: 0 };

/** What to try next; null: the search is over. */
export function nextValue({ low, high }: Search, { first, highest, precision }: SearchLimits): number | null {
  if (high === null) {
    if (low >= highest) return null;
    return Math.min(low === 0 ? first : 2 * low, highest);
  }
  if (high - low <= Math.max(1, precision * low)) return null;
  return Math.floor((low + high) / 2);
}

export function afterTrial(search: Search, value: number, passed: boolean, { attempts }: SearchLimits): Search {
  if (passed) return { ...search, low: value, failures: 0 };
  return search.failures + 1 < attempts ? { ...search, failures: search.failures + 1 } : { ...search, high: value, failures: 0 };
}
