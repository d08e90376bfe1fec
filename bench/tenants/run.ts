import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { RunningGateway } from '../../test/support/gateway.js';
import { PRIVATE_PEERS, storesOf } from '../../test/support/noisy-tenant.js';
import { childrenOf, memoryKb, openFiles } from '../../test/support/processes.js';
import { parseExposition } from '../../test/support/prometheus-text.js';
import { RELAY_PORTS } from '../gateway/subject.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { ask, started } from '../support/child.js';
import { percentile } from '../support/process-figures.js';
import { EVERYTHING, type AttackerOrder, type AttackerResult } from './attacker-process.js';
import { ATTACKS } from './attacks.js';

// What one organization that means harm costs the others: INVITE to 200 of their calls and their `GET /sip`, beside each attack and without
// it, in turns, so that a machine that changes meanwhile shows; and what the attack leaves behind in memory, sockets, Redis and the log.

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '3' },
    /** Calls, and as many API requests, in each half of a round. */
    calls: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '60' },
  },
});
/** The p99 beside the attack less that without it, in milliseconds. */
const GOAL_MS = 50;
const MIB = 1 << 20;
const [rounds, calls, rate] = [Number(values.rounds), Number(values.calls), Number(values.rate)];

interface Half {
  readonly inviteMs: number;
  readonly sipMs: number;
  readonly failed: number;
}

interface Left {
  readonly memoryMb: number;
  readonly sockets: number;
  readonly redisMb: number;
  readonly logLines: number;
  readonly mediaDelayMs: number;
}

// A DNS server that never answers, and one for every name of the machine's own: names are literal addresses here.
const mute = createSocket('udp4').bind(0, '127.0.0.1');
await once(mute, 'listening');

const gateway = await RunningGateway.start({
  ...PRIVATE_PEERS,
  NODE_OPTIONS: `--import ${resolve('test/support/ask-test-dns.mjs')}`,
  TEST_DNS_SERVER: `127.0.0.1:${String(mute.address().port)}`,
  TRUNKLINE_TRUNKS_ALLOW_PRIVATE: 'true',
  TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: '100000',
  TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE: '1000000',
  TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000',
  TRUNKLINE_RTPENGINE_PORT_MIN: String(RELAY_PORTS.min),
  TRUNKLINE_RTPENGINE_PORT_MAX: String(RELAY_PORTS.max),
});
const stores = await storesOf(gateway);
const generator = await started('bench/sip-server/generator.ts');
// The attacker's own machine: what it spends is not the gateway's.
const attacker = await started('bench/tenants/attacker-process.ts', [], [], 19);

/** Calls of another organization, and its requests to the API, at a steady rate. */
async function half(): Promise<Half> {
  const seconds = calls / rate;
  const target = { port: gateway.sipPort, transport: 'TLS', ca: gateway.ca, messages: 'carrier' } as const;
  const order: LoadOrder = { type: 'open', target, rate, seconds };
  const [result, sip] = await Promise.all([ask<LoadResult>(generator, order), apiRequests(seconds)]);
  const sorted = Float64Array.from(sip.tookMs).sort();
  return { inviteMs: result.latencyMs.p99, sipMs: percentile(sorted, 0.99), failed: result.failed + sip.failed };
}

async function apiRequests(seconds: number): Promise<{ readonly tookMs: readonly number[]; readonly failed: number }> {
  const tookMs: number[] = [];
  let failed = 0;
  const pending: Promise<void>[] = [];
  const request = async (): Promise<void> => {
    const startedMs = performance.now();
    const { status } = await gateway.api('GET', '/sip').catch(() => ({ status: 0 }));
    if (status === 200) tookMs.push(performance.now() - startedMs);
    else failed += 1;
  };
  const firstMs = performance.now();
  for (let index = 0; index < seconds * rate; index += 1) {
    const dueMs = firstMs + (index * 1_000) / rate;
    const restMs = dueMs - performance.now();
    if (restMs > 0) await new Promise((done) => setTimeout(done, restMs));
    pending.push(request());
  }
  await Promise.all(pending);
  return { tookMs, failed };
}

async function left(): Promise<Left> {
  const pids = [gateway.ready.pid, ...childrenOf(gateway.ready.pid).map(({ pid }) => pid)];
  const memoryMb = pids.reduce((sum, pid) => sum + memoryKb(pid), 0) / 1_024;
  const sockets = pids.reduce((sum, pid) => sum + openFiles(pid), 0);
  const { usedBytes } = await stores.health();
  const redisMb = (usedBytes ?? 0) / MIB;
  const logs = join(gateway.dataDir, 'logs');
  const logLines = readdirSync(logs).reduce((sum, name) => sum + linesOf(join(logs, name)), 0);
  const metrics = parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text());
  return { memoryMb, sockets, redisMb, logLines, mediaDelayMs: (metrics.sum('trunkline_media_delay_seconds') ?? 0) * 1_000 };
}

function linesOf(path: string): number {
  return statSync(path).isFile() ? readFileSync(path, 'latin1').split('\n').length - 1 : 0;
}

const order = (of: AttackerOrder): Promise<AttackerResult> => ask<AttackerResult>(attacker, of);

const text = (counts: AttackerResult['answers']): string =>
  counts.map(([status, count]) => `${String(count)}× ${String(status)}`).join(', ');

async function measure(name: string, what: string): Promise<boolean> {
  const { ready, sipPort, ca, environment } = gateway;
  await order({ type: 'prepare', place: name, gateway: { ready, sipPort, ca, environment } });
  const before = await left();
  const differences: { invite: number; sip: number; failed: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const without = await half();
    await order({ type: 'begin' });
    const beside = await half();
    await order({ type: 'end' });
    differences.push({ invite: beside.inviteMs - without.inviteMs, sip: beside.sipMs - without.sipMs, failed: beside.failed });
  }
  const after = await left();
  const shown = (of: 'invite' | 'sip'): string => differences.map((one) => one[of].toFixed(1)).join(', ');
  const failed = differences.reduce((sum, one) => sum + one.failed, 0);
  const isGood = failed === 0 && differences.every(({ invite, sip }) => invite <= GOAL_MS && sip <= GOAL_MS);
  console.log(`${isGood ? '  ok  ' : '  OVER'}  ${name}: ${what}`);
  console.log(`        p99 more by: INVITE ${shown('invite')} ms; GET /sip ${shown('sip')} ms; ${String(failed)} of the others failed`);
  const growth = (of: keyof Left): string => `${before[of].toFixed(0)} → ${after[of].toFixed(0)}`;
  console.log(
    `        memory ${growth('memoryMb')} MB, open files ${growth('sockets')}, Redis ${growth('redisMb')} MB, log lines ${growth('logLines')}, media delay ${growth('mediaDelayMs')} ms`,
  );
  const { answers, refusal } = await order({ type: 'close' });
  console.log(`        the attacker got ${text(answers)}${refusal === null ? '' : ` (${refusal})`}`);
  return isGood;
}

console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${String(rounds)} rounds of ${String(calls)} calls and API requests, ${String(rate)} a second each; goal: at most ${String(GOAL_MS)} ms more`,
);
let areGood = true;
try {
  await half();
  const all = [...ATTACKS, { place: EVERYTHING, what: 'all that a key allows, API and calls' }];
  for (const { place, what } of all.filter(
    ({ place: name }) => values.only === undefined || values.only.some((part) => name.includes(part)),
  ))
    areGood = (await measure(place, what)) && areGood;
} finally {
  generator.child.kill();
  attacker.child.kill();
  await stores.close();
  await gateway.destroy();
  mute.close();
}
process.exitCode = areGood ? 0 : 1;
