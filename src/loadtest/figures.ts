import type { Latency } from './percentiles.js';

// What a load test finds out, as `--json` prints it.

/** Calls at a rate, each held for a time. */
export interface StagePlan {
  readonly cps: number;
  readonly calls: number;
  readonly holdMs: number;
  /** How many of the calls have SRTP. */
  readonly mediaCalls: number;
}

/** Calls that failed in the same way. */
export interface Failure {
  /** A SIP status, `BYE` (the gateway ended the call), `timeout`, `connection`, `unfinished`, `other`. */
  readonly code: string;
  /** The gateway's own code for why (docs/errors.md), from Reason or Warning; null: it gave none. */
  readonly reason: string | null;
  readonly count: number;
}

/** What the media generator heard, all calls summed. */
export interface MediaFigures {
  /** That were looked at to their end. */
  readonly calls: number;
  /** Answered calls whose media could not be started. */
  readonly unchecked: number;
  readonly tone: { readonly heard: number; readonly silent: number; readonly wrong: number };
  /** Keys pressed, and those after which speech came. */
  readonly digits: { readonly pressed: number; readonly answered: number };
  readonly packets: {
    readonly sent: number;
    readonly received: number;
    readonly expected: number;
    readonly lost: number;
    readonly outOfOrder: number;
    readonly duplicates: number;
    readonly rejected: number;
  };
  /** There and back, of the calls' own percentiles the worst; null: no stamp came back. */
  readonly delayMs: { readonly p50: number; readonly p99: number; readonly max: number } | null;
  /** Jitter of the worst call. */
  readonly jitterMs: number;
  /** By the generator's figures; null: none. */
  readonly mos: { readonly least: number; readonly mean: number } | null;
  /** How late the generator itself was at worst. */
  readonly lateMs: number;
}

export type Side = 'gateway' | 'load';

/** One process during a stage. CPU in percent of one core. */
export interface ProcessFigures {
  readonly name: string;
  readonly side: Side;
  readonly pid: number;
  readonly cpuMean: number;
  readonly cpuPeak: number;
  /** p90 of its busiest thread, in percent of a core. */
  readonly threadBusy: number;
  readonly cpuMsPerCall: number | null;
  readonly memoryMb: number;
  readonly openFiles: number;
  readonly maxOpenFiles: number | null;
}

export interface MachineFigures {
  readonly cores: number;
  /** p90 over all cores; null: unknown. */
  readonly busyPercent: number | null;
  readonly memoryFreeMb: number;
}

export interface StageFigures {
  readonly plan: StagePlan;
  readonly startedAt: string;
  readonly seconds: number;
  readonly started: number;
  readonly answered: number;
  /** Answered, held, and ended by us in order. */
  readonly successful: number;
  readonly failed: number;
  /** Ended early because the run was interrupted. */
  readonly interrupted: number;
  /** While calls were being started. */
  readonly callsPerSecond: number;
  readonly peakInProgress: number;
  readonly failures: readonly Failure[];
  /** INVITE to 200. */
  readonly latency: Latency | null;
  /** Most calls that the load generator was behind its schedule. */
  readonly behind: number;
  readonly media: MediaFigures | null;
  readonly processes: readonly ProcessFigures[];
  readonly machine: MachineFigures;
  readonly verdict: Verdict;
}

/** Whether a stage was as it should be, and what kept it from that. */
export interface Verdict {
  readonly passed: boolean;
  /** What was not as it should be, a sentence each. */
  readonly faults: readonly string[];
  readonly limit: Limit | null;
}

export interface Limit {
  readonly kind: 'refused' | 'load-generator' | 'machine' | 'cpu' | 'open-files' | 'memory' | 'unknown';
  /** A process, or `gateway`. */
  readonly who: string;
  readonly text: string;
  /** Settings of the gateway, or flags of this command, that move the limit. */
  readonly settings: readonly string[];
}

/** One second of the run, for plots. */
export interface Second {
  /** Since the run began. */
  readonly at: number;
  readonly stage: number;
  readonly started: number;
  readonly answered: number;
  readonly failed: number;
  readonly inProgress: number;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  /** By code and reason. */
  readonly failures: Readonly<Record<string, number>>;
  readonly media: MediaSecond | null;
  /** By process: percent of a core, and megabytes. */
  readonly processes: Readonly<Record<string, { readonly cpu: number; readonly memoryMb: number }>>;
}

export interface MediaSecond {
  readonly calls: number;
  readonly received: number;
  readonly lost: number;
  readonly jitterMs: number;
  readonly delay50: number | null;
  readonly delay99: number | null;
  readonly lateMs: number;
}

export type RampKind = 'rate' | 'held';

export interface RampFigures {
  readonly kind: RampKind;
  /** Highest that passed; 0: none did. */
  readonly highest: number;
  /** Lowest that failed; null: none did. */
  readonly lowestFailed: number | null;
  readonly limit: Limit | null;
}

export interface RunFigures {
  readonly target: string;
  readonly number: string;
  readonly scenario: string;
  readonly sipp: string;
  /** What the latencies are. */
  readonly measured: 'INVITE to 200' | 'request to ACK';
  readonly connections: number;
  readonly startedAt: string;
  readonly seconds: number;
  readonly interrupted: boolean;
  readonly passed: boolean;
  readonly batchId: string | null;
  readonly notes: readonly string[];
  readonly ramps: readonly RampFigures[];
  readonly stages: readonly StageFigures[];
  readonly timeline: readonly Second[];
}
