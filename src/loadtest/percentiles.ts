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
  if (values.length === 0) return null;
  const of = (share: number): number => percentile(values, share) ?? 0;
  return { count: values.length, p50: of(0.5), p90: of(0.9), p99: of(0.99), max: of(1) };
}
