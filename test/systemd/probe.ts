import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { percentile } from '../../src/loadtest/percentiles.js';
import { LongCalls } from '../faults/long-calls.js';
import { pause } from '../faults/run-fault.js';
import { CarrierListener } from '../support/carrier-listener.js';
import { until } from '../support/carrier-call.js';

// Inside of boot.sh: SRTP calls through the units, which are restarted and killed one after the other. The last line is `holds` when every call
// went on, and ended with the target.

const NUMBER = '+15550100100';
const CALLS = 20;
const READY_WITHIN_MS = 60_000;
const HEARD_WITHIN_MS = 15_000;
/** After `calls.drain_ms` they would be ended in any case. */
const ENDED_WITHIN_MS = 20_000;

const run = promisify(execFile);
const systemctl = (...args: readonly string[]) => run('systemctl', [...args]);
const trunkline = async (...args: readonly string[]): Promise<string> =>
  (await run(process.execPath, ['/opt/trunkline/dist/cli/main.js', ...args])).stdout;

const isReady = async (port: number): Promise<boolean> => {
  const answer = await fetch(`http://127.0.0.1:${String(port)}/readyz`).catch(() => null);
  return answer?.status === 200;
};

const STEPS: readonly (readonly string[])[] = [
  ['restart', 'trunkline-sip-server'],
  ['kill', '--signal=KILL', 'trunkline-sip-server'],
  ['restart', 'trunkline-gateway@1'],
  ['kill', '--signal=KILL', 'trunkline-gateway@2'],
  ['restart', 'redis-server'],
  ['kill', '--signal=KILL', 'redis-server'],
  ['restart', 'rtpengine-daemon'],
  ['kill', '--signal=KILL', 'rtpengine-daemon'],
];

await until(async () => (await isReady(8_081)) && (await isReady(8_082)), 'the gateways are not ready', { withinMs: READY_WITHIN_MS });
await trunkline('org', 'create', 'Units', '--sip');
const key = /tl_\S+/.exec(await trunkline('key', 'create', 'Units', '--name', 'probe'))?.[0] ?? '';
await trunkline('number', 'attach', NUMBER, '--api-url', 'http://127.0.0.1:8081', '--key', key);
const ca = await readFile('/var/lib/trunkline/sip-server/tls/ca.pem', 'utf8');
const listener = await CarrierListener.open();
const trunk = { sipPort: 5_061, ca, number: NUMBER };
const calls = await LongCalls.begin(trunk, CALLS, false, { kind: 'accepting', listener });
console.log(`${String(CALLS)} calls are answered`);
let holds = true;
for (const step of STEPS) {
  const sinceMs = performance.now();
  await systemctl(...step);
  await pause(3_000);
  await until(() => calls.fates(sinceMs).every(({ fate }) => fate !== 'silent'), 'silent', { withinMs: HEARD_WITHIN_MS }).catch(
    () => undefined,
  );
  const fates = calls.fates(sinceMs);
  const alive = fates.filter(({ fate }) => fate === 'goes on');
  const silences = alive.map(({ silenceMs }) => silenceMs);
  holds &&= alive.length === CALLS;
  console.log(
    `systemctl ${step.join(' ')}: ${String(alive.length)} of ${String(CALLS)} go on, silence p99 ${String(percentile(silences, 0.99))} ms`,
  );
}
const stoppedMs = performance.now();
await systemctl('stop', '--no-block', 'trunkline.target');
const areEnded = (): boolean => calls.fates(stoppedMs).every(({ fate }) => fate.startsWith('BYE'));
await until(areEnded, 'calls go on', { withinMs: ENDED_WITHIN_MS }).catch(() => (holds = false));
console.log(`systemctl stop trunkline.target: ${calls.fates(stoppedMs).filter(({ fate }) => fate.startsWith('BYE')).length} get a BYE`);
console.log(holds ? 'holds' : 'does not hold');
process.exit();
