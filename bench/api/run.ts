import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { freePorts } from '../../test/support/ports.js';
import { send } from '../../test/support/redis.js';
import { ask, started } from '../support/child.js';
import { cpuMs } from '../support/process-figures.js';
import type { Fields, Served } from './messages.js';

// Requests a second and delays of the control API against a bare route of the same HTTP framework, one after the other in the same run.
// A process each: the server, redis-server with its append-only file, the load.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '32' },
    numbers: { type: 'string', default: '10000' },
  },
});
const seconds = Number(values.seconds);
const connections = Number(values.connections);
/** The delay is measured with so many: more would only queue. */
const FEW_CONNECTIONS = 4;
/** Numbers that one run goes through. */
const ROUND = 1_000;

const RECORD = {
  inbound_id: 'IN-8f6f6bb0-6a53-4c53-9f5b-0f0d8a2d1c11',
  phone_number: '+15551234567',
  org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
  inbound: {
    agent_id: null,
    options: { allowed_sources: [], max_concurrent_calls: null, max_calls_per_second: null, media_encryption: 'required' },
  },
  outbound: null,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

interface Outcome {
  readonly perSecond: number;
  /** With `FEW_CONNECTIONS`. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time a request at full speed. */
  readonly serverMs: number;
  readonly redisMs: number;
}

type Route = 'GET /sip' | 'POST /sip/attach';
const ROUTES: readonly Route[] = ['GET /sip', 'POST /sip/attach'];

function requestsOf(route: Route, { key, numbers }: Served): autocannon.Request[] {
  const some = numbers.length === 0 ? [RECORD.phone_number] : numbers.slice(0, ROUND);
  const headers = { authorization: key, 'content-type': 'application/json' };
  return some.map((number) =>
    route === 'GET /sip'
      ? { method: 'GET', path: `/sip?inbound_id=${encodeURIComponent(number)}`, headers: { authorization: key } }
      : {
          method: 'POST',
          path: '/sip/attach',
          headers,
          body: JSON.stringify({ phone_number: number, directions: ['inbound'], service: 'sip' }),
        },
  );
}

async function measured(route: Route, served: Served, pid: number, redisPid: number | null): Promise<Outcome> {
  const shot = { url: `http://127.0.0.1:${String(served.port)}`, connections, requests: requestsOf(route, served) };
  await autocannon({ ...shot, duration: 2 });
  const before = [cpuMs(pid), redisPid === null ? 0 : cpuMs(redisPid)] as const;
  const full = await autocannon({ ...shot, duration: seconds });
  const done = full['2xx'];
  if (done !== full.requests.total || full.errors > 0)
    throw new Error(`${route}: ${String(full.non2xx)} failed, ${String(full.errors)} errors`);
  const serverMs = (cpuMs(pid) - before[0]) / done;
  const redisMs = redisPid === null ? 0 : (cpuMs(redisPid) - before[1]) / done;
  const perSecond = done / full.duration;
  const { latency } = await autocannon({ ...shot, connections: FEW_CONNECTIONS, duration: seconds });
  return { perSecond, p50Ms: latency.p50, p99Ms: latency.p99, serverMs, redisMs };
}

async function redisServer(): Promise<{ readonly url: string; readonly pid: number; readonly stop: () => void }> {
  const [port = 0] = await freePorts(1);
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    directory,
    '--save',
    '',
    '--appendonly',
    'yes',
    '--appendfsync',
    'everysec',
  ];
  const server = spawn('redis-server', args, { stdio: 'ignore' });
  while (!(await send(port, 'PING').catch(() => '')).startsWith('+PONG')) await new Promise((done) => setImmediate(done));
  const stop = (): void => {
    server.once('exit', () => rmSync(directory, { recursive: true, force: true }));
    server.kill('SIGKILL');
  };
  return { url: `redis://127.0.0.1:${String(port)}`, pid: server.pid ?? 0, stop };
}

function row(name: string, { perSecond, p50Ms, p99Ms, serverMs, redisMs }: Outcome): string {
  return [
    name.padEnd(18),
    perSecond.toFixed(0).padStart(9),
    p50Ms.toFixed(1).padStart(9),
    p99Ms.toFixed(1).padStart(9),
    serverMs.toFixed(3).padStart(12),
    redisMs.toFixed(3).padStart(12),
  ].join('');
}

console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${String(connections)} connections (delays with ${String(FEW_CONNECTIONS)}), ${values.numbers} numbers`,
);
const redis = await redisServer();
const fields: Fields = { redisUrl: redis.url, numbers: Number(values.numbers), record: RECORD };
const bare = await started('bench/api/bare.ts');
const product = await started('bench/api/product.ts');
const servedBare = await ask<Served>(bare, fields);
const servedProduct = await ask<Served>(product, fields);
for (const route of ROUTES) {
  console.log(
    `\n${route.padEnd(18)}${'a second'.padStart(9)}${'p50 ms'.padStart(9)}${'p99 ms'.padStart(9)}${'server ms'.padStart(12)}${'redis ms'.padStart(12)}`,
  );
  const baseline = await measured(route, servedBare, bare.pid, null);
  console.log(row('bare route', baseline));
  const api = await measured(route, servedProduct, product.pid, redis.pid);
  console.log(row('control API', api));
  console.log(
    `ratio              ${(api.perSecond / baseline.perSecond).toFixed(2)} of the requests a second, ${(api.serverMs / baseline.serverMs).toFixed(2)} times the CPU of the server, ${(api.p99Ms / baseline.p99Ms).toFixed(2)} times the p99`,
  );
}
for (const { child } of [bare, product]) child.kill();
redis.stop();
