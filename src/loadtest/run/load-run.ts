import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isoNow, type Clock } from '../../lib/clock.js';
import type { Limit, RampFigures, RampKind, RunFigures, Second, StageFigures, StagePlan } from '../figures.js';
import type { StageRecorder } from '../recorder.js';
import { connectionsFor, type SippJob } from '../sipp-command.js';
import { afterTrial, nextValue, NOTHING_TRIED, type Search, type SearchLimits } from '../stages.js';
import type { Thresholds } from '../verdict.js';
import type { AnsweringCarrier } from './answering-carrier.js';
import { PlacedCalls, type CallPlacing } from './placed-calls.js';
import { ProcessWatch } from './process-watch.js';
import { installedSipp, localAddressTo, reachTarget, Ways } from './programs.js';
import { Stage, type StageSite } from './stage.js';

export interface LoadOptions {
  readonly target: { readonly host: string; readonly port: number };
  readonly caFile: string;
  /** Gateway of `trunkline up` on this machine; null: elsewhere. */
  readonly gatewayPid: number | null;
  readonly called: string;
  readonly caller: string;
  readonly cps: number;
  readonly calls: number;
  readonly holdMs: number;
  readonly mediaPercent: number;
  readonly digits: string;
  /** The user's own; null: the built-in one. */
  readonly scenario: string | null;
  readonly scenarioDirectory: string;
  readonly connections: number | null;
  readonly setupTimeoutMs: number;
  /** null: by how long calls are held. */
  readonly direction: SippJob['direction'] | null;
  readonly thresholds: Thresholds;
  readonly ramps: readonly RampKind[];
  readonly stageSeconds: number;
  /** Highest rate, and highest number of calls held, that a ramp tries. */
  readonly highest: number;
  readonly generatorProgram: string;
  readonly mediaPorts: { readonly min: number; readonly max: number };
  readonly batchId: string | null;
  readonly notes: readonly string[];
  /** The API places the calls, and this carrier answers them; null: SIPp calls. */
  readonly outbound: { readonly carrier: AnsweringCarrier; readonly api: CallPlacing } | null;
}

/** Where the run tells what happens, beside its result. */
export interface RunObserver {
  /** Writes to the batch's log. */
  readonly lifecycle: (message: string, stateChange: string) => Promise<void>;
  readonly onSecond: (recorder: StageRecorder, elapsedMs: number) => void;
  readonly onStage: (figures: StageFigures) => void;
}

const PRECISION = 0.05;
const ATTEMPTS = 2;
/** A gateway ends calls without audio after media.timeout_ms, which is 30 s unless set. */
const INACTIVE_FROM_MS = 25_000;

/** A whole load test: one stage, or the stages of ramps. An aborted signal ends it in order. */
export class LoadRun {
  readonly #stages: StageFigures[] = [];
  readonly #timeline: Second[] = [];
  readonly #runStartMs: number;

  constructor(
    private readonly options: LoadOptions,
    private readonly observer: RunObserver,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {
    this.#runStartMs = clock.wallMs();
  }

  async run(): Promise<RunFigures> {
    const { options, clock } = this;
    const { target } = options;
    const startedAt = isoNow(clock);
    const { outbound } = options;
    const build = outbound === null ? await installedSipp() : { version: 'none', speaksTls: true };
    if (outbound === null) await reachTarget(target, options.caFile);
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-load-'));
    const watch = new ProcessWatch(options.gatewayPid);
    watch.add(process.pid, 'load runner');
    const ways = new Ways({ build, target, caFile: options.caFile, directory });
    const ramps: RampFigures[] = [];
    try {
      const site = await this.#site(directory, watch, ways);
      if (options.ramps.length === 0) await this.#stage(site, planOf(options, options.cps, options.calls, options.holdMs));
      for (const kind of options.ramps) ramps.push(await this.#ramp(site, kind));
    } finally {
      await ways.close();
      await rm(directory, { recursive: true, force: true });
    }
    const isRamp = options.ramps.length > 0;
    return {
      target: `${target.host}:${String(target.port)}`,
      number: options.called,
      scenario: outbound === null ? (options.scenario ?? 'built-in') : 'outbound',
      measured: outbound === null ? 'INVITE to 200' : 'request to ACK',
      sipp: `${build.version}, ${build.speaksTls ? 'TLS of its own' : 'TLS by the load runner'}`,
      connections: options.connections ?? connectionsFor(Math.max(...this.#stages.map(({ plan }) => plan.cps), options.cps)),
      startedAt,
      seconds: (clock.wallMs() - this.#runStartMs) / 1_000,
      interrupted: this.signal.aborted,
      passed:
        !this.signal.aborted && (isRamp ? ramps.every(({ highest }) => highest > 0) : this.#stages.every(({ verdict }) => verdict.passed)),
      batchId: options.batchId,
      notes: options.notes,
      ramps,
      stages: this.#stages,
      timeline: this.#timeline,
    };
  }

  async #site(directory: string, watch: ProcessWatch, ways: Ways): Promise<StageSite> {
    const { options, clock, signal, observer } = this;
    const { outbound } = options;
    const { target, called, caller, setupTimeoutMs, scenario, scenarioDirectory } = options;
    return {
      clock,
      directory,
      runStartMs: this.#runStartMs,
      watch,
      thresholds: options.thresholds,
      connections: options.connections,
      ways: (count) => (outbound === null ? ways.get(count) : Promise.resolve([{ kind: 'tunnel', port: 0 }])),
      source: outbound === null ? null : (job, listener) => new PlacedCalls(job, outbound.carrier, outbound.api, listener, clock),
      job: { target, localAddress: await localAddressTo(target.host, target.port), called, caller, setupTimeoutMs },
      scenarios: {
        plain: scenario ?? join(scenarioDirectory, 'answered.xml'),
        tellsAnswers: scenario === null || /message="answered \[/.test(await readFile(scenario, 'latin1')),
        media: join(scenarioDirectory, 'answered-media.xml'),
      },
      direction: (holdMs) => options.direction ?? (holdMs > INACTIVE_FROM_MS ? 'inactive' : 'sendrecv'),
      generator: { program: options.generatorProgram, ports: options.mediaPorts },
      digits: options.digits,
      isInterrupted: () => signal.aborted,
      onSecond: (recorder, elapsedMs) => observer.onSecond(recorder, elapsedMs),
    };
  }

  async #stage(site: StageSite, plan: StagePlan): Promise<StageFigures> {
    const stage = new Stage(site, this.#stages.length + 1, plan);
    const stop = (): void => stage.stop();
    this.signal.addEventListener('abort', stop);
    try {
      const figures = await stage.run();
      this.#stages.push(figures);
      this.observer.onStage(figures);
      await this.observer.lifecycle(stageText(this.#stages.length, figures), 'stage');
      return figures;
    } finally {
      this.signal.removeEventListener('abort', stop);
      // Also of a stage that broke off: the last of it is what a person wants to see.
      this.#timeline.push(...stage.recorder.seconds());
    }
  }

  #isInterrupted(): boolean {
    return this.signal.aborted;
  }

  async #ramp(site: StageSite, kind: RampKind): Promise<RampFigures> {
    const { options } = this;
    const limits: SearchLimits = {
      first: kind === 'rate' ? Math.ceil(options.cps) : options.calls,
      highest: options.highest,
      precision: PRECISION,
      attempts: ATTEMPTS,
    };
    let search: Search = NOTHING_TRIED;
    let limit: Limit | null = null;
    for (let value = nextValue(search, limits); value !== null && !this.#isInterrupted(); value = nextValue(search, limits)) {
      const { verdict } = await this.#stage(site, rampPlan(options, kind, value));
      if (this.#isInterrupted()) break;
      search = afterTrial(search, value, verdict.passed, limits);
      if (!verdict.passed) limit = verdict.limit;
    }
    return { kind, highest: search.low, lowestFailed: search.high, limit: search.high === null ? null : limit };
  }
}

/** A rate is placed for a stage; calls that are held are placed at --cps, and all held for a stage. */
function rampPlan(options: LoadOptions, kind: RampKind, value: number): StagePlan {
  if (kind === 'rate') return planOf(options, value, value * options.stageSeconds, options.holdMs);
  return planOf(options, options.cps, value, Math.ceil((value / options.cps + options.stageSeconds) * 1_000));
}

function planOf({ mediaPercent }: LoadOptions, cps: number, calls: number, holdMs: number): StagePlan {
  return { cps, calls, holdMs, mediaCalls: Math.round((calls * mediaPercent) / 100) };
}

function stageText(number: number, { plan, successful, failed, interrupted, latency, verdict }: StageFigures): string {
  const p99 = latency === null ? '' : `, p99 ${latency.p99.toFixed(1)} ms`;
  const why = verdict.faults.length === 0 ? '' : `: ${verdict.faults.join('; ')}`;
  const outcome = verdict.passed ? 'passed' : interrupted > 0 ? 'interrupted' : 'failed';
  return `stage ${String(number)} ${outcome}: ${String(plan.calls)} calls at ${String(plan.cps)}/s, ${String(successful)} well, ${String(failed)} failed${p99}${why}`;
}
