import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ensureCertificates } from '../../src/tls/certificates.js';
import { freePorts } from '../../test/support/ports.js';
import { memoryKb } from '../../test/support/processes.js';
import { ask, started, type Child } from '../support/child.js';
import type { LoadOrder, LoadResult, LoadTarget } from './generator.js';

const SECRET = 'bench';

export type Process = Pick<Child, 'child' | 'pid'>;

/** One of the generator's, which `startGenerator` started. */
export function order(generator: Process, what: LoadOrder): Promise<LoadResult> {
  return ask(generator, what);
}

/** Resident memory in kB after a full collection: whether anything stays behind. */
export async function collectedKb(server: Process): Promise<number> {
  process.kill(server.pid, 'SIGWINCH');
  return settledKb(server);
}

/** Resident memory in kB, as the system sees it: no collection is forced. */
export async function settledKb(server: Process): Promise<number> {
  await new Promise((resolve_) => setTimeout(resolve_, 2_000));
  return memoryKb(server.pid);
}

export function startGenerator(): Promise<Process> {
  return started('bench/sip-server/generator.ts');
}

export interface DrachtioProgram {
  readonly program: string;
  /** Its configuration file; `null`: the one that it finds itself, or none. */
  readonly config: string | null;
}

export interface All {
  readonly server: Process;
  readonly application: Process;
  readonly generator: Process;
  readonly target: LoadTarget;
  readonly close: () => Promise<void>;
}

export interface AllOptions {
  readonly profile: boolean;
  readonly messages: LoadTarget['messages'];
  /** A drachtio-server in place of ours; `null`: ours. */
  readonly drachtio: DrachtioProgram | null;
  /** `collectedKb` will be asked. */
  readonly collects?: boolean;
  /** Where our server keeps dialogs; `memory` unless given. */
  readonly dialogs?: 'memory' | 'file' | 'redis';
  /** For `redis`. */
  readonly redisUrl?: string;
}

/**
 * The SIP server as `trunkline sip-server` starts it, with its default limits, or a drachtio-server; an application and a load generator; a
 * process each. Needs `npm run build`.
 */
export async function startAll({ profile, messages, drachtio, collects = false, dialogs = 'memory', redisUrl }: AllOptions): Promise<All> {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  const [sip = 0, control = 0] = await freePorts(2);
  const profiling = profile ? ['--cpu-prof', `--cpu-prof-dir=${resolve('test-results')}`] : [];
  const collecting = collects ? ['--expose-gc', '--require', resolve('bench/support/gc-on-signal.cjs')] : [];
  const certificates = await ensureCertificates(join(directory, 'tls'), ['localhost', '127.0.0.1'], Date.now());
  const server =
    drachtio === null
      ? await ownServer(
          [...profiling, ...collecting],
          { directory, sip, control },
          certificates,
          dialogs === 'redis' ? redisUrl : undefined,
        )
      : await drachtioServer(drachtio, sip, control, certificates);
  const application = await started(
    'bench/sip-server/application.ts',
    [],
    [String(control), SECRET, ...(dialogs === 'memory' ? [] : ['gw:bench'])],
  );
  const generator = await startGenerator();
  const close = async (): Promise<void> => {
    generator.child.kill();
    application.child.kill();
    const gone = new Promise((resolve_) => server.child.once('exit', resolve_));
    server.child.kill('SIGTERM');
    await gone;
    await rm(directory, { recursive: true });
  };
  const target: LoadTarget = { port: sip, transport: 'TLS', ca: readFileSync(certificates.caFile, 'utf8'), messages };
  return { server, application, generator, target, close };
}

/** Node's own TLS server and a load generator. */
export async function startBareTls(): Promise<Omit<All, 'application'>> {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  const [port = 0] = await freePorts(1);
  const { certFile, keyFile, caFile } = await ensureCertificates(directory, ['localhost', '127.0.0.1'], Date.now());
  const server = await started('bench/sip-server/bare-tls.ts', [], [String(port), certFile, keyFile]);
  const generator = await startGenerator();
  const close = async (): Promise<void> => {
    for (const { child } of [generator, server]) child.kill('SIGKILL');
    await rm(directory, { recursive: true });
  };
  return { server, generator, target: { port, transport: 'TLS', ca: readFileSync(caFile, 'utf8'), messages: 'sipp' }, close };
}

type Certificates = Awaited<ReturnType<typeof ensureCertificates>>;

function ownServer(
  nodeOptions: readonly string[],
  { directory, sip, control }: { readonly directory: string; readonly sip: number; readonly control: number },
  certificates: Certificates,
  redisUrl: string | undefined,
): Promise<Process> {
  const child = spawn(process.execPath, [...nodeOptions, resolve('dist/cli/main.js'), 'sip-server'], {
    env: {
      ...process.env,
      TRUNKLINE_DATA_DIR: join(directory, 'data'),
      TRUNKLINE_SIP_TLS_PORT: String(sip),
      TRUNKLINE_SIP_CERT_FILE: certificates.certFile,
      TRUNKLINE_SIP_KEY_FILE: certificates.keyFile,
      TRUNKLINE_DRACHTIO_PORT: String(control),
      TRUNKLINE_DRACHTIO_SECRET: SECRET,
      // The limit of one source is the only one that is raised: the generator is one.
      TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: '100000',
      ...(redisUrl === undefined ? {} : { TRUNKLINE_SIP_TAKE_OVER: 'true', TRUNKLINE_REDIS_URL: redisUrl }),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return listening(child, control);
}

function drachtioServer(
  { program, config }: DrachtioProgram,
  sip: number,
  control: number,
  { certFile, keyFile }: Certificates,
): Promise<Process> {
  const file = config === null ? [] : ['--file', config];
  const args = ['--contact', `sips:127.0.0.1:${String(sip)};transport=tls`, '--cert-file', certFile, '--chain-file', certFile];
  const own = ['--key-file', keyFile, '--min-tls-version', '1.2', '--address', '127.0.0.1', '--port', String(control), '--secret', SECRET];
  const child = spawn(program, [...file, ...args, ...own, '--loglevel', 'notice'], { stdio: ['ignore', 'ignore', 'inherit'] });
  return listening(child, control);
}

/** A SIP server is ready when its control port is open. */
async function listening(child: ChildProcess, control: number): Promise<Process> {
  await new Promise<void>((resolve_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${child.spawnfile} ended with ${String(code)}`)));
    const look = (): void => {
      const socket = connect({ host: '127.0.0.1', port: control });
      socket.once('connect', () => {
        socket.destroy();
        resolve_();
      });
      socket.once('error', () => setTimeout(look, 100));
    };
    look();
  });
  return { child, pid: child.pid ?? 0 };
}
