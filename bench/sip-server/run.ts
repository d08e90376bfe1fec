import { spawn } from 'node:child_process';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { freePorts } from '../../test/support/ports.js';
import { applicationAlone } from './application-alone.js';
import { cpuMs } from '../support/process-figures.js';
import type { LoadOrder, LoadResult, LoadTarget } from './generator.js';
import { collectedKb, order, startAll, type Process } from './processes.js';

// The SIP server alone: a load generator that is a carrier, the server as `trunkline sip-server` starts it, with every timer, limit
// and check, and the least drachtio-srf application. What it is held against in the same run is SIPp's own UAS (C++), over TCP.
// What drachtio-server 0.9.10 did on two shared cores, for comparison (measured with SIPp, INVITE/200/ACK/BYE over one TLS connection):
// There drachtio-srf alone took 0.143 ms a call (7,000 calls/s on a core): what it takes here says how fast this machine is.
const DRACHTIO = { callsPerSecond: 2_980, cpuMsPerCall: 0.315, heldCallKb: 10.4, idleTlsKb: 29.5, applicationAloneMs: 0.143 };

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '3000' },
    concurrency: { type: 'string', default: '100' },
    held: { type: 'string', default: '20000' },
    idle: { type: 'string', default: '4000' },
    profile: { type: 'boolean', default: false },
    /** `sipp`: as SIPp's own scenarios; `carrier`: as a carrier's, twice the size. */
    messages: { type: 'string', default: 'sipp' },
    only: { type: 'string' },
  },
});

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
  const messages = values.messages === 'carrier' ? 'carrier' : 'sipp';
  const { server, application, generator, target, close } = await startAll({ profile: values.profile, messages });
  const watched = { 'sip-server': server, application, generator };
  console.log(
    `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; one TLS connection, INVITE / 100 / 200 / ACK / BYE / 200`,
  );

  const aloneMs = await applicationAlone(30_000);
  const slower = aloneMs / DRACHTIO.applicationAloneMs;
  console.log(
    `Baseline: drachtio-srf alone takes ${aloneMs.toFixed(3)} ms a call, ${(1_000 / aloneMs).toFixed(0)} calls/s on one core: this machine is ${slower.toFixed(2)} times slower than that of drachtio-server's figures`,
  );
  await order(generator, { type: 'closed', target, concurrency: 20, seconds: 3 });
  if (wants('most')) {
    const most = await measured(generator, watched, { type: 'closed', target, concurrency: Number(values.concurrency), seconds });
    describe(`As many as it takes (${values.concurrency} calls at once)`, most);
    const perSecond = most.result.completed / most.result.seconds;
    const serverMs = most.cpu['sip-server'] ?? 0;
    console.log(`  ratio             ${((100 * perSecond * aloneMs) / 1_000).toFixed(0)} % of what drachtio-srf alone can do on one core`);
    console.log(
      `  against drachtio  ${((perSecond * slower) / DRACHTIO.callsPerSecond).toFixed(2)} times its calls/s, ${(serverMs / slower).toFixed(3)} ms of CPU a call to its ${String(DRACHTIO.cpuMsPerCall)}, both as on its machine`,
    );
    if (wants('sipp')) await againstSipp(generator, seconds, most);
  }
  if (wants('rate')) {
    const steady = await measured(generator, watched, { type: 'open', target, rate: Number(values.rate), seconds });
    describe(`${values.rate} calls a second`, steady);
    console.log(`  generator         ${steady.result.maxLateMs.toFixed(1)} ms late at worst`);
  }
  if (wants('memory')) await memory(generator, server, target);

  await close();
}

async function againstSipp(generator: Process, seconds: number, most: CpuFigures): Promise<void> {
  const [port = 0] = await freePorts(1);
  const child = spawn('sipp', ['-sn', 'uas', '-t', 't1', '-i', '127.0.0.1', '-p', String(port), '-nostdin'], { stdio: 'ignore' });
  const sipp: Process = { child, pid: child.pid ?? 0 };
  await new Promise((resolve_) => setTimeout(resolve_, 1_000));
  const target: LoadTarget = { port, transport: 'TCP', ca: null, messages: 'sipp' };
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
  const empty = await collectedKb(server);
  const count = Number(values.held);
  const held = await order(generator, { type: 'hold', target, count });
  const young = await collectedKb(server);
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const settled = await collectedKb(server);
  await order(generator, { type: 'release' });
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const before = await collectedKb(server);
  const idle = Number(values.idle);
  await order(generator, { type: 'idle', target, count: idle });
  const after = await collectedKb(server);
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
