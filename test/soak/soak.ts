import { parseArgs } from 'node:util';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/ops/system-clock.js';
import { RtpengineNode } from '../../src/rtpengine/node.js';
import { RunningGateway } from '../support/gateway.js';
import { CHILDREN, childPid, memoryKb, openFiles, type ChildName } from '../support/processes.js';
import { isExpected, KINDS, placeMixedCalls } from './mixed-calls.js';

// `npm run soak -- --calls 20000 --rate 100`: many short calls of every kind against an instance of its own, with memory and
// open files of each process as it goes. Exit code 1 when a call ended otherwise than it should, or something was left over.

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '20000' },
    rate: { type: 'string', default: '100' },
    connections: { type: 'string', default: '8' },
  },
});
const calls = positive('calls');
const rate = positive('rate');
const connections = positive('connections');
const EVERY_CALLS = Math.max(1, Math.floor(calls / 20));
const WARM_UP_CALLS = 200;

function positive(name: keyof typeof values): number {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1) {
    console.error(`--${name} must be a whole number above 0`);
    process.exit(2);
  }
  return value;
}

const gateway = await RunningGateway.start({ TRUNKLINE_LOG_LEVEL: 'warn' });
const rtpengine = new RtpengineNode({
  address: '127.0.0.1',
  port: Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']),
  timeoutMs: 2_000,
  clock: systemClock,
  log: silentLog,
});

function figures(): Record<ChildName, { memoryMb: number; files: number }> {
  const entries = CHILDREN.map((name) => {
    const pid = childPid(gateway.ready.pid, name);
    return [name, { memoryMb: Math.round(memoryKb(pid) / 102.4) / 10, files: openFiles(pid) }] as const;
  });
  return Object.fromEntries(entries) as Record<ChildName, { memoryMb: number; files: number }>;
}

const startedMs = performance.now();
function line(done: number): void {
  const all = Object.entries(figures()).map(([name, { memoryMb, files }]) => `${name} ${memoryMb.toFixed(1)} MB ${String(files)} files`);
  console.log(
    `${String(Math.round((performance.now() - startedMs) / 1_000)).padStart(6)} s  ${String(done).padStart(7)} calls  ${all.join('  ')}`,
  );
}

const mix = { port: gateway.sipPort, ca: gateway.ca, number: gateway.ready.phone_number, rate, connections, callsAConnection: 500 };
console.log(`${String(calls)} calls at ${String(rate)}/s over ${String(connections)} TLS connections; a fifth each: ${KINDS.join(', ')}`);
try {
  await placeMixedCalls({ ...mix, calls: WARM_UP_CALLS });
  await settled();
  const before = figures();
  line(0);
  const tally = await placeMixedCalls({ ...mix, calls, onProgress: (done) => (done % EVERY_CALLS === 0 ? line(done) : undefined) });
  const sessions = await settled();
  const after = figures();
  console.log('\nEnded:');
  for (const [what, count] of Object.entries(tally))
    console.log(`  ${isExpected(what) ? 'ok  ' : 'FAIL'}  ${String(count).padStart(7)}  ${what}`);
  console.log(`\nSessions left in rtpengine: ${String(sessions)}`);
  for (const name of CHILDREN) {
    const [was, is] = [before[name], after[name]];
    console.log(
      `${name.padEnd(14)} memory ${was.memoryMb.toFixed(1)} → ${is.memoryMb.toFixed(1)} MB, open files ${String(was.files)} → ${String(is.files)}`,
    );
  }
  const isClean =
    sessions === 0 && CHILDREN.every((name) => after[name].files <= before[name].files) && Object.keys(tally).every(isExpected);
  console.log(isClean ? '\nNothing was left over.' : '\nSOMETHING WAS LEFT OVER OR WENT WRONG.');
  if (!isClean) process.exitCode = 1;
} finally {
  rtpengine.close();
  await gateway.destroy();
}

/** Waits, 10 s at most, until rtpengine has no session; resolves with how many are left. */
async function settled(): Promise<number> {
  const endMs = performance.now() + 10_000;
  for (;;) {
    const listed = (await rtpengine.command('list', { limit: 1_000 }))['calls'];
    const left = Array.isArray(listed) ? listed.length : 0;
    if (left === 0 || performance.now() > endMs) return left;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
