import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../config/data-dir.js';
import type { CancelTimer, Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { rotateLog } from '../observability/log/log-rotation.js';
import type { WantedPort } from './ports-free.js';
import { readText } from './read-text.js';
import { LeftProcess, processIdentity, SpawnedProcess, type RunningProcess } from './running-process.js';

/** One supervised process. */
export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment: the child inherits nothing else. */
  readonly environment: NodeJS.ProcessEnv;
  readonly directory?: string;
  /** Called about every 20 ms until it returns facts, and once a second afterwards if the child `mustAnswer`. */
  readonly readiness: (pid: number) => Promise<Readiness>;
  /** Kill it when it does not answer any more. */
  readonly mustAnswer: boolean;
  /** The same for one that was started with `--after PID`: it has loaded everything and waits for the end of that process. Left out: it cannot follow. */
  readonly followerReadiness?: (pid: number) => Promise<Readiness>;
  readonly stopSignal: NodeJS.Signals;
  readonly stopTimeoutMs: number;
  /** Ports that it opens. */
  readonly ports: readonly WantedPort[];
}

/** What a child that serves tells: the supervisor prints it. */
export type Facts = Readonly<Record<string, unknown>>;

/** `loading`: it answers and is still starting, however long that takes. `silent`: it does not answer. */
export type Readiness = Facts | 'loading' | 'silent';

const READY_TIMEOUT_MS = 20_000;
const POLL_MS = 20;
/** One that an earlier supervisor left serves already. */
const LEFT_TIMEOUT_MS = 2_000;
const LOADING_TOLD_EACH_MS = 5_000;
const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 10_000;
const STEADY_AFTER_MS = 60_000;
const ROTATE_EACH_MS = 60_000;
const BEAT_MS = 1_000;
/** After so many questions in a row without an answer it counts as hung: with its start it is replaced within 10 s. */
const MAX_MISSED_BEATS = 6;
const SETPRIV = '/usr/bin/setpriv';

/** What a file beside the log holds, so that the next supervisor finds the process. */
interface ChildFile {
  readonly pid: number;
  readonly identity: string;
  /** Of what it was started with. */
  readonly fingerprint: string;
}

/**
 * Starts a child, waits until it is ready, restarts it when it dies or hangs, and stops it within a time limit. A child outlives its
 * supervisor: the next one takes it over if it would start the same.
 */
export class SupervisedChild {
  readonly #logFile: string;
  readonly #childFile: string;
  #running: RunningProcess | undefined;
  #isStopping = false;
  #isReady = false;
  #isTakenOver = false;
  #missedBeats = 0;
  #backoffMs = FIRST_BACKOFF_MS;
  #cancelRestart: CancelTimer | undefined;
  #cancelRotation: CancelTimer | undefined;
  #cancelBeat: CancelTimer | undefined;

  constructor(
    readonly spec: ChildSpec,
    directory: string,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    const logs = join(directory, 'logs');
    mkdirSync(logs, { recursive: true, mode: 0o700 });
    this.#logFile = join(logs, `${spec.name}.log`);
    this.#childFile = join(directory, `${spec.name}.pid`);
  }

  get pid(): number | undefined {
    return this.#running?.pid;
  }

  /** Whether an earlier supervisor started it. */
  get isTakenOver(): boolean {
    return this.#isTakenOver;
  }

  /** Whether an earlier supervisor left one running, whatever it was started with. */
  get isLeft(): boolean {
    return this.#left() !== null;
  }

  /** Resolves with what the child tells. Rejects with the end of its log if it dies or stays silent. */
  async start(): Promise<Facts> {
    return (await this.#takeOver()) ?? (await this.#startNew());
  }

  /** Takes over what an earlier supervisor left, to stop it. */
  adopt(): void {
    this.#running = this.#left()?.process;
  }

  /** Sends SIGHUP, but not before the child is ready: it would die, and a starting child reads new files anyway. */
  reload(): void {
    if (this.#isReady) this.#running?.kill('SIGHUP');
  }

  /**
   * Replaces the process by a new one that is loaded before the old one ends. Its calls go on by the path of a crash: the new one takes
   * them up. Rejects, and the old one goes on, when the new one does not start.
   */
  async replace(): Promise<void> {
    const old = this.#running;
    const { followerReadiness } = this.spec;
    if (!this.#isReady || old === undefined || followerReadiness === undefined) return;
    const follower = this.#spawn(['--after', String(old.pid)]);
    try {
      await this.#whenReady(follower, READY_TIMEOUT_MS, followerReadiness);
    } catch (error) {
      follower.kill('SIGKILL');
      this.#running = old;
      throw new Error(`${this.spec.name} was not replaced: ${(error as Error).message}\n${this.#logTail()}`, { cause: error });
    }
    this.#isReady = false;
    this.#cancelBeat?.();
    this.#writeChildFile(follower.pid);
    // SIGTERM parks the calls; the signal that stops it would end them.
    await this.#end(old, 'SIGTERM');
    await this.#becomeReady(follower);
    this.log.info({ child: this.spec.name, pid: this.pid }, 'supervisor.child.replaced');
  }

  /** Sends the signal that ends it, and SIGKILL after the time limit. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelRestart?.();
    this.#cancelRotation?.();
    this.#cancelBeat?.();
    if (this.#running !== undefined) await this.#end(this.#running, this.spec.stopSignal);
    rmSync(this.#childFile, { force: true });
  }

  async #end(running: RunningProcess, signal: NodeJS.Signals): Promise<void> {
    if (!running.isAlive) return;
    const gone = new Promise<void>((resolve) => running.onEnd(() => resolve()));
    running.kill(signal);
    const cancel = this.clock.setTimer(this.spec.stopTimeoutMs, () => {
      this.log.warn({ child: this.spec.name }, 'supervisor.child.killed');
      running.kill('SIGKILL');
    });
    await gone;
    cancel();
  }

  #left(): { readonly process: RunningProcess; readonly isSame: boolean } | null {
    try {
      const { pid, identity, fingerprint } = JSON.parse(readFileSync(this.#childFile, 'utf8')) as ChildFile;
      const process_ = new LeftProcess(pid, identity, this.clock);
      return process_.isAlive ? { process: process_, isSame: fingerprint === this.#fingerprint() } : null;
    } catch {
      return null;
    }
  }

  /** `null`: there is nothing to take over any more. */
  async #takeOver(): Promise<Facts | null> {
    const left = this.#left();
    if (left === null) return null;
    const { process: running, isSame } = left;
    this.#running = running;
    try {
      if (!isSame) throw new Error('it was started with other settings, or by another version');
      const facts = await this.#whenReady(running, LEFT_TIMEOUT_MS);
      this.#isTakenOver = true;
      this.log.info({ child: this.spec.name, pid: running.pid }, 'supervisor.child.taken_over');
      this.#rotateLater();
      this.#serve(running);
      return facts;
    } catch (error) {
      this.log.warn({ child: this.spec.name, pid: running.pid, error: (error as Error).message }, 'supervisor.child.replaced');
      // Calls wait for the successor: SIGTERM, not the signal that hangs up.
      await this.#end(running, 'SIGTERM');
      return null;
    }
  }

  #startNew(): Promise<Facts> {
    const running = this.#spawn();
    this.#writeChildFile(running.pid);
    return this.#becomeReady(running);
  }

  async #becomeReady(running: RunningProcess): Promise<Facts> {
    try {
      const facts = await this.#whenReady(running, READY_TIMEOUT_MS);
      this.#serve(running);
      return facts;
    } catch (error) {
      running.kill('SIGKILL');
      throw new Error(`${this.spec.name} did not start: ${(error as Error).message}\n${this.#logTail()}`, { cause: error });
    }
  }

  #spawn(furtherArgs: readonly string[] = []): RunningProcess {
    rotateLog(this.#logFile);
    this.#rotateLater();
    const log = openSync(this.#logFile, 'a', 0o600);
    const { command: program, environment: env, directory: cwd, name } = this.spec;
    const ownArgs = [...this.spec.args, ...furtherArgs];
    // Descendants get no more rights than it has.
    const isGuarded = existsSync(SETPRIV);
    const command = isGuarded ? SETPRIV : program;
    const args = isGuarded ? ['--no-new-privs', '--', program, ...ownArgs] : ownArgs;
    // A process group of its own: at Ctrl-C a terminal signals the whole foreground group, and rtpengine and Redis would end before the
    // calls that need them.
    const child = spawn(command, args, { stdio: ['ignore', log, log], detached: true, env, cwd });
    closeSync(log);
    child.on('error', (error) => this.log.error({ child: name, error: error.message }, 'supervisor.child.spawn_failed'));
    const running = new SpawnedProcess(child);
    this.#running = running;
    return running;
  }

  #writeChildFile(pid: number): void {
    const identity = processIdentity(pid);
    if (identity === null) return;
    writePrivateFile(this.#childFile, JSON.stringify({ pid, identity, fingerprint: this.#fingerprint() } satisfies ChildFile));
  }

  /** Of the program, its arguments and environment, and of the version of ours. */
  #fingerprint(): string {
    const { command, args, environment } = this.spec;
    const script = args.find((argument) => argument.endsWith('.js'));
    const built = script === undefined ? null : statSync(script).mtimeMs;
    const variables = Object.entries(environment).filter(([name]) => /^(?:TRUNKLINE_|NODE_OPTIONS$)/.test(name));
    return createHash('sha256')
      .update(JSON.stringify([command, args, variables.sort(), built]))
      .digest('hex');
  }

  #rotateLater(): void {
    this.#cancelRotation?.();
    this.#cancelRotation = this.clock.setTimer(ROTATE_EACH_MS, () => {
      rotateLog(this.#logFile);
      this.#rotateLater();
    });
  }

  #whenReady(running: RunningProcess, withinMs: number, readiness_ = this.spec.readiness): Promise<Facts> {
    return new Promise((resolve, reject) => {
      let isSettled = false;
      let cancelPoll: CancelTimer | undefined;
      const settle = (act: () => void): void => {
        if (isSettled) return;
        isSettled = true;
        cancelLimit();
        cancelPoll?.();
        act();
      };
      const limit = (): CancelTimer =>
        this.clock.setTimer(withinMs, () => settle(() => reject(new Error(`not ready within ${String(withinMs)} ms`))));
      let cancelLimit = limit();
      const startedMs = this.clock.nowMs();
      let toldMs = startedMs;
      running.onEnd(({ code, signal, error }) =>
        settle(() => reject(new Error(error ?? `it ended with ${signal ?? `exit code ${String(code)}`}`))),
      );
      const poll = (): void => {
        void readiness_(running.pid).then((readiness) => {
          if (isSettled) return;
          if (typeof readiness === 'object') return settle(() => resolve(readiness));
          cancelPoll = this.clock.setTimer(POLL_MS, poll);
          if (readiness === 'silent') return;
          // It makes progress: it is not dead.
          cancelLimit();
          cancelLimit = limit();
          const nowMs = this.clock.nowMs();
          if (nowMs - toldMs < LOADING_TOLD_EACH_MS) return;
          toldMs = nowMs;
          this.log.info({ child: this.spec.name, for_ms: Math.round(nowMs - startedMs) }, 'supervisor.child.loading');
        });
      };
      poll();
    });
  }

  /** It is ready: from now on it is started again when it ends or hangs. */
  #serve(running: RunningProcess): void {
    const upSinceMs = this.clock.nowMs();
    this.#isReady = true;
    this.#missedBeats = 0;
    if (this.spec.mustAnswer) this.#beatLater(running);
    running.onEnd(({ code, signal }) => {
      // Another one follows it.
      if (this.#running !== running) return;
      this.#isReady = false;
      if (this.#isStopping) return;
      if (this.clock.nowMs() - upSinceMs > STEADY_AFTER_MS) this.#backoffMs = FIRST_BACKOFF_MS;
      this.log.error(
        { child: this.spec.name, code, signal, restart_in_ms: this.#backoffMs, log_file: this.#logFile },
        'supervisor.child.died',
      );
      this.#restartLater();
    });
  }

  #beatLater(running: RunningProcess): void {
    // A question without an answer took its time already.
    const delayMs = this.#missedBeats === 0 ? BEAT_MS : 0;
    const dueMs = this.clock.nowMs() + delayMs;
    this.#cancelBeat = this.clock.setTimer(delayMs, () => {
      if (this.#isStopping || !running.isAlive) return;
      // A machine that stood still held us up too.
      if (this.clock.nowMs() - dueMs > BEAT_MS) this.#missedBeats = 0;
      void this.spec.readiness(running.pid).then((readiness) => {
        this.#missedBeats = readiness === 'silent' ? this.#missedBeats + 1 : 0;
        if (this.#missedBeats < MAX_MISSED_BEATS) return this.#beatLater(running);
        this.log.error({ child: this.spec.name, pid: running.pid }, 'supervisor.child.hung');
        running.kill('SIGKILL');
      });
    });
  }

  #restartLater(): void {
    this.#cancelRestart = this.clock.setTimer(this.#backoffMs, () => {
      this.#backoffMs = Math.min(2 * this.#backoffMs, MAX_BACKOFF_MS);
      this.#startNew().then(
        () => this.log.info({ child: this.spec.name, pid: this.pid }, 'supervisor.child.restarted'),
        (error: unknown) => {
          if (this.#isStopping) return;
          this.log.error({ child: this.spec.name, error: (error as Error).message }, 'supervisor.child.restart_failed');
          this.#restartLater();
        },
      );
    });
  }

  #logTail(): string {
    return readText(this.#logFile).split('\n').slice(-15).join('\n');
  }
}
