/** An answer of GET /v1/throughput, as far as it is drawn. */
export interface Throughput {
  readonly step_seconds: number;
  readonly in_progress: number;
  readonly intervals: readonly { readonly at: string; readonly begun: number; readonly ended: number; readonly refused: number }[];
}

export interface Rates {
  /** Seconds since the epoch. */
  readonly x: readonly number[];
  /** Calls a second. */
  readonly begun: readonly number[];
  readonly ended: readonly number[];
  readonly refused: readonly number[];
}

/** Without the last interval, which is not over: its rate would drop each time it begins. */
export function ratesOf({ step_seconds: step, intervals }: Throughput): Rates {
  const whole = intervals.slice(0, -1);
  return {
    x: whole.map(({ at }) => Date.parse(at) / 1_000),
    begun: whole.map(({ begun }) => begun / step),
    ended: whole.map(({ ended }) => ended / step),
    refused: whole.map(({ refused }) => refused / step),
  };
}

export function totalsOf({ intervals }: Throughput): { readonly begun: number; readonly ended: number; readonly refused: number } {
  const sum = (name: 'begun' | 'ended' | 'refused'): number => intervals.reduce((all, interval) => all + interval[name], 0);
  return { begun: sum('begun'), ended: sum('ended'), refused: sum('refused') };
}
