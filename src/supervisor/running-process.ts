import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../lib/clock.js';
import { readText } from './read-text.js';

/** How a process ended: without either for one that an earlier supervisor started. */
interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why it did not even start. */
  readonly error?: string;
}

/** Tells a process that the one that it follows has ended. */
export const FOLLOW_SIGNAL = 'SIGUSR2';

const POLL_MS = 100;

/** A process that this supervisor started, or that an earlier one left running. */
export interface RunningProcess {
  readonly pid: number;
  readonly isAlive: boolean;
  /** Called once, immediately if it has ended already. */
  onEnd(listener: (end: ProcessEnd) => void): void;
  kill(signal: NodeJS.Signals): void;
}

export class SpawnedProcess implements RunningProcess {
  constructor(private readonly child: ChildProcess) {}

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  onEnd(listener: (end: ProcessEnd) => void): void {
    const { exitCode: code, signalCode: signal, pid } = this.child;
    // A program that does not exist never exits.
    if (pid === undefined) this.child.once('error', (error) => listener({ code, signal, error: error.message }));
    else if (this.isAlive) this.child.once('exit', (code_, signal_) => listener({ code: code_, signal: signal_ }));
    else listener({ code, signal });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** Not our child: the kernel does not report its end, so we look. */
export class LeftProcess implements RunningProcess {
  constructor(
    readonly pid: number,
    private readonly identity: string,
    private readonly clock: Clock,
  ) {}

  get isAlive(): boolean {
    return processIdentity(this.pid) === this.identity;
  }

  onEnd(listener: (end: ProcessEnd) => void): void {
    this.clock.setTimer(POLL_MS, () => {
      if (this.isAlive) this.onEnd(listener);
      else listener({ code: null, signal: null });
    });
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.isAlive) return;
    try {
      process.kill(this.pid, signal);
    } catch {
      // It has just ended.
    }
  }
}

/** Tells whether the process that has this number now is still there. */
export function livenessOf(pid: number): () => boolean {
  const identity = processIdentity(pid);
  return () => identity !== null && processIdentity(pid) === identity;
}

/** Tells a process from a later one with the same number: this boot, and when it began in it. `null`: it has ended. */
export function processIdentity(pid: number): string | null {
  // proc(5): the name in parentheses may hold anything; the state is field 3, the start time field 22.
  const fields =
    readText(`/proc/${String(pid)}/stat`)
      .split(') ')
      .at(-1)
      ?.split(' ') ?? [];
  const [state = '', startedAt = ''] = [fields[0], fields[19]];
  return startedAt === '' || /[ZX]/.test(state) ? null : `${readText('/proc/sys/kernel/random/boot_id').trim()} ${startedAt}`;
}
