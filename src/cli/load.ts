import type { StageRecorder } from '../loadtest/recorder.js';
import { snakeKeys } from '../lib/snake-keys.js';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { Client } from '../client/index.js';
import { PACKAGE_ROOT } from '../config/load.js';
import { nativeFile } from '../config/native-files.js';
import type { Config } from '../config/schema.js';
import { errorText } from '../lib/result.js';
import { isInBlocks, splitHostPort } from '../lib/address.js';
import type { RampKind, RunFigures } from '../loadtest/figures.js';
import { htmlReport } from '../loadtest/html-report.js';
import { listeningOf } from '../loadtest/listening.js';
import { progressLine, resultText } from '../loadtest/result-text.js';
import type { LoadOptions, RunObserver } from '../loadtest/run/load-run.js';
import { systemClock } from '../lib/system-clock.js';
import { apiFlags, namedUrl, nameOwner, openApi, type ApiFlags, type ApiIo } from './api.js';
import { CommandFailure, number, whole } from './command.js';
import { OutboundLoad } from './outbound-load.js';
import { readReady } from './ready.js';

interface LoadFlags extends ApiFlags {
  readonly cps: number;
  readonly calls?: number;
  readonly hold?: number;
  readonly media: number;
  readonly number?: string;
  readonly from: string;
  readonly digits?: string;
  readonly echo: boolean;
  readonly sippScenario?: string;
  readonly connections?: number;
  readonly direction?: 'sendrecv' | 'inactive';
  readonly setupTimeout: number;
  readonly mediaPorts: { readonly min: number; readonly max: number };
  readonly ramp?: true | readonly RampKind[];
  readonly stage: number;
  readonly highest: number;
  readonly maxFailures: number;
  readonly maxP99?: number;
  readonly maxLoss: number;
  readonly outbound?: true;
  readonly target?: string;
  readonly ca?: string;
  readonly iOwnTheTarget?: true;
  readonly name: string;
  readonly report: string | boolean;
}

const RAMP_MAX_P99_MS = 10;
const PROGRESS_EVERY_S = 5;
/** Time limit of a request to the batch's log. */
const BATCH_LIMIT_MS = 3_000;

interface LoadIo extends ApiIo {
  readonly config: () => Config;
}

/** `trunkline load`: SIPp calls the gateway at a rate. Exit code 0 only when nothing failed. */
export function loadCommand(io: LoadIo): Command {
  const command = apiFlags(new Command('load'))
    .description('load the running gateway, or your own at another address, with calls and report the figures (docs/load-tests.md)')
    .option('--cps <n>', 'calls started a second; start of a rate ramp', number(0.1, 20_000), 10)
    .option('--calls <n>', 'total calls (default: ten seconds of them); start of a ramp of held calls (default: 100)', whole(1, 10_000_000))
    .option('--hold <s>', 'seconds from the answer to the end of each call (default: 2; with media: 6)', number(0, 36_000))
    .option('--media <percent>', 'share of calls with SRTP, whose audio is checked', number(0, 100), 0)
    .option('--number <number>', "number to call (default: the running gateway's demo number)")
    .option('--from <number>', 'caller number', '+15550100999')
    .option('--digits <keys>', 'DTMF digits that calls with media send; "-" for none (default: 1)', keys)
    .option('--no-echo', 'the agent does not echo: do not expect tone and digits back')
    .option('--sipp-scenario <file>', 'your own SIPp scenario for calls without media')
    .option('--connections <n>', 'TLS connections, each with its own SIPp (default: by rate)', whole(1, 64))
    .option(
      '--direction <name>',
      'SDP direction of calls without media: sendrecv or inactive (default: inactive when held for more than 25 s)',
      direction,
    )
    .option('--setup-timeout <s>', 'longest wait for any answer', number(0.1, 300), 10)
    .option('--media-ports <range>', 'UDP ports of the media generator, two a slot', portRange, { min: 40_000, max: 49_999 })
    .option('--ramp [kind]', 'find the highest rate without a failure; held: highest number of concurrent calls; both', rampKinds)
    .option('--stage <s>', 'seconds a stage of a ramp', number(1, 3_600), 10)
    .option('--highest <n>', 'highest value a ramp tries', whole(1, 1_000_000), 20_000)
    .option('--max-failures <n>', 'failed calls to tolerate', whole(0, 10_000_000), 0)
    .option(
      '--max-p99 <ms>',
      `limit of INVITE to 200, 99th percentile (default: none; in a ramp: ${String(RAMP_MAX_P99_MS)})`,
      number(0.1, 60_000),
    )
    .option('--max-loss <percent>', 'media packet loss to tolerate', number(0, 100), 0.1)
    .option('--outbound', 'the API places the calls, to numbers that begin with --number, from --from; a carrier of the test answers')
    .option('--target <host:port>', 'SIP address (TLS) to call (default: the running gateway)')
    .option('--ca <file>', 'CA certificate that verifies the gateway’s')
    .option('--i-own-the-target', 'confirm that the target, another machine, is yours to load')
    .option('--name <text>', 'name of the batch that records the run', 'Load test')
    .option('--report <file>', 'path of the HTML report (default: load-reports in data_dir)')
    .option('--no-report', 'write no HTML report');
  return command.action((flags: LoadFlags) => run(io, flags));
}

async function run(io: LoadIo, flags: LoadFlags): Promise<void> {
  const config = io.config();
  // `npm run load --json`, without `--` before it, ends up in npm's own environment.
  const isJson = flags.json === true || process.env['npm_config_json'] === 'true';
  const say = (line: string): void => (isJson ? console.error(line) : console.log(line));
  const isOutbound = flags.outbound === true;
  const options = await optionsOf(config, flags);
  const outbound = isOutbound ? await OutboundLoad.open((await openApi(io, flags)).api, options, systemClock) : null;
  const batch = await LoadBatch.open(() => batchApi(io, flags), flags.name);
  const notes = [...options.notes, ...batch.notes];
  const stop = new AbortController();
  const onSignal = (): void => {
    if (stop.signal.aborted) process.exit(130);
    say('\nEnding the calls in progress. Ctrl-C again stops immediately.');
    stop.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  try {
    const { LoadRun } = await import('../loadtest/run/load-run.js');
    const observer = observerOf(batch, options, isJson, say);
    await batch.lifecycle(`load test of ${options.target.host}:${String(options.target.port)} began`, 'started');
    const run_ = new LoadRun({ ...options, batchId: batch.id, notes, outbound }, observer, systemClock, stop.signal);
    const figures = await run_.run().catch(async (error: unknown) => {
      await batch.lifecycle(`the load test failed: ${errorText(error)}`.slice(0, 2_000), 'failed');
      throw error;
    });
    await batch.complete(figures);
    const report = await writeReport(config, flags, figures);
    console.log(isJson ? JSON.stringify(snakeKeys({ ...figures, report }), null, 2) : resultText(figures));
    if (report !== null) say(`Report: ${report}`);
    if (batch.id !== null) say(`Batch: ${batch.id} (GET /v2/batches/${batch.id}/logs)`);
    if (!figures.passed) process.exitCode = 1;
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
    await outbound?.close();
  }
}

/** Where the batch is written: the API of the gateway that is called. */
async function batchApi(io: LoadIo, flags: LoadFlags): Promise<Client> {
  if (flags.target !== undefined && namedUrl(io, flags) === undefined)
    throw new CommandFailure("name the control API of the target with --api-url, and an organization's key with --key");
  const { api } = await openApi(io, flags, BATCH_LIMIT_MS);
  await nameOwner(io, api);
  return api;
}

/** A line that is overwritten in a terminal; elsewhere one every few seconds. */
function observerOf(batch: LoadBatch, { ramps }: LoadOptions, isJson: boolean, say: (line: string) => void): RunObserver {
  const isTerminal = process.stdout.isTTY && !isJson;
  let seconds = 0;
  return {
    lifecycle: (message, stateChange) => batch.lifecycle(message, stateChange),
    onSecond: (recorder, elapsedMs) => {
      void batch.figures(recorder, elapsedMs);
      const stage =
        ramps.length === 0
          ? ''
          : `stage ${String(recorder.stage)} (${String(recorder.plan.cps)}/s, ${String(recorder.plan.calls)} calls)  `;
      const line = progressLine(recorder, elapsedMs, stage);
      if (isTerminal) process.stdout.write(`\r\u001b[K${line.slice(0, process.stdout.columns - 1)}`);
      else if (seconds % PROGRESS_EVERY_S === PROGRESS_EVERY_S - 1) say(line);
      seconds += 1;
    },
    onStage: ({ plan, verdict }) => {
      if (isTerminal) process.stdout.write('\r\u001b[K');
      if (ramps.length === 0) return;
      say(
        `${verdict.passed ? 'passed' : 'failed'}: ${String(plan.cps)}/s, ${String(plan.calls)} calls${verdict.faults.map((fault) => `; ${fault}`).join('')}`,
      );
    },
  };
}

async function optionsOf(config: Config, flags: LoadFlags): Promise<LoadOptions> {
  const isOutbound = flags.outbound === true;
  if (isOutbound) refuseOutbound(flags);
  const ready = flags.target === undefined || flags.number === undefined ? await readReady(config) : null;
  const called = flags.number ?? ready?.phone_number ?? null;
  const address = flags.target ?? ready?.sip.tls;
  if (address === undefined)
    throw new Error(`no running gateway in ${resolve(config.data_dir)}: start one with trunkline up, or set --target`);
  if (called === null) throw new Error('no number to call: set --number');
  if (!/^\+?[0-9A-Za-z.*#_-]{1,64}$/.test(called)) throw new Error('--number must be digits, with or without a plus before them');
  if (!/^\+?[0-9A-Za-z._-]{1,64}$/.test(flags.from)) throw new Error('--from must be digits, with or without a plus before them');
  const target = splitHostPort(address);
  refuseStrangers(target.host, flags.iOwnTheTarget === true);
  const caFile = flags.ca ?? (flags.target === undefined ? (ready?.ca_file ?? null) : null);
  if (caFile === null) throw new Error('no CA for the certificate of the gateway: set --ca FILE');
  for (const file of [caFile, flags.sippScenario]) if (file !== undefined) await readable(file);
  // `npm run load --ramp`, without `--` before it.
  const ramp = flags.ramp ?? (process.env['npm_config_ramp'] === 'true' ? true : undefined);
  const ramps: readonly RampKind[] = ramp === undefined ? [] : ramp === true ? ['rate'] : ramp;
  const hold = flags.hold ?? (flags.media > 0 ? 6 : 2);
  const isHeld = ramps.length > 0 && !ramps.includes('rate');
  const { digits, echoes, notes } = listeningOf({ hold, media: flags.media, digits: flags.digits, echo: flags.echo, isHeld });
  return {
    target,
    caFile: resolve(caFile),
    gatewayPid: flags.target === undefined ? (ready?.pid ?? null) : null,
    called,
    caller: flags.from,
    cps: flags.cps,
    calls: flags.calls ?? (ramps.length > 0 ? 100 : Math.max(1, Math.round(flags.cps * 10))),
    holdMs: Math.round(hold * 1_000),
    mediaPercent: flags.media,
    digits,
    scenario: flags.sippScenario === undefined ? null : resolve(flags.sippScenario),
    scenarioDirectory: join(PACKAGE_ROOT, 'config/load'),
    connections: flags.connections ?? null,
    setupTimeoutMs: Math.round(flags.setupTimeout * 1_000),
    direction: flags.direction ?? null,
    thresholds: {
      maxFailures: flags.maxFailures,
      maxP99: flags.maxP99 ?? (ramps.length > 0 ? RAMP_MAX_P99_MS : null),
      maxLossPercent: flags.maxLoss,
      echoes,
    },
    ramps,
    stageSeconds: flags.stage,
    highest: flags.highest,
    generatorProgram: nativeFile(config, 'media-generator'),
    mediaPorts: flags.mediaPorts,
    batchId: null,
    notes,
    outbound: null,
  };
}

function refuseOutbound({ number: prefix, target, media, sippScenario, digits }: LoadFlags): void {
  if (target !== undefined) throw new Error('--outbound loads the running gateway: leave --target out');
  if (media > 0 || sippScenario !== undefined || digits !== undefined)
    throw new Error('calls of --outbound have no media and no SIPp: leave --media, --digits and --sipp-scenario out');
  if (prefix === undefined || !/^\+[1-9]\d{4,8}$/.test(prefix))
    throw new Error('--outbound needs --number: a plus and the first 5 to 9 digits of the called numbers, which six more follow');
}

/** A load test of somebody else's machine is an attack. */
function refuseStrangers(host: string, isOwn: boolean): void {
  const isLoopback = host === 'localhost' || (isIP(host) !== 0 && isInBlocks(['127.0.0.0/8', '::1'], host));
  if (!isLoopback && !isOwn)
    throw new Error(
      `${host} is not this machine: a load test of a gateway that is not yours is an attack. If it is yours, add --i-own-the-target`,
    );
}

async function readable(file: string): Promise<void> {
  const found = await stat(file).catch(() => null);
  if (found?.isFile() !== true) throw new Error(`file ${file} not found`);
}

async function writeReport(config: Config, { report }: LoadFlags, figures: RunFigures): Promise<string | null> {
  if (report === false) return null;
  const directory = join(resolve(config.data_dir), 'load-reports');
  const file = typeof report === 'string' ? resolve(report) : join(directory, `${figures.startedAt.replace(/[:.]/g, '-')}.html`);
  if (typeof report !== 'string') await mkdir(directory, { recursive: true, mode: 0o700 });
  const uplot = dirname(createRequire(import.meta.url).resolve('uplot'));
  const [script, style] = await Promise.all(['uPlot.iife.min.js', 'uPlot.min.css'].map((name) => readFile(join(uplot, name), 'utf8')));
  await writeFile(file, htmlReport(figures, { script: script ?? '', style: style ?? '' }));
  return file;
}

function keys(text: string): string {
  if (text === '-' || text === '') return '';
  if (!/^[0-9A-D*#]{1,32}$/i.test(text)) throw new InvalidArgumentError('must be DTMF digits: 0 to 9, A to D, * and #');
  return text.toUpperCase();
}

function direction(text: string): 'sendrecv' | 'inactive' {
  if (text !== 'sendrecv' && text !== 'inactive') throw new InvalidArgumentError('must be sendrecv or inactive');
  return text;
}

function rampKinds(text: string): readonly RampKind[] {
  if (text === 'both') return ['rate', 'held'];
  if (text !== 'rate' && text !== 'held') throw new InvalidArgumentError('must be rate, held or both');
  return [text];
}

function portRange(text: string): { readonly min: number; readonly max: number } {
  const match = /^(\d{4,5})-(\d{4,5})$/.exec(text);
  const [min, max] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || min < 1_024 || max > 65_535 || max <= min) throw new InvalidArgumentError('must be two ports, such as 40000-49999');
  return { min, max };
}

/** The batch that a load test is written to; where none can be made there is none, and the test goes on. */
export class LoadBatch {
  #written: Promise<void> = Promise.resolve();
  #isWriting = false;

  private constructor(
    readonly id: string | null,
    /** Why there is none. */
    readonly notes: readonly string[],
    private readonly api: Client | null,
  ) {}

  static async open(openApi: () => Promise<Client>, name: string): Promise<LoadBatch> {
    try {
      const api = await openApi();
      const { data } = await api.POST('/v2/batches', { body: { name } });
      return new LoadBatch(data.batch_id, [], api);
    } catch (error) {
      return new LoadBatch(null, [`cannot write a batch: ${errorText(error)}`], null);
    }
  }

  lifecycle(message: string, stateChange: string): Promise<void> {
    return this.#append({ event_type: 'lifecycle', payload: { message: message.slice(0, 2_000), state_change: stateChange } });
  }

  /** Each second, so that the run can be looked at while it goes on; one that is over before the last entry is written is left out. */
  async figures(recorder: StageRecorder, elapsedMs: number): Promise<void> {
    if (this.#isWriting) return;
    // The second that is going on is not whole.
    const whole = recorder.seconds().at(-2);
    const payload = {
      stage: recorder.stage,
      second: Math.round(elapsedMs / 1_000),
      calls_per_second: whole?.started ?? 0,
      in_progress: recorder.inProgress,
      answered: recorder.answeredCount,
      failed: recorder.failed,
      setup_p50_ms: whole?.p50 ?? null,
      setup_p99_ms: whole?.p99 ?? null,
    };
    await this.#append({ event_type: 'figures', payload });
  }

  /** Reports the sum of all stages. */
  async complete({ stages, interrupted }: RunFigures): Promise<void> {
    const sum = (pick: (stage: RunFigures['stages'][number]) => number): number => stages.reduce((all, stage) => all + pick(stage), 0);
    if (interrupted) await this.lifecycle('the load test was interrupted, calls in progress were ended', 'interrupted');
    const payload = {
      calls_total: sum((one) => one.started),
      calls_failed: sum((one) => one.failed),
      calls_successful: sum((one) => one.successful),
    };
    await this.#append({ event_type: 'complete', payload });
  }

  /** One after the other, in their order. A log that cannot be written is no reason to end a test. */
  #append(body: { readonly event_type: string; readonly payload: Record<string, unknown> }): Promise<void> {
    const { api, id } = this;
    if (api === null || id === null) return Promise.resolve();
    const write = async (): Promise<void> => {
      this.#isWriting = true;
      await api.POST('/v2/batches/{batch_id}/logs', { params: { path: { batch_id: id } }, body }).catch(() => undefined);
      this.#isWriting = false;
    };
    this.#written = this.#written.then(write);
    return this.#written;
  }
}
