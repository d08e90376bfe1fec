import { spawn } from 'node:child_process';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { freePorts } from '../../test/support/ports.js';
import { applicationAlone } from './application-alone.js';
import { cpuMs, spread } from '../support/process-figures.js';
import { dialogCosts } from './dialogs.js';
import type { LoadOrder, LoadResult, LoadTarget } from './generator.js';
import { order, settledKb, startAll, startBareTls, type Process } from './processes.js';

// The SIP server alone: a load generator that is a carrier, the server as `trunkline sip-server` starts it, with every timer, limit
// and check, and the least drachtio-srf application. What it is held against in the same run is SIPp's own UAS (C++), over TCP.
// With `--drachtio <program>` (and `--drachtio-config <file>`) a real drachtio-server does the same in the same run, in turn with ours; without it nothing is said of it.

const { values } = parseArgs({
  options: {
    /** no more than 15 or so: a finished INVITE is kept for 32 s (RFC 6026), and sip.max_transactions of them at once */
    seconds: { type: 'string', default: '15' },
    /** of calls before anything is measured: V8 compiles for some 60 s what runs often */
    warm: { type: 'string', default: '60' },
    rate: { type: 'string', default: '3000' },
    concurrency: { type: 'string', default: '100' },
    held: { type: 'string', default: '20000' },
    idle: { type: 'string', default: '4000' },
    profile: { type: 'boolean', default: false },
    /** `sipp`: as SIPp's own scenarios; `carrier`: as a carrier's, twice the size. */
    messages: { type: 'string', default: 'sipp' },
    only: { type: 'string' },
    /** The program of a drachtio-server, to be measured in the same run. */
    drachtio: { type: 'string' },
    /** Its configuration file; left out: the one that it finds itself, or none. */
    'drachtio-config': { type: 'string' },
    /** So often ours and the baseline, SIPp or drachtio-server, are measured in turn. */
    rounds: { type: 'string', default: '3' },
    /** In place of everything else: what it costs to keep dialogs in a file, and in Redis. Slices of 10 s. */
    dialogs: { type: 'boolean', default: false },
  },
});

const WARM_RATE = 1_500;

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

interface Outcome {
  readonly most: CpuFigures | null;
  readonly heldKb: number | null;
  readonly idleKb: number | null;
}

async function measure(name: string, drachtio: string | null): Promise<Outcome> {
  const seconds = Number(values.seconds);
  const messages = values.messages === 'carrier' ? 'carrier' : 'sipp';
  const program = drachtio === null ? null : { program: drachtio, config: values['drachtio-config'] ?? null };
  const { server, application, generator, target, close } = await startAll({ profile: values.profile, messages, drachtio: program });
  const watched = { 'sip-server': server, application, generator };
  console.log(`\n${name}`);
  try {
    const isTimed = ['most', 'sipp', 'rate'].some(wants);
    await order(generator, { type: 'open', target, rate: WARM_RATE, seconds: isTimed ? Number(values.warm) : 3 });
    let most: CpuFigures | null = null;
    const isToSipp = wants('sipp') && drachtio === null;
    // Before SIPp's: V8 compiles once more for this load, and what is kept of calls for 32 s grows to its size.
    if (wants('most') || isToSipp) {
      most = await measured(generator, watched, { type: 'closed', target, concurrency: Number(values.concurrency), seconds });
      describe(`As many as it takes (${values.concurrency} calls at once)`, most);
      if (drachtio === null) {
        const aloneMs = await applicationAlone(30_000);
        const share = (100 * most.result.completed * aloneMs) / most.result.seconds / 1_000;
        console.log(
          `  ratio             ${share.toFixed(0)} % of what drachtio-srf alone can do on one core (${aloneMs.toFixed(3)} ms a call)`,
        );
      }
    }
    if (isToSipp) await againstSipp(generator, watched, target);
    if (wants('rate')) {
      const steady = await measured(generator, watched, { type: 'open', target, rate: Number(values.rate), seconds });
      describe(`${values.rate} calls a second`, steady);
      console.log(`  generator         ${steady.result.maxLateMs.toFixed(1)} ms late at worst`);
    }
    const heldKb = wants('memory') ? await heldMemory(generator, server, target) : null;
    const idleKb = wants('memory') || wants('idle') ? await idleMemory(generator, server, target) : null;
    if (idleKb !== null && drachtio === null) {
      const bareKb = await bareIdleKb();
      console.log(
        `  ratio             ${(idleKb / bareKb).toFixed(2)} times an idle connection of a bare tls.createServer, ${bareKb.toFixed(1)} kB (goal 0.6)`,
      );
    }
    return { most, heldKb, idleKb };
  } finally {
    await close();
  }
}

const only = values.only?.split(',');
const wants = (name: string): boolean => only === undefined || only.includes(name);

async function main(): Promise<void> {
  console.log(
    `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; one TLS connection, INVITE / 100 / 200 / ACK / BYE / 200`,
  );
  if (values.dialogs) return dialogCosts(values.messages === 'carrier' ? 'carrier' : 'sipp', 10);
  const pairs: (readonly [Outcome, Outcome])[] = [];
  const { drachtio } = values;
  do {
    // First, for one that does not start is told at once.
    const theirs = drachtio === undefined ? null : await measure(`drachtio-server: ${drachtio}`, drachtio);
    const ours = await measure('Trunkline: default limits but that of one source, default log', null);
    if (theirs === null) return;
    pairs.push([ours, theirs]);
  } while (pairs.length < Number(values.rounds));
  console.log('\nTrunkline to drachtio-server, in this run');
  const ratio = (title: string, goal: string, of: (outcome: Outcome) => number | null | undefined): void => {
    const all = pairs.map(([ours, theirs]) => (of(ours) ?? Number.NaN) / (of(theirs) ?? Number.NaN)).filter(Number.isFinite);
    if (all.length > 0) console.log(`  ${title} ratio ${spread(all)}, goal ${goal}`);
  };
  ratio('calls a second         ', '2.5 or more', ({ most }) => (most === null ? null : most.result.completed / most.result.seconds));
  ratio('CPU a call             ', '0.5', ({ most }) => most?.cpu['sip-server']);
  ratio('memory of a held call  ', '1.0', ({ heldKb }) => heldKb);
  ratio('memory of an idle conn.', '1.2', ({ idleKb }) => idleKb);
}

const SIPP_SLICE_SECONDS = 5;

/** SIPp runs beside ours, so that a slice of one comes right after the other's: the machine changes its speed within minutes. */
async function againstSipp(generator: Process, watched: Readonly<Record<string, Process>>, target: LoadTarget): Promise<void> {
  const [port = 0] = await freePorts(1);
  const child = spawn('sipp', ['-sn', 'uas', '-t', 't1', '-i', '127.0.0.1', '-p', String(port), '-nostdin'], { stdio: 'ignore' });
  const sipp: Process = { child, pid: child.pid ?? 0 };
  await new Promise((resolve_) => setTimeout(resolve_, 1_000));
  const slice = async (title: string, processes: Readonly<Record<string, Process>>, of: LoadTarget): Promise<CpuFigures['cpu']> => {
    const most: LoadOrder = { type: 'closed', target: of, concurrency: Number(values.concurrency), seconds: SIPP_SLICE_SECONDS };
    const figures = await measured(generator, processes, most);
    describe(title, figures);
    if (figures.result.failed > 0) throw new Error(`${String(figures.result.failed)} calls failed`);
    return figures.cpu;
  };
  const alone: number[] = [];
  const both: number[] = [];
  try {
    for (let round = 0; round < Number(values.rounds); round += 1) {
      const { 'sip-server': server = NaN, application = NaN } = await slice('As many as it takes', watched, target);
      const baseline = { port, transport: 'TCP', ca: null, messages: 'sipp' } as const;
      const title = 'Baseline: SIPp as UAS over one TCP connection (no TLS, no application)';
      const { sipp: ms = NaN } = await slice(title, { sipp, generator }, baseline);
      alone.push(server / ms);
      both.push((server + application) / ms);
    }
  } finally {
    child.kill('SIGKILL');
  }
  console.log(`  ratio             the server’s CPU a call to SIPp’s ${spread(alone)} (goal 2.4); with the application’s ${spread(both)}`);
}

async function heldMemory(generator: Process, server: Process, target: LoadTarget): Promise<number> {
  // What the calls before have left behind for 64·T1 (RFC 6026) is gone then.
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const empty = await settledKb(server);
  const count = Number(values.held);
  const held = await order(generator, { type: 'hold', target, count });
  const young = await settledKb(server);
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const settled = await settledKb(server);
  await order(generator, { type: 'release' });
  await new Promise((resolve_) => setTimeout(resolve_, 33_000));
  const after = await settledKb(server);
  const heldKb = (settled - empty) / count;
  console.log('\nResident memory, no collection forced');
  console.log(
    `  a held call       ${heldKb.toFixed(1)} kB, ${((young - empty) / count).toFixed(1)} kB in its first 32 s (${String(count)} calls, ${String(held.failed)} failed)`,
  );
  console.log(`  after they ended  ${((after - empty) / 1_024).toFixed(1)} MB more than before`);
  return heldKb;
}

/** Of an idle TLS connection, in kB. */
async function idleMemory(generator: Process, server: Process, target: LoadTarget): Promise<number> {
  const before = await settledKb(server);
  const count = Number(values.idle);
  await order(generator, { type: 'idle', target, count });
  const idleKb = ((await settledKb(server)) - before) / count;
  await order(generator, { type: 'release' });
  console.log(`  an idle TLS conn. ${idleKb.toFixed(1)} kB (${String(count)} connections)`);
  return idleKb;
}

async function bareIdleKb(): Promise<number> {
  const { generator, server, target, close } = await startBareTls();
  try {
    return await idleMemory(generator, server, target);
  } finally {
    await close();
  }
}

await main();
