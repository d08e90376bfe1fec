import { fork, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePorts } from '../../test/support/ports.js';
import { memoryKb } from '../../test/support/processes.js';
import type { LoadOrder, LoadResult, LoadTarget } from './generator.js';

const SECRET = 'bench';

export interface Process {
  readonly child: ChildProcess;
  readonly pid: number;
}

async function started(child: ChildProcess): Promise<Process> {
  await new Promise<void>((resolve_, reject) => {
    child.once('message', () => resolve_());
    child.once('exit', (code) => reject(new Error(`${child.spawnfile} ended with ${String(code)}`)));
  });
  return { child, pid: child.pid ?? 0 };
}

function typescript(file: string, args: readonly string[] = []): Promise<Process> {
  return started(fork(resolve(file), args, { execArgv: ['--import', 'tsx'] }));
}

export function order(generator: Process, what: LoadOrder): Promise<LoadResult> {
  return new Promise((resolve_, reject) => {
    generator.child.once('message', (answer: { result?: LoadResult; error?: string }) => {
      if (answer.error === undefined) resolve_(answer.result as LoadResult);
      else reject(new Error(answer.error));
    });
    generator.child.send(what);
  });
}

/** Resident memory in kB after a full collection. */
export async function collectedKb(server: Process): Promise<number> {
  process.kill(server.pid, 'SIGUSR2');
  await new Promise((resolve_) => setTimeout(resolve_, 2_000));
  return memoryKb(server.pid);
}

export function startGenerator(): Promise<Process> {
  return typescript('bench/sip-server/generator.ts');
}

export interface All {
  readonly server: Process;
  readonly application: Process;
  readonly generator: Process;
  readonly target: LoadTarget;
  readonly close: () => Promise<void>;
}

/** The SIP server as `trunkline sip-server` starts it, an application and a load generator, a process each. Needs `npm run build`. */
export async function startAll({
  profile,
  messages,
}: {
  readonly profile: boolean;
  readonly messages: LoadTarget['messages'];
}): Promise<All> {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  const [sip = 0, control = 0] = await freePorts(2);
  const profiling = profile ? ['--cpu-prof', `--cpu-prof-dir=${resolve('test-results')}`] : [];
  const args = [
    '--expose-gc',
    '--require',
    resolve('bench/support/gc-on-signal.cjs'),
    ...profiling,
    resolve('dist/cli/main.js'),
    'sip-server',
  ];
  const server = await started(
    spawn(process.execPath, args, {
      env: {
        ...process.env,
        TRUNKLINE_DATA_DIR: join(directory, 'data'),
        TRUNKLINE_SIP_TLS_PORT: String(sip),
        TRUNKLINE_DRACHTIO_PORT: String(control),
        TRUNKLINE_DRACHTIO_SECRET: SECRET,
        TRUNKLINE_LOG_LEVEL: 'warn',
        // Every check is done; the generator is one source, which is to be let through.
        TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: '100000',
        TRUNKLINE_SIP_MAX_TRANSACTIONS: '1000000',
        TRUNKLINE_SIP_MAX_DIALOGS: '1000000',
        TRUNKLINE_SIP_MAX_MEMORY_MB: '8192',
      },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }),
  );
  const application = await typescript('bench/sip-server/application.ts', [String(control), SECRET]);
  const generator = await startGenerator();
  const close = async (): Promise<void> => {
    generator.child.kill();
    application.child.kill();
    const gone = new Promise((resolve_) => server.child.once('exit', resolve_));
    server.child.kill('SIGTERM');
    await gone;
    await rm(directory, { recursive: true });
  };
  const target: LoadTarget = { port: sip, transport: 'TLS', ca: readFileSync(join(directory, 'data/tls/ca.pem'), 'utf8'), messages };
  return { server, application, generator, target, close };
}
