import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { memoryKb } from '../../test/support/processes.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { applicationAlone } from '../sip-server/application-alone.js';
import { ask, started, type Child } from '../support/child.js';
import { cpuMs } from '../support/process-figures.js';
import { kamailioSubject } from './kamailio.js';
import { productSubject } from './product.js';
import type { Subject } from './subject.js';

// The whole path of a call: TLS, number look-up in Redis, rtpengine (offer, answer, delete), an answer, the record. The load is one
// carrier: INVITE, 200, ACK, BYE, 200. What Trunkline is held against in the same run is Kamailio, scripted to do the same job.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '300' },
    concurrency: { type: 'string', default: '40' },
    held: { type: 'string', default: '4000' },
    connections: { type: 'string', default: '2' },
    /** most, rate, held */
    only: { type: 'string', default: 'most,rate,held' },
    /** trunkline, kamailio */
    subjects: { type: 'string', default: 'trunkline,kamailio' },
    profile: { type: 'boolean', default: false },
    /** memory of held calls is looked at after a full garbage collection */
    collect: { type: 'boolean', default: false },
    /** NAME=value, an environment variable of the gateway's */
    set: { type: 'string', multiple: true, default: [] },
  },
});

// On the machine for which the goals were set drachtio-srf alone takes so long a call: what it takes here says how fast this one is.
const APPLICATION_ALONE_MS = 0.143;
const connections = Number(values.connections);
const seconds = Number(values.seconds);
const wants = (name: string): boolean => values.only.split(',').includes(name);

interface Figures {
  readonly result: LoadResult;
  /** Milliseconds of CPU a call, by process name. */
  readonly cpu: Readonly<Record<string, number>>;
  readonly own: number;
}

function totals(subject: Subject, of: (pid: number) => number): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { name, pid } of subject.processes()) sums[name] = (sums[name] ?? 0) + of(pid);
  return sums;
}

async function measured(generator: Child, subject: Subject, what: LoadOrder): Promise<Figures> {
  const spentMs = (): Record<string, number> => ({ ...totals(subject, cpuMs), generator: cpuMs(generator.pid) });
  const before = spentMs();
  const result = await ask<LoadResult>(generator, what);
  const cpu = Object.fromEntries(Object.entries(spentMs()).map(([name, ms]) => [name, (ms - (before[name] ?? 0)) / result.completed]));
  return { result, cpu, own: subject.own.reduce((sum, name) => sum + (cpu[name] ?? 0), 0) };
}

function describe(title: string, { result, cpu, own }: Figures): void {
  const { latencyMs: latency } = result;
  const perSecond = (result.completed / result.seconds).toFixed(0);
  console.log(`  ${title}`);
  console.log(
    `    calls           ${String(result.completed)} completed, ${String(result.failed)} failed, ${perSecond} calls/s for ${result.seconds.toFixed(0)} s`,
  );
  console.log(
    `    INVITE to 200   p50 ${latency.p50.toFixed(2)} ms, p99 ${latency.p99.toFixed(2)} ms, p99.9 ${latency.p999.toFixed(2)} ms; generator ${result.maxLateMs.toFixed(1)} ms late at worst`,
  );
  const each = Object.entries(cpu).map(([name, ms]) => `${name} ${ms.toFixed(3)} ms`);
  console.log(`    CPU a call      ${each.join(', ')}; its own processes ${own.toFixed(3)} ms`);
}

interface Outcome {
  most?: Figures;
  rate?: Figures;
}

async function measure(name: string, subject: Subject): Promise<Outcome> {
  console.log(`\n${name}`);
  const outcome: Outcome = {};
  const generator = await started('bench/sip-server/generator.ts');
  try {
    const { target } = subject;
    await ask(generator, { type: 'closed', target, concurrency: 10, seconds: Math.min(seconds, 10), connections } satisfies LoadOrder);
    if (wants('most')) {
      const order: LoadOrder = { type: 'closed', target, concurrency: Number(values.concurrency), seconds, connections };
      outcome.most = await measured(generator, subject, order);
      describe(`as many as it takes (${values.concurrency} calls at once)`, outcome.most);
    }
    if (wants('rate')) {
      outcome.rate = await measured(generator, subject, { type: 'open', target, rate: Number(values.rate), seconds, connections });
      describe(`${values.rate} calls a second`, outcome.rate);
    }
    if (wants('held')) await memory(generator, subject);
  } finally {
    generator.child.kill();
    await subject.close();
  }
  return outcome;
}

/** Resident memory of each process in kB, of ours after a full collection. */
async function memoryAtRest(subject: Subject): Promise<Record<string, number>> {
  for (const { name, pid } of subject.processes()) if (subject.own.includes(name) && values.collect) process.kill(pid, 'SIGUSR2');
  await new Promise((done) => setTimeout(done, 3_000));
  return totals(subject, memoryKb);
}

async function memory(generator: Child, subject: Subject): Promise<void> {
  const empty = await memoryAtRest(subject);
  const count = Number(values.held);
  const held = await ask<LoadResult>(generator, { type: 'hold', target: subject.target, count } satisfies LoadOrder);
  // RFC 6026: what is kept of each answered INVITE for 64·T1 is gone then.
  await new Promise((done) => setTimeout(done, 33_000));
  const full = await memoryAtRest(subject);
  const kb = (name: string): number => ((full[name] ?? 0) - (empty[name] ?? 0)) / count;
  const own = subject.own.reduce((sum, name) => sum + kb(name), 0);
  console.log(`  ${String(count)} calls held without media packets`);
  console.log(`    calls           ${String(held.completed)} ended too soon, ${String(held.failed)} failed`);
  console.log(
    `    memory a call   ${Object.keys(full)
      .map((name) => `${name} ${kb(name).toFixed(1)} kB`)
      .join(', ')}; its own processes ${own.toFixed(1)} kB`,
  );
  await ask(generator, { type: 'release' } satisfies LoadOrder);
}

function settings(): Record<string, string> {
  const given = Object.fromEntries(values.set.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]));
  if (values.collect) return { ...given, NODE_OPTIONS: `--require ${resolve('bench/support/gc-on-signal.cjs')}` };
  if (!values.profile) return given;
  const options = `--require ${resolve('bench/support/profile-until-exit.cjs')}`;
  return { ...given, NODE_OPTIONS: options, PROFILE_DIRECTORY: resolve('test-results/profiles') };
}

function compare(ours: Outcome, theirs: Outcome): void {
  console.log('\nTrunkline to Kamailio');
  const perSecond = ({ result }: Figures): number => result.completed / result.seconds;
  if (ours.most !== undefined && theirs.most !== undefined) {
    console.log(`  calls a second    ratio ${(perSecond(ours.most) / perSecond(theirs.most)).toFixed(2)}`);
    console.log(`  CPU a call        ratio ${(ours.most.own / theirs.most.own).toFixed(2)} of their own processes`);
  }
  if (ours.rate !== undefined && theirs.rate !== undefined)
    console.log(`  p99 INVITE to 200 ratio ${(ours.rate.result.latencyMs.p99 / theirs.rate.result.latencyMs.p99).toFixed(2)}`);
}

console.log(`${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${values.connections} TLS connections`);
const aloneMs = await applicationAlone(30_000);
console.log(
  `drachtio-srf alone takes ${aloneMs.toFixed(3)} ms a call here: this machine is ${(aloneMs / APPLICATION_ALONE_MS).toFixed(2)} times slower than that of the goals`,
);
const subjects = values.subjects.split(',');
const ours = subjects.includes('trunkline') ? await measure('Trunkline', await productSubject(settings())) : {};
const theirs = subjects.includes('kamailio') ? await measure('Kamailio', await kamailioSubject(cpus().length)) : {};
if (subjects.length === 2) compare(ours, theirs);
