import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { within, type Clock } from '../../lib/clock.js';
import { CALLS_FILE, ERROR_FILE, sippArguments, STAT_FILE, type SippJob } from '../sipp-command.js';
import { ErrorLog, parseCallLine, parseRttLine, StatLines } from '../sipp-files.js';
import type { CallSourceListener } from './call-source.js';
import { FileFollower } from './file-follower.js';
import { ownedChild, whenGone } from './owned-child.js';

const BETWEEN_MS = 100;
const BYE_TIME_MS = 1_500;
/** Exit codes of SIPp: all calls well; a call failed; ended by command; no call processed. */
const ORDERLY = [0, 1, 97, 99];

/** One SIPp in a directory of its own. */
export class SippProcess {
  readonly #child: ChildProcess;
  readonly #calls: FileFollower;
  readonly #errors: FileFollower;
  readonly #stat: FileFollower;
  readonly #rtt: FileFollower | null;
  readonly #errorLog = new ErrorLog();
  readonly #statLines = new StatLines();
  readonly #gone: Promise<number | null>;
  #isStopping = false;
  #spawnError: string | null = null;

  constructor(
    job: SippJob,
    private readonly directory: string,
    private readonly listener: CallSourceListener,
    private readonly clock: Clock,
  ) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const output = openSync(join(directory, 'output.txt'), 'w', 0o600);
    this.#child = ownedChild('sipp', sippArguments(job), {
      cwd: directory,
      env: { ...process.env, TERM: 'dumb' },
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    this.#child.on('error', (error) => (this.#spawnError = error.message));
    this.#gone = whenGone(this.#child);
    this.#calls = new FileFollower(join(directory, CALLS_FILE));
    this.#errors = new FileFollower(join(directory, ERROR_FILE));
    this.#stat = new FileFollower(join(directory, STAT_FILE));
    const rtt = `${basename(job.scenario).replace(/\.[^.]*$/, '')}_${String(this.pid)}_rtt.csv`;
    this.#rtt = job.tellsAnswers ? null : new FileFollower(join(directory, rtt));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Hands on what SIPp has written since the last time. */
  read(): void {
    for (const line of this.#calls.lines()) {
      const parsed = parseCallLine(line);
      if (parsed !== null) this.listener.call(parsed);
    }
    for (const line of this.#rtt?.lines() ?? []) {
      const latencyMs = parseRttLine(line);
      if (latencyMs !== null) this.listener.call({ kind: 'answered', atMs: this.clock.wallMs(), latencyMs, media: null });
    }
    for (const error of this.#errorLog.read(this.#errors.text())) this.listener.error(error);
    for (const line of this.#stat.lines()) {
      const counters = this.#statLines.read(line);
      if (counters !== null) this.listener.counters(counters);
    }
  }

  /** Resolves when it has ended and everything that it wrote is read; with what went wrong when it broke off. */
  async ended(): Promise<string | null> {
    const code = await this.#gone;
    this.read();
    for (const error of this.#errorLog.end()) this.listener.error(error);
    for (const follower of [this.#calls, this.#errors, this.#stat, this.#rtt]) follower?.close();
    if (this.#isStopping || (code !== null && ORDERLY.includes(code))) return null;
    return `SIPp ended with ${this.#spawnError ?? this.#child.signalCode ?? String(code)}: ${this.#complaint()}`;
  }

  /** Ends the calls in progress with BYE, or CANCEL, and then SIPp. */
  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    // The first asks for no new calls, the second for the end of all. SIPp sends the BYEs at once, and then waits for calls that are no more.
    this.#child.kill('SIGUSR1');
    await within(this.clock, BETWEEN_MS, this.#gone);
    this.#child.kill('SIGUSR1');
    await within(this.clock, BYE_TIME_MS, this.#gone);
    this.#child.kill('SIGKILL');
  }

  /** Its error log, or what it printed when there is none. */
  #complaint(): string {
    const text = (name: string): string => {
      try {
        return readFileSync(join(this.directory, name), 'latin1').trim();
      } catch {
        return '';
      }
    };
    return (text(ERROR_FILE) || text('output.txt')).slice(-1_000);
  }
}
