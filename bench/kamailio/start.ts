import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export interface KamailioSettings {
  readonly redisPort: number;
  readonly rtpengineNgPort: number;
  readonly tlsPort: number;
  readonly certificateFile: string;
  readonly keyFile: string;
  /** Processes that read from connections; each connection is read by one of them. */
  readonly children: number;
}

export interface Kamailio {
  /** Of all its processes. */
  pids(): number[];
  close(): Promise<void>;
}

/** The key that stands in Redis, with any value, for a number that is answered. */
export function kamailioNumberKey(number: string): string {
  return `bench:kamailio:number:${number}`;
}

const STARTS_WITHIN_MS = 15_000;
const MEMORY_MB = '512';
const MEMORY_OF_A_CHILD_MB = '16';

/** Debian's Kamailio with kamailio.cfg; resolves when it takes connections. */
export async function startKamailio(settings: KamailioSettings): Promise<Kamailio> {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-kamailio-'));
  const file = join(directory, 'kamailio.cfg');
  await writeFile(file, filledIn(await readFile(resolve('bench/kamailio/kamailio.cfg'), 'utf8'), settings));
  const child = spawn('kamailio', ['-f', file, '-DD', '-E', '-m', MEMORY_MB, '-M', MEMORY_OF_A_CHILD_MB, '-Y', directory], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-10_000)));
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((done) => child.once('exit', done));
      child.kill('SIGTERM');
      await gone;
    }
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await untilOpen(settings.tlsPort, child);
  } catch (error) {
    await close();
    throw new Error(`${(error as Error).message}\n${said}`, { cause: error });
  }
  return { pids: () => withChildren(child.pid ?? 0), close };
}

function filledIn(template: string, settings: KamailioSettings): string {
  const values: Readonly<Record<string, string>> = {
    CHILDREN: String(settings.children),
    TLS_PORT: String(settings.tlsPort),
    REDIS_PORT: String(settings.redisPort),
    NG_PORT: String(settings.rtpengineNgPort),
    CERTIFICATE: resolve(settings.certificateFile),
    KEY: resolve(settings.keyFile),
  };
  return template.replace(/@([A-Z_]+)@/g, (_all, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`kamailio.cfg asks for ${name}`);
    return value;
  });
}

function withChildren(pid: number): number[] {
  const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8').trim();
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => withChildren(Number(child))))];
}

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  const deadlineMs = performance.now() + STARTS_WITHIN_MS;
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  while (!(await isOpen(port))) {
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null) throw new Error(`kamailio ended with ${String(child.exitCode)}`);
    if (performance.now() > deadlineMs) throw new Error(`kamailio did not start within ${String(STARTS_WITHIN_MS)} ms`);
    await new Promise((done) => setTimeout(done, 50));
  }
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
