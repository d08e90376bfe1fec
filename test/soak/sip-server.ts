import { parseArgs } from 'node:util';
import { collectedKb, order, startAll } from '../../bench/sip-server/processes.js';
import { openFiles } from '../support/processes.js';

// `npm run soak:sip-server -- --calls 200000 --rate 1000`: answered, refused and cancelled calls against the SIP server alone, with what it
// holds after a full collection as it goes. Exit code 1 when a call ended otherwise than it should, or memory did not stay flat.

const { values } = parseArgs({ options: { calls: { type: 'string', default: '200000' }, rate: { type: 'string', default: '1000' } } });
const calls = Number(values.calls);
const rate = Number(values.rate);
const ROUNDS = 10;
/** After the first rounds, which fill pools and caches. */
const MAX_GROWTH_MB = 16;
/** Longer than what RFC 6026 keeps of a call that is over. */
const SETTLED_MS = 33_000;

const all = await startAll({ profile: false, messages: 'carrier', drachtio: null, collects: true });
const resident: number[] = [];
let failed = 0;
for (let round = 1; round <= ROUNDS; round += 1) {
  const result = await order(all.generator, { type: 'open', target: all.target, rate, seconds: calls / ROUNDS / rate, mix: true });
  failed += result.failed;
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  const memoryMb = (await collectedKb(all.server)) / 1_024;
  resident.push(memoryMb);
  console.log(
    `${String((round * calls) / ROUNDS).padStart(7)} calls  ${memoryMb.toFixed(1)} MB  ${String(openFiles(all.server.pid))} files  ${String(failed)} failed`,
  );
}
await all.close();
const growthMb = (resident.at(-1) ?? 0) - (resident[2] ?? 0);
console.log(`From round 3 to the last: ${growthMb.toFixed(1)} MB.`);
if (failed > 0 || growthMb > MAX_GROWTH_MB) process.exitCode = 1;
