import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

// The callers, the bots and the floor are C (`native/*.c`): their own jitter and CPU time would hide what is measured.

const SHARED = ['stamp', 'base64', 'orders', 'wheel', 'web-socket', 'sha1'];
const PROGRAMS = {
  generator: { sources: ['generator', 'receivers', ...SHARED], libraries: ['srtp2', 'speexdsp'] },
  bot: { sources: ['bot', ...SHARED], libraries: [] },
  floor: { sources: ['floor', ...SHARED], libraries: [] },
  listen: { sources: ['listen', 'receivers', 'stamp', 'orders'], libraries: ['speexdsp'] },
} as const;

export type ProgramName = keyof typeof PROGRAMS;

/** The benchmark's programs, compiled into a temporary folder. */
export class NativePrograms {
  private constructor(private readonly directory: string) {}

  /** Needs `cc`, and Debian's libsrtp2-dev and libspeexdsp-dev. Fails with the compiler's text. */
  static async compiled(): Promise<NativePrograms> {
    const programs = new NativePrograms(await mkdtemp(join(tmpdir(), 'trunkline-media-')));
    try {
      await Promise.all((Object.keys(PROGRAMS) as ProgramName[]).map((name) => programs.#compile(name)));
    } catch (error) {
      await programs.remove();
      throw error;
    }
    return programs;
  }

  started(name: ProgramName, ...args: string[]): Promise<NativeProcess> {
    return NativeProcess.started(join(this.directory, name), args);
  }

  /** One that reads lines to the end of its stdin, and then prints one. */
  piped(name: 'listen'): PipedProgram {
    return new PipedProgram(spawn(join(this.directory, name), { stdio: ['pipe', 'pipe', 'inherit'] }));
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  async #compile(name: ProgramName): Promise<void> {
    const { sources, libraries } = PROGRAMS[name];
    const files = sources.map((source) => resolve('bench/media/native', `${source}.c`));
    const linked = libraries.map((library) => `-l${library}`);
    await promisify(execFile)('cc', ['-O2', '-Wall', '-Wextra', '-o', join(this.directory, name), ...files, ...linked]);
  }
}

class PipedProgram {
  constructor(private readonly child: ChildProcessByStdio<Writable, Readable, null>) {}

  write(line: string): void {
    this.child.stdin.write(line);
  }

  /** Resolves when it has read what was written. */
  async drained(): Promise<void> {
    if (this.child.stdin.writableNeedDrain) await once(this.child.stdin, 'drain');
  }

  async end(): Promise<string> {
    this.child.stdin.end();
    return (await text(this.child.stdout)).trim();
  }
}

/** One of them that runs. It takes an order a line, and answers each with one line of words. */
export class NativeProcess {
  /** What its first line has after `ready`. */
  ready: readonly string[] = [];

  private constructor(
    private readonly child: ChildProcessByStdio<Writable, Readable, null>,
    private readonly lines: Interface,
  ) {}

  static async started(file: string, args: readonly string[]): Promise<NativeProcess> {
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const process = new NativeProcess(child, createInterface(child.stdout));
    [, ...process.ready] = await process.#answer();
    return process;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Orders are given one after the other. Fails when the program has ended, or does not know the order. */
  ask(...words: readonly (string | number)[]): Promise<readonly string[]> {
    const answer = this.#answer();
    this.child.stdin.write(`${words.join(' ')}\n`);
    return answer;
  }

  kill(): void {
    this.child.kill();
  }

  async #answer(): Promise<readonly string[]> {
    const line = await new Promise<string>((done, reject) => {
      const onEnd = (): void => reject(new Error(`${this.child.spawnfile} ended`));
      this.lines.once('close', onEnd);
      this.lines.once('line', (text) => {
        this.lines.off('close', onEnd);
        done(text);
      });
    });
    if (line.startsWith('error ')) throw new Error(`${this.child.spawnfile}: ${line}`);
    return line.split(' ').filter((word) => word !== '');
  }
}
