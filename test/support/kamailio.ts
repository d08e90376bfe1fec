import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './carrier-call.js';

/** Debian's Kamailio with a configuration of this repository, in which a name between two @ stands for a value. */
export class Kamailio {
  #output = '';

  private constructor(
    private readonly directory: string,
    private readonly child: ChildProcess,
  ) {
    child.stderr?.on('data', (chunk: Buffer) => (this.#output = (this.#output + chunk.toString()).slice(-10_000)));
  }

  /** Resolves when it takes connections at the port. */
  static async start(template: string, port: number, values: Readonly<Record<string, string>>): Promise<Kamailio> {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-kamailio-'));
    const file = join(directory, 'kamailio.cfg');
    await writeFile(file, filledIn(await readFile(template, 'utf8'), { MODULES: modules(), ...values }));
    const args = ['-DD', '-E', '-f', file, '-m', '512', '-M', '16', '-w', directory, '-Y', directory];
    const kamailio = new Kamailio(directory, spawn('kamailio', args, { stdio: ['ignore', 'ignore', 'pipe'] }));
    try {
      await kamailio.#takesConnections(port);
    } catch (error) {
      await kamailio.stop();
      throw new Error(kamailio.output, { cause: error });
    }
    return kamailio;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** The last of what it wrote. */
  get output(): string {
    return this.#output;
  }

  /** It is a family of processes: the first one ends the others. */
  async stop(): Promise<void> {
    if (this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null) {
      const gone = new Promise((done) => this.child.once('exit', done));
      this.child.kill('SIGTERM');
      await gone;
    }
    await rm(this.directory, { recursive: true, force: true });
  }

  #takesConnections(port: number): Promise<void> {
    let failure: Error | undefined;
    this.child.once('error', (error) => (failure = error));
    const isReady = async (): Promise<boolean> => {
      if (failure !== undefined) throw failure;
      if (this.child.exitCode !== null) throw new Error(`kamailio ended with ${String(this.child.exitCode)}`);
      return isOpen(port);
    };
    return until(isReady, 'kamailio takes no connection');
  }
}

function modules(): string {
  const found = ['x86_64', 'aarch64'].map((cpu) => `/usr/lib/${cpu}-linux-gnu/kamailio/modules/`).find((path) => existsSync(path));
  return found ?? '/usr/lib/kamailio/modules/';
}

function filledIn(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/@([A-Z_]+)@/g, (_all, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`kamailio.cfg asks for ${name}`);
    return value;
  });
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });
}
