import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { RunningGateway } from '../../test/support/gateway.js';
import { NoisyTenant, PRIVATE_PEERS, storesOf } from '../../test/support/noisy-tenant.js';
import { RELAY_PORTS } from '../gateway/subject.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { ask, started } from '../support/child.js';

// What one organization that uses all that its key allows costs the calls of another: INVITE to 200 of the other one's, with it and
// without it, in the same run. Without it twice, before and after, so that a machine that changes meanwhile shows.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '30' },
  },
});
/** The p99 with it, divided by that without it. */
const GOAL = 2;
const seconds = Number(values.seconds);

function describe(title: string, { completed, failed, latencyMs: { p50, p99 } }: LoadResult): void {
  console.log(
    `  ${title.padEnd(12)} ${String(completed)} calls completed, ${String(failed)} failed; INVITE to 200 p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
  );
}

const text = (counts: ReadonlyMap<number, number>): string =>
  [...counts].map(([status, count]) => `${String(count)} times ${String(status)}`).join(', ');

console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${values.rate} calls/s of the other organization`,
);
const gateway = await RunningGateway.start({
  ...PRIVATE_PEERS,
  TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: '100000',
  TRUNKLINE_RTPENGINE_PORT_MIN: String(RELAY_PORTS.min),
  TRUNKLINE_RTPENGINE_PORT_MAX: String(RELAY_PORTS.max),
});
const stores = await storesOf(gateway);
const generator = await started('bench/sip-server/generator.ts');
try {
  // The demo number, of an organization of its own.
  const target = { port: gateway.sipPort, transport: 'TLS', ca: gateway.ca, messages: 'carrier' } as const;
  const order: LoadOrder = { type: 'open', target, rate: Number(values.rate), seconds };
  const noisy = await NoisyTenant.create(gateway, stores, '+15550166000');
  await ask(generator, { ...order, seconds: Math.min(seconds, 5) } satisfies LoadOrder);
  const before = await ask<LoadResult>(generator, order);
  describe('without it', before);
  noisy.start();
  const beside = await ask<LoadResult>(generator, order);
  await noisy.stop();
  describe('with it', beside);
  const after = await ask<LoadResult>(generator, order);
  describe('without it', after);
  console.log(`  of the noisy one: the API answered ${text(noisy.answers)}; its INVITEs got ${text(noisy.calls)}`);
  const alone = (before.latencyMs.p99 + after.latencyMs.p99) / 2;
  console.log(`  p99 with it to p99 without it: ratio ${(beside.latencyMs.p99 / alone).toFixed(2)} (goal: at most ${String(GOAL)})`);
} finally {
  generator.child.kill();
  await stores.close();
  await gateway.destroy();
}
