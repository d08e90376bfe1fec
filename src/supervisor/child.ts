import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../config/data-dir.js';
import type { GatewayPlace } from '../config/gateway-worker.js';
import type { CancelTimer, Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { rotateLog } from '../observability/log/log-rotation.js';
import type { WantedPort } from './ports-free.js';
import { readText } from './read-text.js';
import { FOLLOW_SIGNAL, LeftProcess, processIdentity, SpawnedProcess, type RunningProcess } from './running-process.js';

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
  /** The same for one that was started with `--after PID`: it has loaded everything and waits for the end of that process. `null`: it cannot. */
  readonly followerReadiness: ((pid: number) => Promise<Readiness>) | null;
  /** Asks such a one to connect what it needs before it replaces this one; left out: nothing. Rejects when it does not answer in time. */
  readonly connectAhead?: () => Promise<unknown>;
  readonly stopSignal: NodeJS.Signals;
  readonly stopTimeoutMs: number;
  /** Ports that it opens. */
  readonly ports: readonly WantedPort[];
  /** A gateway's: at the other one `trunkline reload` starts its successor. */
  readonly place?: GatewayPlace;
  /** It ends with code 0 when it has nothing left to do, and is not started again. */
  readonly isRetired?: boolean;
}

/** What a child that serves tells: the supervisor prints it. */
export type Facts = Readonly<Record<string, unknown>>;

/** `unready`: it is there, but still starting, however long that takes, or without a file handle to answer with. `silent`: no answer. */
export type Readiness = Facts | 'unready' | 'silent';

const POLL_MS = 20;
const LOADING_TOLD_EACH_MS = 5_000;
const LEAST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 10_000;
const STEADY_AFTER_MS = 60_000;
const ROTATE_EACH_MS = 60_000;
const BEAT_MS = 1_000;
/** After this many unanswered questions in a row it counts as hung: with its start it is replaced within 10 s. */
const MAX_MISSED_BEATS = 6;
/** One that an earlier supervisor left hangs after the same time: it may be on its way into the place of one that died. */
const LEFT_TIMEOUT_MS = MAX_MISSED_BEATS * BEAT_MS;
const SETPRIV = '/usr/bin/setpriv';

/** What a file beside the log holds, so that the next supervisor finds the process. */
interface ChildFile {
  readonly pid: number;
  readonly identity: string;
  /** What it was started with. */
  readonly fingerprint: string;
  readonly isRetired: boolean;
}

/** Whether the last process with this name had a successor, if it was not stopped. `null`: there was none. */
export function wasRetired(directory: string, name: string): boolean | null {
  return readChildFile(childFile(directory, name))?.isRetired ?? null;
}

interface LeftChild {
  readonly process: RunningProcess;
  readonly fingerprint: string;
}

/**
 * Starts a child, waits until it is ready, restarts it when it dies or hangs, and stops it within a time limit. A child outlives its
 * supervisor: the next one takes it over if it would start the same.
 */
export class SupervisedChild {
  readonly #logFile: string;
  readonly #childFile: string;
  readonly #followerFile: string;
  #running: RunningProcess | undefined;
  /** A process that waits for the end of the one that runs. */
  #follower: RunningProcess | undefined;
  #isFollowerLoaded = false;
  #isReplacing = false;
  #isStopping = false;
  #isGone = false;
  #isReady = false;
  #isTakenOver = false;
  #missedBeats = 0;
  #backoffMs = 0;
  #cancelRestart: CancelTimer | undefined;
  #cancelRotation: CancelTimer | undefined;
  #cancelBeat: CancelTimer | undefined;
  #cancelHandover: CancelTimer | undefined;
  #spec: ChildSpec;

  /** @param startTimeoutMs a start that is silent for longer has failed */
  constructor(
    spec: ChildSpec,
    directory: string,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly startTimeoutMs: number,
    /** Gets the name of one that ended by itself and is started again. */
    private readonly onDied: (name: string) => void = () => undefined,
  ) {
    this.#spec = spec;
    const logs = join(directory, 'logs');
    mkdirSync(logs, { recursive: true, mode: 0o700 });
    this.#logFile = join(logs, `${spec.name}.log`);
    this.#childFile = childFile(directory, spec.name);
    this.#followerFile = childFile(directory, `${spec.name}-next`);
  }

  get spec(): ChildSpec {
    return this.#spec;
  }

  /** Whether it was retired and has ended. */
  get isGone(): boolean {
    return this.#isGone;
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

  /**
   * Resolves with what the child tells. Rejects with the end of its log if it dies or stays silent.
   * @param firstArgs for this start alone
   */
  async start(firstArgs: readonly string[] = []): Promise<Facts> {
    return (await this.#takeOver()) ?? (await this.#startNew(firstArgs));
  }

  /**
   * Retires the process once its successor runs: it finishes its work within `handoverMs`, then a new process takes what is left.
   */
  retire(spec: ChildSpec, handoverMs: number): void {
    this.#spec = spec;
    this.#dropFollower();
    if (this.#running !== undefined) this.#writeFile(this.#childFile, this.#running.pid, this.#fingerprint());
    this.#cancelHandover = this.clock.setTimer(handoverMs, () => {
      this.replace().catch((error: unknown) =>
        this.log.warn({ child: spec.name, error: (error as Error).message }, 'supervisor.child.not_replaced'),
      );
    });
  }

  /** Takes over what an earlier supervisor left, to stop it. */
  adopt(): void {
    const left = this.#left();
    this.#running = left?.process;
    this.#dropLeftFollower(left);
  }

  #dropLeftFollower(left: LeftChild | null): void {
    const follower = this.#leftOf(this.#followerFile);
    if (follower !== null && follower.process.pid !== left?.process.pid) follower.process.kill('SIGKILL');
    rmSync(this.#followerFile, { force: true });
  }

  /** Whether it states that a successor takes the calls. */
  async isRetired(): Promise<boolean> {
    const readiness = this.#running === undefined ? 'silent' : await this.#spec.readiness(this.#running.pid);
    return typeof readiness === 'object' && readiness['is_retired'] === true;
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
    if (!this.#isReady || old === undefined) return;
    this.#dropFollower();
    const follower = await this.#loadFollower(old);
    await this.#spec
      .connectAhead?.()
      .catch((error: unknown) => this.log.warn({ child: this.#spec.name, error: (error as Error).message }, 'supervisor.child.not_ahead'));
    if (!follower.isAlive) throw new Error(`${this.#spec.name} was not replaced: its successor has died\n${this.#logTail()}`);
    if (this.#isStopping || this.#running !== old) return;
    this.#isReplacing = true;
    // SIGTERM parks the calls; the signal that stops it would end them.
    await this.#end(old, 'SIGTERM');
    this.#isReplacing = false;
    await this.#follow(follower);
    this.log.info({ child: this.#spec.name, child_pid: this.pid }, 'supervisor.child.replaced');
  }

  /** Starts a process that loads everything and waits for the end of this one. Rejects when it does not get so far. */
  async #loadFollower(predecessor: RunningProcess): Promise<RunningProcess> {
    const { name, followerReadiness } = this.#spec;
    const follower = this.#spawn(['--after', String(predecessor.pid)]);
    this.#follower = follower;
    this.#writeFile(this.#followerFile, follower.pid, this.#fingerprint());
    try {
      if (followerReadiness === null) throw new Error('it cannot follow another');
      await this.#whenReady(follower, this.startTimeoutMs, followerReadiness);
      this.#isFollowerLoaded = true;
      return follower;
    } catch (error) {
      // Another one may have taken its place meanwhile.
      if (this.#follower === follower) this.#dropFollower();
      throw new Error(`${name} was not replaced: ${(error as Error).message}\n${this.#logTail()}`, { cause: error });
    }
  }

  #dropFollower(): void {
    this.#follower?.kill('SIGKILL');
    this.#follower = undefined;
    this.#isFollowerLoaded = false;
    rmSync(this.#followerFile, { force: true });
  }

  /** The predecessor has ended. */
  #follow(follower: RunningProcess): Promise<Facts> {
    this.#follower = undefined;
    this.#isFollowerLoaded = false;
    this.#running = follower;
    this.#writeFile(this.#childFile, follower.pid, this.#fingerprint());
    rmSync(this.#followerFile, { force: true });
    // It looks itself too, but not as often.
    follower.kill(FOLLOW_SIGNAL);
    return this.#becomeReady(follower);
  }

  /** Sends the signal that ends it, and SIGKILL after the time limit. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelRestart?.();
    this.#cancelRotation?.();
    this.#cancelBeat?.();
    this.#cancelHandover?.();
    this.#dropFollower();
    if (this.#running !== undefined) await this.#end(this.#running, this.#spec.stopSignal);
    rmSync(this.#childFile, { force: true });
  }

  async #end(running: RunningProcess, signal: NodeJS.Signals): Promise<void> {
    if (!running.isAlive) return;
    const gone = new Promise<void>((resolve) => running.onEnd(() => resolve()));
    running.kill(signal);
    const cancel = this.clock.setTimer(this.#spec.stopTimeoutMs, () => {
      this.log.warn({ child: this.#spec.name }, 'supervisor.child.killed');
      running.kill('SIGKILL');
    });
    await gone;
    cancel();
  }

  /** What an earlier supervisor left: a follower that lost its predecessor runs in its place. */
  #left(): LeftChild | null {
    return this.#leftOf(this.#childFile) ?? this.#leftOf(this.#followerFile);
  }

  #leftOf(file: string): LeftChild | null {
    const read = readChildFile(file);
    if (read === null) return null;
    const process_ = new LeftProcess(read.pid, read.identity, this.clock);
    return process_.isAlive ? { process: process_, fingerprint: read.fingerprint } : null;
  }

  /** `null`: there is nothing to take over any more. */
  async #takeOver(): Promise<Facts | null> {
    const left = this.#left();
    if (left === null) return null;
    const { process: running, fingerprint } = left;
    this.#dropLeftFollower(left);
    this.#writeFile(this.#childFile, running.pid, fingerprint);
    this.#running = running;
    try {
      if (fingerprint !== this.#fingerprint()) throw new Error('it was started with other settings, or by another version');
      const facts = await this.#whenReady(running, LEFT_TIMEOUT_MS);
      this.#isTakenOver = true;
      this.log.info({ child: this.#spec.name, child_pid: running.pid }, 'supervisor.child.taken_over');
      this.#rotateLater();
      this.#serve(running);
      return facts;
    } catch (error) {
      this.log.warn({ child: this.#spec.name, child_pid: running.pid, error: (error as Error).message }, 'supervisor.child.replaced');
      // Calls wait for the successor: SIGTERM, not the signal that hangs up.
      await this.#end(running, 'SIGTERM');
      return null;
    }
  }

  #startNew(furtherArgs: readonly string[] = []): Promise<Facts> {
    this.#running = this.#spawn(furtherArgs);
    this.#writeFile(this.#childFile, this.#running.pid, this.#fingerprint());
    return this.#becomeReady(this.#running);
  }

  async #becomeReady(running: RunningProcess): Promise<Facts> {
    try {
      const facts = await this.#whenReady(running, this.startTimeoutMs);
      this.#serve(running);
      return facts;
    } catch (error) {
      running.kill('SIGKILL');
      throw new Error(`${this.#spec.name} did not start: ${(error as Error).message}\n${this.#logTail()}`, { cause: error });
    }
  }

  #spawn(furtherArgs: readonly string[] = []): RunningProcess {
    rotateLog(this.#logFile);
    this.#rotateLater();
    const log = openSync(this.#logFile, 'a', 0o600);
    const { command: program, environment: env, directory: cwd, name } = this.#spec;
    const ownArgs = [...this.#spec.args, ...furtherArgs];
    // Descendants get no more rights than it has.
    const isGuarded = existsSync(SETPRIV);
    const command = isGuarded ? SETPRIV : program;
    const args = isGuarded ? ['--no-new-privs', '--', program, ...ownArgs] : ownArgs;
    // A process group of its own: at Ctrl-C a terminal signals the whole foreground group, and rtpengine and Redis would end before the
    // calls that need them.
    const child = spawn(command, args, { stdio: ['ignore', log, log], detached: true, env, cwd });
    closeSync(log);
    child.on('error', (error) => this.log.error({ child: name, error: error.message }, 'supervisor.child.spawn_failed'));
    return new SpawnedProcess(child);
  }

  #writeFile(file: string, pid: number, fingerprint: string): void {
    const identity = processIdentity(pid);
    if (identity !== null)
      writePrivateFile(file, JSON.stringify({ pid, identity, fingerprint, isRetired: this.#spec.isRetired === true } satisfies ChildFile));
  }

  /** Tells one start from another: program, arguments, environment, and our build. */
  #fingerprint(): string {
    const { command, args, environment } = this.#spec;
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

  #whenReady(running: RunningProcess, withinMs: number, readiness_ = this.#spec.readiness): Promise<Facts> {
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
          // It is not dead.
          cancelLimit();
          cancelLimit = limit();
          const nowMs = this.clock.nowMs();
          if (nowMs - toldMs < LOADING_TOLD_EACH_MS) return;
          toldMs = nowMs;
          this.log.info({ child: this.#spec.name, for_ms: Math.round(nowMs - startedMs) }, 'supervisor.child.loading');
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
    if (this.#spec.mustAnswer) this.#beatLater(running);
    running.onEnd(({ code, signal }) => {
      this.#isReady = false;
      if (this.#isStopping || this.#isReplacing) return;
      if (this.#spec.isRetired === true && code === 0) {
        this.#isGone = true;
        return void this.stop();
      }
      const died = (restartInMs: number): void => {
        const { name } = this.#spec;
        this.log.error({ child: name, code, signal, restart_in_ms: restartInMs, log_file: this.#logFile }, 'supervisor.child.died');
        this.onDied(name);
      };
      // A reload was about to replace it.
      const next = this.#isFollowerLoaded ? this.#follower : undefined;
      if (next?.isAlive === true) {
        died(0);
        return this.#restarting(this.#follow(next));
      }
      this.#dropFollower();
      // Who parked its calls did not fail, and its callers hear nothing until the next one is there.
      if (code === 0 || this.clock.nowMs() - upSinceMs > STEADY_AFTER_MS) this.#backoffMs = 0;
      died(this.#backoffMs);
      this.#restartLater();
    });
  }

  #beatLater(running: RunningProcess, dueMs = this.clock.nowMs() + BEAT_MS): void {
    this.#cancelBeat = this.clock.setTimer(Math.max(0, dueMs - this.clock.nowMs()), () => {
      if (this.#isStopping || !running.isAlive) return;
      // A machine that stood still held us up too.
      const askedMs = this.clock.nowMs();
      if (askedMs - dueMs > BEAT_MS) this.#missedBeats = 0;
      void this.#spec.readiness(running.pid).then((readiness) => {
        this.#missedBeats = readiness === 'silent' ? this.#missedBeats + 1 : 0;
        if (this.#missedBeats < MAX_MISSED_BEATS) return this.#beatLater(running, askedMs + BEAT_MS);
        this.log.error({ child: this.#spec.name, child_pid: running.pid }, 'supervisor.child.hung');
        running.kill('SIGKILL');
      });
    });
  }

  #restartLater(): void {
    this.#cancelRestart = this.clock.setTimer(this.#backoffMs, () => {
      this.#backoffMs = Math.min(Math.max(2 * this.#backoffMs, LEAST_BACKOFF_MS), MAX_BACKOFF_MS);
      this.#restarting(this.#startNew());
    });
  }

  #restarting(start: Promise<Facts>): void {
    start.then(
      () => this.log.info({ child: this.#spec.name, child_pid: this.pid }, 'supervisor.child.restarted'),
      (error: unknown) => {
        if (this.#isStopping) return;
        this.log.error({ child: this.#spec.name, error: (error as Error).message }, 'supervisor.child.restart_failed');
        this.#restartLater();
      },
    );
  }

  #logTail(): string {
    return readText(this.#logFile).split('\n').slice(-15).join('\n');
  }
}

function childFile(directory: string, name: string): string {
  return join(directory, `${name}.pid`);
}

function readChildFile(file: string): ChildFile | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ChildFile;
  } catch {
    return null;
  }
}
