import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { StageFigures } from '../../src/loadtest/figures.js';
import { productSubject } from '../gateway/product.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { ask, started } from '../support/child.js';
import { loadStage } from '../support/load-stage.js';
import { NativePrograms } from './native.js';

// More calls with SRTP than the machine bears, the whole product with its default limits: those in progress go on as before, new ones get
// 503 at once. The baseline is the same calls alone, half as many.

const { values } = parseArgs({
  options: {
    /** About as many as the machine bears; twice as many are tried. */
    calls: { type: 'string', default: '250' },
    cps: { type: 'string', default: '20' },
    /** New calls a second, without media, once twice as many were tried. */
    probes: { type: 'string', default: '10' },
    /** WebSocket bots that say back what they hear, in place of the test line. */
    bots: { type: 'boolean', default: false },
  },
});

const calls = Number(values.calls);
const cps = Number(values.cps);
const PROBE_S = 10;
const SETUP_TIMEOUT_MS = 5_000;

function describe(title: string, { answered, failures, media }: StageFigures): void {
  console.log(`\n${title}`);
  const causes = failures.map(({ code, reason, count }) => `${String(count)} ${reason ?? code}`).join(', ');
  console.log(`  calls             ${String(answered)} answered${causes === '' ? '' : `; ${causes}`}`);
  if (media === null) return;
  const { packets, delayMs, tone, lateMs } = media;
  const delay = delayMs === null ? '-' : `p50 ${delayMs.p50.toFixed(0)}, p99 of the worst call ${delayMs.p99.toFixed(0)} ms`;
  console.log(
    `  media             ${String(tone.heard)} heard, ${String(packets.lost)} of ${String(packets.expected)} packets lost; there and back ${delay}; the generator ${lateMs.toFixed(0)} ms late at worst`,
  );
}

/** A carrier has a machine of its own: a generator that waits for the product would be what is measured. */
function yieldToGenerator(pid: number): void {
  for (const thread of readdirSync(`/proc/${String(pid)}/task`)) setPriority(Number(thread), 10);
}

console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; SRTP calls to ${values.bots ? 'WebSocket bots' : 'the test line'}`,
);
const programs = values.bots ? await NativePrograms.compiled() : null;
const bots = await programs?.started('bot', 'echo');
const subject = await productSubject(
  bots === undefined ? {} : { TRUNKLINE_AGENTS_URL: `ws://127.0.0.1:${bots.ready[0] ?? ''}/`, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' },
);
for (const { pid } of subject.processes()) yieldToGenerator(pid);
const directory = await mkdtemp(join(tmpdir(), 'trunkline-overload-'));
const caFile = join(directory, 'ca.pem');
await writeFile(caFile, subject.target.ca ?? '');
const generator = await started('bench/sip-server/generator.ts');
try {
  const load = (count: number): Promise<StageFigures> => {
    const holdMs = (count / cps + PROBE_S) * 1_000;
    return loadStage(subject, caFile, { cps, calls: count, holdMs, hasMedia: true, setupTimeoutMs: SETUP_TIMEOUT_MS });
  };
  describe(`${String(calls)} calls`, await load(calls));
  const twice = load(2 * calls);
  await new Promise((resolve) => setTimeout(resolve, (2_000 * calls) / cps));
  const order: LoadOrder = { type: 'open', target: subject.target, rate: Number(values.probes), seconds: PROBE_S, connections: 1 };
  const probed = await ask<LoadResult>(generator, order);
  describe(`${String(2 * calls)} calls`, await twice);
  console.log(
    `  new calls         ${String(probed.refused)} of ${String(probed.started)} got 503${probed.refused === 0 ? '' : `, p99 after ${probed.refusalMs.toFixed(0)} ms (goal 100)`}; ${String(probed.completed)} were answered`,
  );
} finally {
  generator.child.kill();
  bots?.kill();
  await programs?.remove();
  await subject.close();
  await rm(directory, { recursive: true, force: true });
}
