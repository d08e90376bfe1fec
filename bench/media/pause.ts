import { writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { productSubject } from '../gateway/product.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { ask, started } from '../support/child.js';
import { loadStage } from '../support/load-stage.js';

// A thread that stands still for a moment is no overload: beside calls with SRTP, new ones keep coming while the gateway's main thread, and
// then each of its media threads, pauses now and again. With its default limits the product refuses nobody; a thread that stands still for
// longer than it says that overload takes must refuse some. The baseline is the same new calls without a pause.

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '200' },
    /** New calls a second. */
    rate: { type: 'string', default: '10' },
    /** Seconds of each measurement; a pause comes every two. */
    seconds: { type: 'string', default: '12' },
  },
});
const [calls, rate, seconds] = [Number(values.calls), Number(values.rate), Number(values.seconds)];
const CPS = 20;
const EACH_MS = 2_000;
const PAUSES_MS = [50, 100, 200];
/** Longer than 1.5 s above a limit: overload. */
const LASTING_MS = 2_500;
const THREADS = ['main', 'media'] as const;

console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${String(calls)} calls with SRTP to the test line, ${String(rate)} new ones a second`,
);
const directory = await mkdtemp(join(tmpdir(), 'trunkline-pause-'));
const orderFile = join(directory, 'order');
const subject = await productSubject({
  NODE_OPTIONS: `--require ${resolve('bench/support/pause-threads.cjs')}`,
  PAUSE_ORDER: orderFile,
});
const caFile = join(directory, 'ca.pem');
await writeFile(caFile, subject.target.ca ?? '');
const generator = await started('bench/sip-server/generator.ts');

/** New calls, while a thread pauses every two seconds; `null`: none pauses. */
async function measured(thread: (typeof THREADS)[number] | null, pauseMs: number): Promise<LoadResult> {
  const timer =
    thread === null
      ? undefined
      : setInterval(() => {
          writeFileSync(orderFile, `${thread} ${String(pauseMs)}`);
          for (const { name, pid } of subject.processes()) if (name === 'gateway') process.kill(pid, 'SIGUSR2');
        }, EACH_MS);
  const order: LoadOrder = { type: 'open', target: subject.target, rate, seconds, connections: 1 };
  const result = await ask<LoadResult>(generator, order);
  clearInterval(timer);
  return result;
}

function describe(title: string, { started: begun, refused, failed, latencyMs: { p50, p99 } }: LoadResult): void {
  console.log(
    `  ${title.padEnd(34)} ${String(refused)} of ${String(begun)} refused, ${String(failed)} failed; INVITE to 200 p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  );
}

let isGood = true;
try {
  const measurements = 1 + THREADS.length * (PAUSES_MS.length + 1);
  const holdMs = (calls / CPS + measurements * (seconds + 5)) * 1_000;
  const stage = loadStage(subject, caFile, { cps: CPS, calls, holdMs, hasMedia: true, setupTimeoutMs: 5_000 });
  await new Promise((done) => setTimeout(done, (calls / CPS + 3) * 1_000));
  describe('no pause', await measured(null, 0));
  for (const thread of THREADS) {
    for (const pauseMs of PAUSES_MS) {
      const result = await measured(thread, pauseMs);
      isGood &&= result.refused === 0 && result.failed === 0;
      describe(`${thread} thread, ${String(pauseMs)} ms every 2 s`, result);
    }
  }
  for (const thread of THREADS) describe(`${thread} thread, ${String(LASTING_MS)} ms: overload`, await measured(thread, LASTING_MS));
  const { answered } = await stage;
  console.log(`  ${String(answered)} of the ${String(calls)} calls with SRTP were answered`);
} finally {
  generator.child.kill();
  await subject.close();
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = isGood ? 0 : 1;
