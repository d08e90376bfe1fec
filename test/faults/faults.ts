import { parseArgs } from 'node:util';
import { TestCa } from '../support/openssl.js';
import { DIAL_FAULTS } from './dial-faults.js';
import { LINE_FAULTS } from './line-faults.js';
import { certificateFault, MACHINE_FAULTS } from './machine-faults.js';
import { filesOf, leftOvers } from './measure.js';
import { PROCESS_FAULTS } from './process-faults.js';
import { unexcused, writeReport } from './report.js';
import { pause, runFault, type Fault, type FaultReport } from './run-fault.js';
import { ShortCalls } from './short-calls.js';
import { openWorld, type World } from './world.js';

// `npm run faults -- --rate 20 --calls 200 --report docs/failures.md`: makes one fault after the other in a running instance under load,
// and says what became of the calls. `--only TEXT`: those whose names have it. Exit code 1 when something does not hold.

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    rate: { type: 'string', default: '20' },
    calls: { type: 'string', default: '200' },
    report: { type: 'string' },
  },
});
const load = { rate: positive('rate'), longCalls: positive('calls') };

function positive(name: 'rate' | 'calls'): number {
  const value = Number(values[name]);
  if (!(value > 0)) {
    console.error(`--${name} must be a number above 0`);
    process.exit(2);
  }
  return value;
}

const ca = await TestCa.create();
const [good, bad] = [await ca.issue('sip', 'DNS:localhost'), await ca.issue('sip', 'DNS:localhost', 'yesterday')];
const faults: readonly Fault[] = [...PROCESS_FAULTS, ...LINE_FAULTS, ...MACHINE_FAULTS, certificateFault(good, bad, ca.ca), ...DIAL_FAULTS];
const chosen = faults.filter(({ name }) => values.only === undefined || values.only.some((text) => name.includes(text)));
if (chosen.length === 0) {
  console.error(`no fault is called so; there are: ${faults.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

const reports: FaultReport[] = [];
let current: { readonly world: World; readonly key: string; readonly files: Readonly<Record<string, number>> } | undefined;

/** Faults one after the other share an instance where they can. */
async function worldFor({ world: name, settings = {}, isAlone = false, ca: carriersCa }: Fault): Promise<NonNullable<typeof current>> {
  const key = `${name} ${JSON.stringify(settings)}`;
  if (current?.key === key && !isAlone) return current;
  await current?.world.close();
  current = undefined;
  const world = await openWorld(name, settings, carriersCa);
  const warmUp = new ShortCalls(world.trunk, load.rate);
  await pause(1_500);
  await warmUp.stop();
  while ((await leftOvers(world)).length > 0) await pause(100);
  current = { world, key, files: filesOf(world) };
  return current;
}

try {
  for (const [index, fault] of chosen.entries()) {
    const startedMs = performance.now();
    process.stdout.write(`${String(index + 1).padStart(3)}/${String(chosen.length)}  ${fault.title}\n`);
    try {
      const { world, files } = await worldFor(fault);
      const report = await runFault(fault, world, load, files);
      reports.push(report);
      tell(report, performance.now() - startedMs);
      if (values.report !== undefined)
        writeReport(
          values.report,
          reports,
          faults.map(({ title }) => title),
          load,
        );
    } catch (error) {
      console.log(`         the harness failed: ${String(error)}`);
      process.exitCode = 1;
      await current?.world.close();
      current = undefined;
    }
  }
} finally {
  await current?.world.close();
  await ca.remove();
}
const wrong = reports.filter((report) => unexcused(report).length > 0);
console.log(
  `\n${String(reports.length - wrong.length)} of ${String(chosen.length)} faults went as they should; not: ${wrong.map(({ fault }) => fault.name).join(', ') || 'none'}`,
);
if (wrong.length > 0) process.exitCode = 1;

function tell(report: FaultReport, tookMs: number): void {
  const { long, late, short, reasons, longestSilenceMs, longestAnswerMs, backMs, readyz, events } = report;
  console.log(
    `         long ${JSON.stringify(long)}${late === undefined ? '' : ` and late ${JSON.stringify(late)}`}, silence ${String(longestSilenceMs)} ms, records ${JSON.stringify(reasons)}`,
  );
  console.log(
    `         new ${JSON.stringify(short)}, slowest ${String(longestAnswerMs)} ms; back after ${String(backMs)} ms; readyz ${readyz.join('; ')}`,
  );
  console.log(`         events ${JSON.stringify(events)}`);
  for (const { expectation, what } of report.broken)
    console.log(`         ${unexcused(report).length > 0 ? 'NOT' : 'known'}: ${expectation}: ${what}`);
  for (const line of report.traces.slice(0, 10)) console.log(`         ${line}`);
  console.log(`         took ${String(Math.round(tookMs / 1_000))} s`);
}
