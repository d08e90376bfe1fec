import type { Failure, MediaSecond, ProcessFigures, Second, Side, StagePlan } from './figures.js';
import { latencyOf, percentile, type Latency } from './percentiles.js';
import type { CallError, SippCounters } from './sipp-files.js';

/** One look at one process. */
export interface UsageSample {
  readonly name: string;
  readonly side: Side;
  readonly pid: number;
  /** Since the look before. */
  readonly cpuMs: number;
  /** Percent of a core. */
  readonly cpu: number;
  readonly threadBusy: number;
  readonly memoryMb: number;
  readonly openFiles: number;
  readonly maxOpenFiles: number | null;
}

/** What one SIPp process was told to do. */
export interface Share {
  readonly cps: number;
  readonly calls: number;
}

interface Bucket {
  readonly latencies: number[];
  readonly failures: Map<string, number>;
  readonly counters: Map<number, SippCounters>;
  media: MediaSecond | null;
  readonly usage: UsageSample[];
}

const failureKey = ({ code, reason }: Pick<CallError, 'code' | 'reason'>): string => (reason === null ? code : `${code} ${reason}`);

/** Collects what is seen during a stage, by second. Pure: times come with the events. */
export class StageRecorder {
  readonly #buckets = new Map<number, Bucket>();
  readonly #latencies: number[] = [];
  readonly #failures = new Map<string, { code: string; reason: string | null; count: number }>();
  readonly #last = new Map<number, SippCounters>();
  readonly #shares = new Map<number, Share & { startMs: number }>();
  readonly #machineBusy: number[] = [];
  #firstSentMs = Infinity;
  #lastSentMs = -Infinity;
  /** For each SIPp process, the last two readings in which its call count grew. */
  readonly #grew = new Map<number, readonly SippCounters[]>();
  interrupted = 0;
  /** Most calls that the processes were late with. */
  behind = 0;
  peakInProgress = 0;
  memoryFreeMb = Infinity;
  /** The stage takes longer than its calls can: the remaining ones have failed. */
  isOverdue = false;

  /** @param runStartMs wall clock, as all times here */
  constructor(
    readonly stage: number,
    private readonly runStartMs: number,
    readonly plan: StagePlan,
  ) {}

  answered(atMs: number, latencyMs: number): void {
    this.#latencies.push(latencyMs);
    this.#at(atMs).latencies.push(latencyMs);
    this.#firstSentMs = Math.min(this.#firstSentMs, atMs - latencyMs);
    this.#lastSentMs = Math.max(this.#lastSentMs, atMs - latencyMs);
  }

  error(seen: CallError): void {
    if (seen.code === 'interrupted' && !this.isOverdue) {
      this.interrupted += 1;
      return;
    }
    const error = seen.code === 'interrupted' ? { ...seen, code: 'unfinished' } : seen;
    const key = failureKey(error);
    const { failures } = this.#at(error.atMs);
    failures.set(key, (failures.get(key) ?? 0) + 1);
    const known = this.#failures.get(key);
    if (known === undefined) this.#failures.set(key, { code: error.code, reason: error.reason, count: 1 });
    else known.count += 1;
  }

  /** A SIPp process begins. */
  begin(process: number, share: Share, startMs: number): void {
    this.#shares.set(process, { ...share, startMs });
  }

  counters(process: number, counters: SippCounters): void {
    const before = this.#last.get(process)?.created ?? 0;
    if (counters.created > before) this.#grew.set(process, [...(this.#grew.get(process) ?? []).slice(-1), counters]);
    this.#last.set(process, counters);
    // They describe the second before them, so they belong to its middle.
    this.#at(counters.atMs - 500).counters.set(process, counters);
    this.peakInProgress = Math.max(this.peakInProgress, this.inProgress);
    const share = this.#shares.get(process);
    if (share === undefined) return;
    const due = Math.min(share.calls, Math.floor((share.cps * (counters.atMs - share.startMs)) / 1_000));
    this.behind = Math.max(this.behind, due - counters.created);
  }

  media(atMs: number, second: MediaSecond): void {
    this.#at(atMs).media = second;
  }

  /** @param busyPercent of all cores of the machine; null: unknown */
  usage(atMs: number, samples: readonly UsageSample[], busyPercent: number | null, memoryFreeMb: number): void {
    this.#at(atMs).usage.push(...samples);
    if (busyPercent !== null) this.#machineBusy.push(busyPercent);
    this.memoryFreeMb = Math.min(this.memoryFreeMb, memoryFreeMb);
  }

  get latency(): Latency | null {
    return latencyOf(this.#latencies);
  }

  get answeredCount(): number {
    return this.#latencies.length;
  }

  /** A SIPp process lost its connection and ended: the calls that it had in progress have failed. */
  lost(process: number, atMs: number): void {
    const last = this.#last.get(process);
    const calls = last?.current ?? 0;
    for (let call = 0; call < calls; call += 1) this.error({ atMs, code: 'connection', reason: null });
    if (last !== undefined) this.#last.set(process, { ...last, current: 0 });
  }

  /** SIPp counts once a second, and not any more when it is ended early. */
  get started(): number {
    return Math.max(this.#sum('created'), this.#latencies.length);
  }

  get successful(): number {
    return this.#sum('successful');
  }

  get inProgress(): number {
    return this.#sum('current');
  }

  /** SIPp counts calls as failed that its log says nothing about. */
  get failures(): readonly Failure[] {
    const named = [...this.#failures.values()];
    const unnamed = this.#sum('failed') - this.interrupted - named.reduce((sum, { count }) => sum + count, 0);
    const all = unnamed > 0 ? [...named, { code: 'other', reason: null, count: unnamed }] : named;
    return all.sort((one, other) => other.count - one.count);
  }

  get failed(): number {
    return this.failures.reduce((sum, { count }) => sum + count, 0);
  }

  get machineBusy(): number | null {
    return percentile(this.#machineBusy, 0.9);
  }

  /** Rate of started calls. Only answered calls have the time of their INVITE; SIPp reports the number of the others once a second. */
  get callsPerSecond(): number {
    const seconds = (this.#lastSentMs - this.#firstSentMs) / 1_000;
    const ofAnswered = this.#latencies.length > 1 && seconds > 0 ? (this.#latencies.length - 1) / seconds : 0;
    if (ofAnswered > 0 && this.#latencies.length >= this.started) return ofAnswered;
    return Math.max(
      ofAnswered,
      [...this.#shares.keys()].reduce((sum, process) => sum + this.#countedPerSecond(process), 0),
    );
  }

  #countedPerSecond(process: number): number {
    // In the second before the last count calls ended to be started: of two the earlier tells.
    const [grew] = this.#grew.get(process) ?? [];
    const startMs = this.#shares.get(process)?.startMs ?? 0;
    return grew === undefined || grew.atMs <= startMs ? 0 : (1_000 * grew.created) / (grew.atMs - startMs);
  }

  processes(): ProcessFigures[] {
    const byName = new Map<string, UsageSample[]>();
    for (const { usage } of this.#buckets.values()) {
      for (const sample of usage) byName.set(sample.name, [...(byName.get(sample.name) ?? []), sample]);
    }
    return [...byName.values()].map((samples) => processFigures(samples, this.started));
  }

  /** In order, without gaps. */
  seconds(): Second[] {
    if (this.#buckets.size === 0) return [];
    const indexes = [...this.#buckets.keys()];
    const [first, last] = [Math.min(...indexes), Math.max(...indexes)];
    const latest = new Map<number, SippCounters>();
    const found: Second[] = [];
    for (let at = first; at <= last; at += 1) found.push(this.#second(at, latest));
    return found;
  }

  #second(at: number, latest: Map<number, SippCounters>): Second {
    const bucket = this.#buckets.get(at);
    const latencies = bucket?.latencies ?? [];
    let started = 0;
    for (const [process, counters] of bucket?.counters ?? []) {
      started += counters.created - (latest.get(process)?.created ?? 0);
      latest.set(process, counters);
    }
    const failures = Object.fromEntries(bucket?.failures ?? []);
    const processes = Object.fromEntries((bucket?.usage ?? []).map(({ name, cpu, memoryMb }) => [name, { cpu, memoryMb }]));
    return {
      at,
      stage: this.stage,
      started,
      answered: latencies.length,
      failed: Object.values(failures).reduce((sum, count) => sum + count, 0),
      inProgress: [...latest.values()].reduce((sum, { current }) => sum + current, 0),
      p50: percentile(latencies, 0.5),
      p90: percentile(latencies, 0.9),
      p99: percentile(latencies, 0.99),
      failures,
      media: bucket?.media ?? null,
      processes,
    };
  }

  #sum(name: 'created' | 'current' | 'successful' | 'failed'): number {
    return [...this.#last.values()].reduce((sum, counters) => sum + counters[name], 0);
  }

  #at(atMs: number): Bucket {
    const second = Math.max(0, Math.floor((atMs - this.runStartMs) / 1_000));
    const known = this.#buckets.get(second);
    if (known !== undefined) return known;
    const made: Bucket = { latencies: [], failures: new Map(), counters: new Map(), media: null, usage: [] };
    this.#buckets.set(second, made);
    return made;
  }
}

function processFigures(samples: readonly UsageSample[], calls: number): ProcessFigures {
  const [first] = samples as [UsageSample];
  const of = (pick: (sample: UsageSample) => number): number[] => samples.map(pick);
  const cpuMs = samples.reduce((sum, sample) => sum + sample.cpuMs, 0);
  const cpu = of((sample) => sample.cpu);
  return {
    name: first.name,
    side: first.side,
    pid: first.pid,
    cpuMean: cpu.reduce((sum, value) => sum + value, 0) / cpu.length,
    cpuPeak: Math.max(...cpu),
    threadBusy:
      percentile(
        of((sample) => sample.threadBusy),
        0.9,
      ) ?? 0,
    cpuMsPerCall: calls === 0 ? null : cpuMs / calls,
    memoryMb: Math.max(...of((sample) => sample.memoryMb)),
    openFiles: Math.max(...of((sample) => sample.openFiles)),
    maxOpenFiles: first.maxOpenFiles,
  };
}
