import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';
import { HANG_GUARD_MS } from './hang-guard.js';

export const MAIN = resolve('dist/cli/main.js');

export interface ProgramOptions {
  /** Of another build than this one's. */
  readonly main?: string;
  /** Of another user than this one. */
  readonly uid?: number;
  /** In a process group of its own, as a shell with job control starts it. */
  readonly isGroup?: boolean;
}

/** A command of the product that stays in the foreground, and what it prints. */
export class Program {
  output = '';
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  readonly #child: ChildProcess;
  readonly #onOutput = new Set<() => void>();

  /** @param environment beside that of this process */
  constructor(args: readonly string[], environment: Readonly<Record<string, string>>, options: ProgramOptions = {}) {
    const { main = MAIN, uid, isGroup = false } = options;
    const child = spawn(process.execPath, [main, ...args], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: isGroup,
      uid,
    });
    this.#child = child;
    const read = (chunk: Buffer): void => {
      this.output += chunk.toString();
      for (const look of [...this.#onOutput]) look();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    this.ended = new Promise((done) => child.once('close', (code, signal) => done(code ?? signal)));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves when it has printed the text; rejects with its output when it ends without, or hangs. */
  async printed(text: string): Promise<void> {
    let look = (): void => undefined;
    const seen = new Promise<'seen'>((done) => {
      look = () => this.output.includes(text) && done('seen');
      this.#onOutput.add(look);
      look();
    });
    let guard: NodeJS.Timeout | undefined;
    const hangs = new Promise<'hangs'>((done) => (guard = setTimeout(done, HANG_GUARD_MS - 10_000, 'hangs')));
    const first = await Promise.race([seen, this.ended, hangs]);
    clearTimeout(guard);
    this.#onOutput.delete(look);
    if (first !== 'seen') throw new Error(`it ${first === 'hangs' ? 'hangs' : 'ended'} without ${JSON.stringify(text)}:\n${this.output}`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** What a terminal does at Ctrl-C: the whole group gets the signal. */
  interruptGroup(): void {
    process.kill(-this.pid, 'SIGINT');
  }

  /** A signal that ends it; resolves when it has ended. One that has ended already is let be. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
    this.kill(signal);
    return this.ended;
  }
}
