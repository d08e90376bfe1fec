import type { ChildName } from '../support/processes.js';

export interface ProcessSample {
  /** With a number behind it from the second of one name on. */
  readonly name: string;
  readonly program: ChildName;
  readonly pid: number;
  /** Resident. */
  readonly memoryMb: number;
  readonly files: number;
}

/** How things stand at one moment of a soak. */
export interface Sample {
  readonly seconds: number;
  /** Ended calls. */
  readonly calls: number;
  readonly processes: readonly ProcessSample[];
  /** Redis keys, without those of ended calls: `calls.max_stored_mb` bounds them. */
  readonly keys: number;
  /** Memory that Redis has allocated, ended calls included. */
  readonly redisMb: number;
  /** Sessions in rtpengine. */
  readonly sessions: number;
}

/** What a figure may grow by, however long the soak and whatever its rate. */
interface Bound {
  /** From the second quarter of the soak to its last. */
  readonly underLoad: number;
  /** From the moment before the first call to the moment after the last. */
  readonly atRest: number;
}

/** Node collects when it likes: its resident memory goes up and down by tens of MB. */
const NODE_MB: Bound = { underLoad: 48, atRest: 48 };
const NATIVE_MB: Bound = { underLoad: 16, atRest: 16 };

export const BOUNDS = {
  memoryMb: { gateway: NODE_MB, 'sip-server': NODE_MB, rtpengine: NATIVE_MB, 'redis-server': NATIVE_MB, 'socket-holder': NATIVE_MB },
  // rtpengine has four a call, and calls in progress vary. At rest: Redis rewrites its append-only file, the API has a connection.
  files: { underLoad: 400, atRest: 4 },
  keys: { underLoad: 10, atRest: 0 },
  redisMb: { underLoad: 4, atRest: 4 },
  sessions: { underLoad: 100, atRest: 0 },
} as const satisfies { readonly memoryMb: Readonly<Record<ChildName, Bound>> } & Readonly<Record<string, unknown>>;

export interface Series {
  readonly before: Sample;
  /** Under a steady load, in order. */
  readonly samples: readonly Sample[];
  readonly after: Sample;
}

/** A sentence for each figure that grew beyond its bound, and for each process that ended meanwhile. */
export function whatGrew(series: Series): string[] {
  const { before, after } = series;
  const sentences = before.processes.flatMap(({ name, program, pid }) => {
    const of = ({ processes }: Sample): ProcessSample | undefined => processes.find((one) => one.pid === pid);
    if (of(after) === undefined) return [`${name} (process ${String(pid)}) ended during the soak.`];
    return [
      ...judged(series, `Resident memory of ${name}`, ' MB', (sample) => of(sample)?.memoryMb, BOUNDS.memoryMb[program]),
      ...judged(series, `Open files of ${name}`, '', (sample) => of(sample)?.files, BOUNDS.files),
    ];
  });
  return [
    ...sentences,
    ...judged(series, 'Keys of Redis', '', ({ keys }) => keys, BOUNDS.keys),
    ...judged(series, 'Memory that Redis has allocated', ' MB', ({ redisMb }) => redisMb, BOUNDS.redisMb),
    ...judged(series, 'Sessions of rtpengine', '', ({ sessions }) => sessions, BOUNDS.sessions),
  ];
}

function judged(
  { before, samples, after }: Series,
  what: string,
  unit: string,
  pick: (sample: Sample) => number | undefined,
  { underLoad, atRest }: Bound,
): string[] {
  const sentence = (from: number, to: number, bound: number, when: string): string[] =>
    to - from > bound
      ? [`${what} grew from ${written(from)} to ${written(to)}${unit} ${when}; the bound is ${String(bound)}${unit} more.`]
      : [];
  const quarter = (nth: number): number => {
    const part = samples.slice(Math.floor(((nth - 1) * samples.length) / 4), Math.floor((nth * samples.length) / 4));
    return median(part.map(pick).filter((value) => value !== undefined));
  };
  return [
    // A comparison with NaN is false: a soak of fewer than four samples is judged by what it leaves.
    ...sentence(quarter(2), quarter(4), underLoad, 'under a steady load (median of the second quarter, and of the last)'),
    ...sentence(pick(before) ?? 0, pick(after) ?? 0, atRest, 'between the moments before the first call and after the last'),
  ];
}

function written(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return ((sorted[Math.floor((sorted.length - 1) / 2)] ?? NaN) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? NaN)) / 2;
}
