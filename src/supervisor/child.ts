import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CancelTimer, Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { rotateLog } from '../observability/log/log-rotation.js';

/** One supervised process. */
export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment: the child inherits nothing else. */
  readonly environment: NodeJS.ProcessEnv;
  readonly directory?: string;
  /** True: the child sends a readiness message over IPC. False: the supervisor calls `isReady`. */
  readonly isNode: boolean;
  /** Called about every 50 ms until `ready`. Not for Node children. */
  readonly readiness?: () => Promise<Readiness>;
  readonly stopTimeoutMs: number;
}

/** `loading`: it answers and is still starting, however long that takes. `silent`: it does not answer. */
export type Readiness = 'ready' | 'loading' | 'silent';

/** A Node child's message when it serves: the supervisor prints `facts`. */
export interface ReadyMessage {
  readonly type: 'ready';
  readonly facts: Readonly<Record<string, unknown>>;
}

const READY_TIMEOUT_MS = 20_000;
const LOADING_TOLD_EACH_MS = 5_000;
const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 10_000;
const STEADY_AFTER_MS = 60_000;
const ROTATE_EACH_MS = 60_000;
const SETPRIV = '/usr/bin/setpriv';

/** Starts a child, waits until it is ready, restarts it when it dies, and stops it within a time limit. */
export class SupervisedChild {
  readonly #logFile: string;
  #process: ChildProcess | undefined;
  #isStopping = false;
  #isReady = false;
  #backoffMs = FIRST_BACKOFF_MS;
  #cancelRestart: CancelTimer | undefined;
  #cancelRotation: CancelTimer | undefined;

  constructor(
    readonly spec: ChildSpec,
    logDirectory: string,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    mkdirSync(logDirectory, { recursive: true, mode: 0o700 });
    this.#logFile = join(logDirectory, `${spec.name}.log`);
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Resolves with the child's readiness message. Rejects with the end of its log if it dies or stays silent. */
  async start(): Promise<ReadyMessage['facts']> {
    const child = this.#spawn();
    try {
      const facts = await this.#whenReady(child);
      this.#isReady = true;
      this.#watch(child);
      return facts;
    } catch (error) {
      child.kill('SIGKILL');
      throw new Error(`${this.spec.name} did not start: ${(error as Error).message}\n${this.#logTail()}`, { cause: error });
    }
  }

  /** Sends SIGHUP, but not before the child is ready: it would die, and a starting child reads new files anyway. */
  reload(): void {
    if (this.#isReady) this.#process?.kill('SIGHUP');
  }

  /** Sends SIGTERM, and SIGKILL after the time limit. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelRestart?.();
    this.#cancelRotation?.();
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const cancel = this.clock.setTimer(this.spec.stopTimeoutMs, () => {
      this.log.warn({ child: this.spec.name }, 'supervisor.child.killed');
      child.kill('SIGKILL');
    });
    await gone;
    cancel();
  }

  #spawn(): ChildProcess {
    rotateLog(this.#logFile);
    this.#rotateLater();
    const log = openSync(this.#logFile, 'a', 0o600);
    // When we end, however we end, the kernel ends the child; its descendants get no more rights than it has.
    const guarded = existsSync(SETPRIV);
    const command = guarded ? SETPRIV : this.spec.command;
    const args = guarded ? ['--pdeathsig', 'TERM', '--no-new-privs', '--', this.spec.command, ...this.spec.args] : this.spec.args;
    // A process group of its own: at Ctrl-C a terminal signals the whole foreground group, and rtpengine and Redis would end before the
    // calls that need them.
    const stdio = ['ignore', log, log, ...(this.spec.isNode ? (['ipc'] as const) : [])] satisfies StdioOptions;
    const child = spawn(command, args, { stdio, detached: true, env: this.spec.environment, cwd: this.spec.directory });
    closeSync(log);
    child.on('error', (error) => this.log.error({ child: this.spec.name, error: error.message }, 'supervisor.child.spawn_failed'));
    this.#process = child;
    return child;
  }

  #rotateLater(): void {
    this.#cancelRotation?.();
    this.#cancelRotation = this.clock.setTimer(ROTATE_EACH_MS, () => {
      rotateLog(this.#logFile);
      this.#rotateLater();
    });
  }

  #whenReady(child: ChildProcess): Promise<ReadyMessage['facts']> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        cancelLimit();
        cancelPoll?.();
        child.off('exit', onExit);
        child.off('error', onError);
        child.off('message', onMessage);
        act();
      };
      let cancelPoll: CancelTimer | undefined;
      const limit = (): CancelTimer =>
        this.clock.setTimer(READY_TIMEOUT_MS, () => settle(() => reject(new Error(`not ready within ${READY_TIMEOUT_MS} ms`))));
      let cancelLimit = limit();
      const startedMs = this.clock.nowMs();
      let toldMs = startedMs;
      const onExit = (code: number | null, signal: string | null): void =>
        settle(() => reject(new Error(`it ended with ${signal ?? `exit code ${String(code)}`}`)));
      // A program that does not exist never exits.
      const onError = (error: Error): void => settle(() => reject(error));
      const onMessage = (message: unknown): void => {
        if (isReadyMessage(message)) settle(() => resolve(message.facts));
      };
      child.once('exit', onExit);
      child.once('error', onError);
      child.on('message', onMessage);
      const poll = (): void => {
        void this.spec.readiness?.().then((readiness) => {
          if (readiness === 'ready') return settle(() => resolve({}));
          cancelPoll = this.clock.setTimer(50, poll);
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

  #watch(child: ChildProcess): void {
    const upSinceMs = this.clock.nowMs();
    child.once('exit', (code, signal) => {
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

  #restartLater(): void {
    this.#cancelRestart = this.clock.setTimer(this.#backoffMs, () => {
      this.#backoffMs = Math.min(2 * this.#backoffMs, MAX_BACKOFF_MS);
      this.start().then(
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
    try {
      return readFileSync(this.#logFile, 'utf8').split('\n').slice(-15).join('\n');
    } catch {
      return '';
    }
  }
}

function isReadyMessage(message: unknown): message is ReadyMessage {
  return typeof message === 'object' && message !== null && (message as { type?: unknown }).type === 'ready';
}
