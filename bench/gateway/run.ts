import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { memoryKb } from '../../test/support/processes.js';
import { ask, started, type Child } from '../support/child.js';
import { cpuMs } from '../support/process-figures.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { startProduct, type Subject } from './product.js';

// The whole path of a call: TLS, SIP server, gateway, number look-up in Redis, rtpengine (offer, answer, delete), the built-in agent,
// the record. The load is one carrier on one TLS connection: INVITE, 200, ACK, BYE, 200.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '300' },
    concurrency: { type: 'string', default: '40' },
    held: { type: 'string', default: '4000' },
    only: { type: 'string', default: 'most,rate' },
    profile: { type: 'boolean', default: false },
    set: { type: 'string', multiple: true, default: [] },
  },
});

const wants = (name: string): boolean => values.only.split(',').includes(name);

interface Figures {
  readonly result: LoadResult;
  /** Milliseconds of CPU a call, by process name. */
  readonly cpu: Readonly<Record<string, number>>;
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
  return { result, cpu };
}

function describe(title: string, { result, cpu }: Figures): void {
  const { latencyMs: latency } = result;
  const ours = (cpu['sip-server'] ?? 0) + (cpu['gateway'] ?? 0);
  console.log(`\n${title}`);
  console.log(
    `  calls             ${String(result.completed)} completed, ${String(result.failed)} failed, ${(result.completed / result.seconds).toFixed(0)} calls/s for ${result.seconds.toFixed(0)} s`,
  );
  console.log(
    `  INVITE to 200     p50 ${latency.p50.toFixed(2)} ms, p99 ${latency.p99.toFixed(2)} ms, p99.9 ${latency.p999.toFixed(2)} ms; generator ${result.maxLateMs.toFixed(1)} ms late at worst`,
  );
  console.log(
    `  CPU a call        ${Object.entries(cpu)
      .map(([name, ms]) => `${name} ${ms.toFixed(3)} ms`)
      .join(', ')}; ours ${ours.toFixed(3)} ms`,
  );
}

const seconds = Number(values.seconds);
console.log(`${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}`);
const settings = Object.fromEntries(values.set.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]));
if (values.profile) {
  settings['NODE_OPTIONS'] = `--require ${resolve('bench/support/profile-until-exit.cjs')}`;
  settings['PROFILE_DIRECTORY'] = resolve('test-results/profiles');
}
const subject = await startProduct(settings);
const generator = await started('bench/sip-server/generator.ts');
try {
  const { target } = subject;
  await ask(generator, { type: 'closed', target, concurrency: 10, seconds: 5 } satisfies LoadOrder);
  if (wants('most')) {
    const order: LoadOrder = { type: 'closed', target, concurrency: Number(values.concurrency), seconds };
    describe(`As many as it takes (${values.concurrency} calls at once)`, await measured(generator, subject, order));
  }
  if (wants('rate')) {
    const order: LoadOrder = { type: 'open', target, rate: Number(values.rate), seconds };
    describe(`${values.rate} calls a second`, await measured(generator, subject, order));
  }
  if (wants('held')) {
    const empty = totals(subject, memoryKb);
    const count = Number(values.held);
    const held = await ask<LoadResult>(generator, { type: 'hold', target, count } satisfies LoadOrder);
    const full = totals(subject, memoryKb);
    console.log(`\n${String(count)} calls held, ${String(held.failed)} failed, ${(count / held.seconds).toFixed(0)} calls/s`);
    for (const [name, kb] of Object.entries(full))
      console.log(`  ${name.padEnd(14)} ${((kb - (empty[name] ?? 0)) / count).toFixed(1)} kB a call`);
    await ask(generator, { type: 'release' } satisfies LoadOrder);
  }
} finally {
  generator.child.kill();
  await subject.close();
}
