import { fork, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { freePorts } from '../../test/support/ports.js';
import { cpuMs, residentKb } from '../support/process-figures.js';
import type { LoadOrder, LoadResult, LoadTarget } from './generator.js';

// The SIP server alone: a load generator that is a carrier, the server as `trunkline sip-server` starts it, with every timer, limit
// and check, and the least drachtio-srf application. What it is held against in the same run is SIPp's own UAS (C++), over TCP.
// What drachtio-server 0.9.10 did on two shared cores, for comparison (measured with SIPp, INVITE/200/ACK/BYE over one TLS connection):
const DRACHTIO = { callsPerSecond: 2_980, cpuMsPerCall: 0.315, heldCallKb: 10.4, idleTlsKb: 29.5 };

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '3000' },
    concurrency: { type: 'string', default: '100' },
    held: { type: 'string', default: '20000' },
    idle: { type: 'string', default: '4000' },
    profile: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const SECRET = 'bench';

interface Process {
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

function order(generator: Process, what: LoadOrder): Promise<LoadResult> {
  return new Promise((resolve_, reject) => {
    generator.child.once('message', (answer: { result?: LoadResult; error?: string }) => {
      if (answer.error === undefined) resolve_(answer.result as LoadResult);
      else reject(new Error(answer.error));
    });
    generator.child.send(what);
  });
}

async function collected(server: Process): Promise<number> {
  process.kill(server.pid, 'SIGUSR2');
  await new Promise((resolve_) => setTimeout(resolve_, 2_000));
  return residentKb(server.pid);
}

interface CpuFigures {
  readonly result: LoadResult;
  /** Milliseconds a call, by process. */
  readonly cpu: Readonly<Record<string, number>>;
}

async function measured(generator: Process, watched: Readonly<Record<string, Process>>, what: LoadOrder): Promise<CpuFigures> {
  const before = Object.entries(watched).map(([name, { pid }]) => [name, cpuMs(pid)] as const);
  const result = await order(generator, what);
  const cpu = Object.fromEntries(before.map(([name, start]) => [name, (cpuMs(watched[name]?.pid ?? 0) - start) / result.completed]));
  return { result, cpu };
}

function describe(title: string, { result, cpu }: CpuFigures): void {
  const { latencyMs: latency } = result;
  console.log(`\n${title}`);
  console.log(
    `  calls             ${String(result.completed)} completed, ${String(result.failed)} failed, ${(result.completed / result.seconds).toFixed(0)} calls/s for ${result.seconds.toFixed(0)} s`,
  );
  console.log(
    `  INVITE to 200     p50 ${latency.p50.toFixed(2)} ms, p99 ${latency.p99.toFixed(2)} ms, p99.9 ${latency.p999.toFixed(2)} ms`,
  );
  console.log(
    `  CPU a call        ${Object.entries(cpu)
      .map(([name, ms]) => `${name} ${ms.toFixed(4)} ms`)
      .join(', ')}`,
  );
}

async function main(): Promise<void> {
  const seconds = Number(values.seconds);
  const only = values.only?.split(',');
  const wants = (name: string): boolean => only === undefined || only.includes(name);
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  const [sip = 0, control = 0, sippPort = 0] = await freePorts(3);
  const profile = values.profile ? ['--cpu-prof', `--cpu-prof-dir=${resolve('test-results')}`] : [];
  const server = await started(
    spawn(
      process.execPath,
      ['--expose-gc', '--require', resolve('bench/support/gc-on-signal.cjs'), ...profile, resolve('dist/cli/main.js'), 'sip-server'],
      {
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
      },
    ),
  );
  const application = await typescript('bench/sip-server/application.ts', [String(control), SECRET]);
  const generator = await typescript('bench/sip-server/generator.ts');
  const target: LoadTarget = { port: sip, transport: 'TLS', ca: readFileSync(join(directory, 'data/tls/ca.pem'), 'utf8') };
  const watched = { 'sip-server': server, application, generator };
  console.log(
    `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; one TLS connection, INVITE / 100 / 200 / ACK / BYE / 200`,
  );

  await order(generator, { type: 'closed', target, concurrency: 20, seconds: 3 });
  if (wants('most')) {
    const most = await measured(generator, watched, { type: 'closed', target, concurrency: Number(values.concurrency), seconds });
    describe(`As many as it takes (${values.concurrency} calls at once)`, most);
    console.log(
      `  against drachtio  ${(most.result.completed / most.result.seconds / DRACHTIO.callsPerSecond).toFixed(2)} times its calls/s (goal 2.5), ${((most.cpu['sip-server'] ?? 0) / DRACHTIO.cpuMsPerCall).toFixed(2)} of its CPU a call`,
    );
    if (wants('sipp')) await againstSipp(generator, sippPort, seconds, most);
  }
  if (wants('rate')) {
    const steady = await measured(generator, watched, { type: 'open', target, rate: Number(values.rate), seconds });
    describe(`${values.rate} calls a second`, steady);
    console.log(`  generator         ${steady.result.maxLateMs.toFixed(1)} ms late at worst`);
  }
  if (wants('memory')) await memory(generator, server, target);

  generator.child.kill();
  application.child.kill();
  const gone = new Promise((resolve_) => server.child.once('exit', resolve_));
  server.child.kill('SIGTERM');
  await gone;
  await rm(directory, { recursive: true });
}

async function againstSipp(generator: Process, port: number, seconds: number, most: CpuFigures): Promise<void> {
  const child = spawn('sipp', ['-sn', 'uas', '-t', 't1', '-i', '127.0.0.1', '-p', String(port), '-nostdin'], { stdio: 'ignore' });
  const sipp: Process = { child, pid: child.pid ?? 0 };
  await new Promise((resolve_) => setTimeout(resolve_, 1_000));
  const target: LoadTarget = { port, transport: 'TCP', ca: null };
  const figures = await measured(
    generator,
    { sipp, generator },
    { type: 'closed', target, concurrency: Number(values.concurrency), seconds: Math.min(seconds, 10) },
  );
  describe('Baseline: SIPp as UAS over one TCP connection (no TLS, no application)', figures);
  console.log(
    `  ratio             server and application together cost ${(((most.cpu['sip-server'] ?? 0) + (most.cpu['application'] ?? 0)) / (figures.cpu['sipp'] ?? 1)).toFixed(2)} times SIPp's CPU a call; the server alone ${((most.cpu['sip-server'] ?? 0) / (figures.cpu['sipp'] ?? 1)).toFixed(2)} times`,
  );
  child.kill('SIGKILL');
}

async function memory(generator: Process, server: Process, target: LoadTarget): Promise<void> {
  // What the calls before have left behind for 64·T1 (RFC 6026) is gone then.
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const empty = await collected(server);
  const count = Number(values.held);
  const held = await order(generator, { type: 'hold', target, count });
  const young = await collected(server);
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const settled = await collected(server);
  await order(generator, { type: 'release' });
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const before = await collected(server);
  const idle = Number(values.idle);
  await order(generator, { type: 'idle', target, count: idle });
  const after = await collected(server);
  await order(generator, { type: 'release' });
  console.log('\nMemory');
  console.log(
    `  a held call       ${((settled - empty) / count).toFixed(1)} kB, ${((young - empty) / count).toFixed(1)} kB in its first 32 s (${String(count)} calls, ${String(held.failed)} failed; drachtio-server ${String(DRACHTIO.heldCallKb)} kB)`,
  );
  console.log(`  after they ended  ${((before - empty) / 1_024).toFixed(1)} MB more than before`);
  console.log(
    `  an idle TLS conn. ${((after - before) / idle).toFixed(1)} kB (${String(idle)} connections; drachtio-server ${String(DRACHTIO.idleTlsKb)} kB)`,
  );
}

await main();
