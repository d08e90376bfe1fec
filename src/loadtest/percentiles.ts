/** The smallest of the values that at least the given share of them does not exceed (nearest rank); null: there are none. */
export function percentile(values: readonly number[], share: number): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

/** Milliseconds. */
export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** null: nothing was measured. */
export function latencyOf(values: readonly number[]): Latency | null {
  const [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1].map((share) => percentile(values, share));
  if (p50 == null || p90 == null || p99 == null || max == null) return null;
  return { count: values.length, p50, p90, p99, max };
}
