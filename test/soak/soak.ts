import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { RtpengineNode } from '../../src/gateway/relay/node.js';
import { RedisConnection } from '../../src/gateway/store/redis/redis.js';
import { RunningGateway } from '../support/gateway.js';
import { childrenOf, memoryKb, openFiles } from '../support/processes.js';
import { isExpected, LONG_KINDS, placeMixedCalls } from './mixed-calls.js';
import { soakReport } from './report.js';
import type { ProcessSample, Sample } from './verdict.js';

// `npm run soak -- --minutes 60 --rate 100 --report docs/soak.md`: calls of every kind against an instance of its own, with memory and
// open files of each process, keys and memory of Redis and sessions of rtpengine as it goes. Exit code 1 when a call ended otherwise than
// it should, or one of these figures grew beyond its bound (`verdict.ts`).

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '100' },
    connections: { type: 'string', default: '8' },
    workers: { type: 'string', default: '2' },
    report: { type: 'string' },
  },
});
const rate = positive('rate');
const connections = positive('connections');
const calls = Math.round(positive('minutes') * 60 * rate);
const SAMPLES = 60;
/** At the full rate, until pools, heaps and the store of ended calls have the size that this load needs: calls last 45 s at most. */
const WARM_UP_SECONDS = 60;
/** So few that the warm-up fills them: what Redis holds is to be flat from then on. */
const MAX_STORED_MB = 1;

function positive(name: 'minutes' | 'rate' | 'connections' | 'workers'): number {
  const value = Number(values[name]);
  if (!(value > 0)) {
    console.error(`--${name} must be a number above 0`);
    process.exit(2);
  }
  return value;
}

const gateway = await RunningGateway.start({
  TRUNKLINE_GATEWAY_WORKERS: String(positive('workers')),
  TRUNKLINE_RTPENGINE_PORT_MIN: '30000',
  TRUNKLINE_RTPENGINE_PORT_MAX: '59999',
  TRUNKLINE_LOG_LEVEL: 'warn',
  TRUNKLINE_CALLS_MAX_STORED_MB: String(MAX_STORED_MB),
});
const redis = new RedisConnection({
  url: `redis://127.0.0.1:${gateway.environment['TRUNKLINE_REDIS_PORT'] ?? ''}`,
  commandTimeoutMs: 10_000,
  clock: systemClock,
  log: silentLog,
});
await redis.ready(5_000);
const rtpengine = new RtpengineNode({
  address: '127.0.0.1',
  port: Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']),
  timeoutMs: 2_000,
  clock: systemClock,
  log: silentLog,
});
const startedMs = performance.now();

async function sample(done: number): Promise<Sample> {
  const names = new Map<string, number>();
  const processes = childrenOf(gateway.ready.pid).map(({ name, pid }): ProcessSample => {
    const serial = (names.get(name) ?? 0) + 1;
    names.set(name, serial);
    return {
      name: serial === 1 ? name : `${name}-${String(serial)}`,
      program: name,
      pid,
      memoryMb: memoryKb(pid) / 1_024,
      files: openFiles(pid),
    };
  });
  return {
    seconds: Math.round((performance.now() - startedMs) / 1_000),
    calls: done,
    processes,
    keys: await liveKeys(),
    redisMb: Number(/^used_memory:(\d+)/m.exec(await redis.run((client) => client.info('memory')))?.[1]) / 2 ** 20,
    sessions: await sessions(),
  };
}

/** Keys of Redis but for what is kept of calls that ended, which is meant to be kept. */
async function liveKeys(): Promise<number> {
  const live = new Set<string>();
  for await (const keys of redis.scan('*', 1_000))
    for (const key of keys) if (!/^(?:org:\{[^}]+\}:call|sip-call):/.test(key)) live.add(key);
  return live.size;
}

async function sessions(): Promise<number> {
  const listed = (await rtpengine.command('list', { limit: 1_000 }))['calls'];
  return Array.isArray(listed) ? listed.length : 0;
}

function tell({ seconds, calls: done, processes, keys, redisMb, sessions: open }: Sample): void {
  const each = processes.map(({ name, memoryMb, files }) => `${name} ${memoryMb.toFixed(1)} MB ${String(files)} files`);
  console.log(
    `${String(seconds).padStart(6)} s ${String(done).padStart(8)} calls  ${each.join('  ')}  ${String(keys)} keys ${redisMb.toFixed(1)} MB  ${String(open)} sessions`,
  );
}

const mix = {
  port: gateway.sipPort,
  ca: gateway.ca,
  number: gateway.ready.phone_number,
  rate,
  connections,
  callsAConnection: 500,
  kinds: LONG_KINDS,
};
console.log(`${String(calls)} calls at ${String(rate)}/s over ${String(connections)} TLS connections, in turn: ${LONG_KINDS.join(', ')}`);
const samples: Sample[] = [];
try {
  await placeMixedCalls({ ...mix, calls: Math.ceil(WARM_UP_SECONDS * rate) });
  await settled();
  const before = await sample(0);
  tell(before);
  const every = Math.max(1, Math.floor(calls / SAMPLES));
  const tally = await placeMixedCalls({
    ...mix,
    calls,
    onProgress: (done) => {
      if (done % every !== 0) return;
      void sample(done).then((one) => {
        samples.push(one);
        tell(one);
      });
    },
  });
  await settled(before.keys);
  const after = await sample(calls);
  tell(after);
  const { text, isClean } = soakReport({ before, after, samples, tally, rate, connections, isExpected });
  console.log(`\n${text}`);
  if (values.report !== undefined) writeFileSync(values.report, text);
  if (!isClean) process.exitCode = 1;
} finally {
  rtpengine.close();
  await redis.close();
  await gateway.destroy();
}

/** Waits, 15 s at most, until rtpengine has no session, and Redis no more keys than that: some expire a second after a call. */
async function settled(keys = Infinity): Promise<void> {
  const endMs = performance.now() + 15_000;
  while (((await sessions()) > 0 || (await liveKeys()) > keys) && performance.now() < endMs)
    await new Promise((resolve) => setTimeout(resolve, 100));
}
