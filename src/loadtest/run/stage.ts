import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.js';
import { isoNow } from '../../lib/clock.js';
import type { MachineFigures, StageFigures, StagePlan } from '../figures.js';
import { MediaTally, secondOf, type MediaEvent } from '../media-events.js';
import { StageRecorder } from '../recorder.js';
import { connectionsFor, shares, slotsFor, slotsText, type SippJob, type SippWay } from '../sipp-command.js';
import type { AnsweredLine, EndingLine } from '../sipp-files.js';
import { verdictOf, type Thresholds } from '../verdict.js';
import { MediaGenerator } from './media-generator.js';
import { CORES, type ProcessWatch } from './process-watch.js';
import type { CallSource, CallSourceListener } from './call-source.js';
import { SippCalls } from './sipp-calls.js';

/** What all stages of a run share. */
export interface StageSite {
  readonly clock: Clock;
  /** Files of this run; gone with it. */
  readonly directory: string;
  readonly runStartMs: number;
  readonly watch: ProcessWatch;
  readonly thresholds: Thresholds;
  /** null: by rate. */
  readonly connections: number | null;
  /** Ways for this many SIPp processes. */
  readonly ways: (count: number) => Promise<readonly SippWay[]>;
  /** In place of SIPp; null: SIPp. */
  readonly source: ((job: SippJob, listener: CallSourceListener) => CallSource) | null;
  readonly job: Pick<SippJob, 'target' | 'localAddress' | 'called' | 'caller' | 'setupTimeoutMs'>;
  readonly scenarios: { readonly plain: string; readonly tellsAnswers: boolean; readonly media: string };
  readonly direction: (holdMs: number) => SippJob['direction'];
  readonly generator: { readonly program: string; readonly ports: { readonly min: number; readonly max: number } };
  readonly digits: string;
  readonly isInterrupted: () => boolean;
  /** Each second. */
  readonly onSecond: (recorder: StageRecorder, elapsedMs: number) => void;
}

const READ_MS = 100;
/** The generator learns of an answer so late at most. */
const READ_MEDIA_MS = 20;
const OVERDUE_MS = 30_000;

/** Places the calls of one stage and looks at everything meanwhile. */
export class Stage {
  readonly recorder: StageRecorder;
  readonly #sipps: CallSource[] = [];
  readonly #tally = new MediaTally();
  #generator: MediaGenerator | undefined;
  #cancelRead: () => void = () => undefined;
  #cancelLook: () => void = () => undefined;
  #startedMs = 0;

  constructor(
    private readonly site: StageSite,
    index: number,
    private readonly plan: StagePlan,
  ) {
    this.recorder = new StageRecorder(index, site.runStartMs, plan);
  }

  /** Resolves when all calls have ended. */
  async run(): Promise<StageFigures> {
    const { clock } = this.site;
    const startedAt = isoNow(clock);
    let problem: string | null;
    try {
      const jobs = await this.#jobs();
      this.#startedMs = clock.nowMs();
      for (const [index, job] of jobs.entries()) this.#start(index, job);
      this.#look();
      this.#read();
      problem = await this.#whenEnded();
      await this.#generator?.finish();
    } finally {
      this.#cancelRead();
      this.#cancelLook();
      await this.#generator?.close();
      if (this.#generator !== undefined) this.site.watch.remove(this.#generator.pid);
    }
    return this.#figures(startedAt, problem);
  }

  async #jobs(): Promise<SippJob[]> {
    const { plan, site } = this;
    const { cps, calls, mediaCalls, holdMs } = plan;
    const processes = site.connections ?? connectionsFor(cps);
    const plainShare = (calls - mediaCalls) / calls;
    const split = (part: number, count: number) => (count === 0 ? [] : shares(cps * part, count, Math.ceil(processes * part)));
    const plain = split(plainShare, calls - mediaCalls);
    const media = split(1 - plainShare, mediaCalls);
    const ways = await site.ways(plain.length + media.length);
    const slotFiles = await this.#slotFiles(media);
    return [...plain, ...media].map((share, index): SippJob => {
      const slotsFile = slotFiles[index - plain.length] ?? null;
      const tellsAnswers = slotsFile !== null || site.scenarios.tellsAnswers;
      return {
        ...site.job,
        ...share,
        way: ways[index] as SippWay,
        scenario: slotsFile === null ? site.scenarios.plain : site.scenarios.media,
        tellsAnswers,
        holdMs,
        direction: site.direction(holdMs),
        slotsFile,
      };
    });
  }

  /** Slots of the generator for each SIPp process with media. */
  async #slotFiles(media: readonly { readonly cps: number; readonly calls: number }[]): Promise<string[]> {
    if (media.length === 0) return [];
    const { site, plan } = this;
    const counts = media.map((share) => slotsFor(share, plan.holdMs, site.job.setupTimeoutMs));
    const slots = counts.reduce((sum, count) => sum + count, 0);
    const { ports, program } = site.generator;
    if (2 * slots > ports.max - ports.min + 1)
      throw new Error(
        `calls with media need ${String(2 * slots)} ports, and ${String(ports.min)} to ${String(ports.max)} are fewer: set --media-ports, or a lower rate, hold or --media`,
      );
    this.#generator = await MediaGenerator.start({
      program,
      address: site.job.localAddress,
      ports,
      slots,
      clock: site.clock,
      onEvent: (event) => this.#onMedia(event),
    });
    site.watch.add(this.#generator.pid, 'media-generator');
    const all = this.#generator.slots;
    let first = 0;
    return Promise.all(
      counts.map(async (count, index) => {
        const own = all.slice(first, first + count);
        first += count;
        const file = join(site.directory, `slots-${String(this.recorder.stage)}-${String(index)}.csv`);
        await writeFile(file, slotsText(own), { mode: 0o600 });
        return file;
      }),
    );
  }

  #start(index: number, job: SippJob): void {
    const { site, recorder } = this;
    const directory = join(site.directory, `sipp-${String(recorder.stage)}-${String(index)}`);
    const listener: CallSourceListener = {
      call: (line) => this.#onCall(line),
      error: (error) => recorder.error(error),
      counters: (counters) => recorder.counters(index, counters),
    };
    const sipp =
      site.source?.(job, listener) ?? new SippCalls(job, directory, listener, site.clock, site.watch, `sipp ${String(index + 1)}`);
    recorder.begin(index, job, site.clock.wallMs());
    this.#sipps.push(sipp);
  }

  #onCall(line: AnsweredLine | EndingLine): void {
    if (line.kind === 'ending') {
      this.#generator?.end(line.slot);
      return;
    }
    this.recorder.answered(line.atMs, line.latencyMs);
    if (this.#generator === undefined) return;
    if (line.media !== null && !this.#generator.begin(line.media, this.site.digits)) this.#tally.unchecked();
  }

  #onMedia(event: MediaEvent): void {
    if (event.event === 'call') this.#tally.call(event);
    if (event.event !== 'second') return;
    const second = secondOf(event);
    this.#tally.late(second.lateMs);
    this.recorder.media(this.site.clock.wallMs(), second);
  }

  #read(): void {
    for (const sipp of this.#sipps) sipp.read();
    this.#cancelRead = this.site.clock.setTimer(this.#generator === undefined ? READ_MS : READ_MEDIA_MS, () => this.#read());
  }

  #look(): void {
    const { clock, watch, onSecond, isInterrupted } = this.site;
    const { samples, busyPercent, memoryFreeMb } = watch.look(clock.nowMs());
    this.recorder.usage(clock.wallMs(), samples, busyPercent, memoryFreeMb);
    const elapsedMs = clock.nowMs() - this.#startedMs;
    onSecond(this.recorder, elapsedMs);
    if (isInterrupted()) this.stop();
    if (elapsedMs > this.#longestMs()) {
      this.recorder.isOverdue = true;
      this.stop();
    }
    this.#cancelLook = clock.setTimer(1_000, () => this.#look());
  }

  #longestMs(): number {
    const { cps, calls, holdMs } = this.plan;
    return (calls / cps) * 1_500 + holdMs + 2 * this.site.job.setupTimeoutMs + OVERDUE_MS;
  }

  /** Ends the calls in progress in order; `run` resolves soon. */
  stop(): void {
    for (const sipp of this.#sipps) void sipp.stop();
  }

  /** A connection that is lost in the run is a result; one that never was is a mistake to report. */
  async #whenEnded(): Promise<string | null> {
    const { recorder, site } = this;
    const problems = await Promise.all(
      this.#sipps.map(async (sipp, index) => {
        const problem = await sipp.ended();
        if (problem !== null) recorder.lost(index, site.clock.wallMs());
        return problem;
      }),
    );
    const problem = problems.find((one) => one !== null) ?? null;
    if (problem !== null && recorder.started === 0) throw new Error(problem);
    return problem;
  }

  #figures(startedAt: string, problem: string | null): StageFigures {
    const { recorder, plan, site } = this;
    const media = plan.mediaCalls === 0 ? null : this.#tally.figures();
    const machine: MachineFigures = { cores: CORES, busyPercent: recorder.machineBusy, memoryFreeMb: recorder.memoryFreeMb };
    const { started, failed, failures, latency, behind } = recorder;
    const processes = recorder.processes();
    const interrupted = site.isInterrupted();
    const facts = { plan, started, failed, failures, latency, behind, media, processes, machine, interrupted, problem };
    return {
      plan,
      startedAt,
      seconds: (site.clock.nowMs() - this.#startedMs) / 1_000,
      started,
      answered: recorder.answeredCount,
      successful: recorder.successful,
      failed,
      interrupted: recorder.interrupted,
      callsPerSecond: recorder.callsPerSecond,
      peakInProgress: recorder.peakInProgress,
      failures,
      latency,
      behind,
      media,
      processes,
      machine,
      verdict: verdictOf(facts, site.thresholds),
    };
  }
}
