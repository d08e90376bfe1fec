import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { STREAM_FORMATS } from '../../src/agent-protocol/stream-format.js';
import { PROVIDERS, type BridgeKind } from './bridges.js';
import { measured, ownCpu, type MeasurementSettings, type Outcome } from './measurement.js';
import { NativePrograms } from './native.js';
import { compareRows } from './rows.js';
import type { DelayFigures, ReceiverFigures } from './traffic.js';

// Calls in progress: callers → media endpoint → WebSocket bots that say back what they hear → back again, by SRTP and rtpengine where the
// path is relayed. Callers, bots, bridge and rtpengine are a process each; callers and bots are C (native/*.c).
//
// `--against <checkout>` measures the rows below, for this checkout, the bare bridge (bare.ts), the C floor (native/floor.c) and the other
// checkout, whose bench/media/endpoint.ts is started as it is there. Other work on the machine spoils them. docs/performance.md says how to run it.
//
//   1  From a bot's message to its first sample played, for bots that pace their own speech, 100 calls: the mean, and the packets that came too
//      late to be played. Two receivers play what comes over the wire: one with a fixed 40 ms by timestamp, and libspeexdsp's adaptive one.
//   2  Bots that say back at once what they hear, 100 calls: a bot's frame written to its datagram in the caller's kernel, p50 and p99; frames
//      sent over 10 ms later than their timestamps say; pieces of 20 ms within a word that were silence; packets lost.
//   3  CPU a call of the gateway's process at 100 and 200 calls; as a ratio to the bridge's and the floor's.
//   4  SRTP and rtpengine: CPU a call of both processes, as a ratio to the bridge with plain RTP; frame to datagram.
//   5  CPU a call at 20 calls, as a ratio to the other checkout's.
//   6  INVITE to 200: `npm run bench:gateway -- --bots`.
//   7  The most SRTP calls of which no packet is lost and the p99 of frame to datagram is at most 60 ms, callers and bots on the same cores.
//   8  Memory a call of the gateway's process: what 200 calls take more than 25, measured at the same age without garbage.

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '250' },
    seconds: { type: 'string', default: '20' },
    /** The words can be followed where each sample passes as it is: not in 16 kHz. */
    format: { type: 'string', default: 'twilio' },
    workers: { type: 'string', default: '1' },
    /** `bare`, `floor`, `endpoint`, `relayed`, `relayed-srtp`, or a provider, which is held against `endpoint`; several with commas. */
    only: { type: 'string', default: 'bare,floor,endpoint,relayed' },
    /** Bots pace their own speech in real time, in place of saying back what they hear. */
    paced: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    /** Another checkout with its build: prints the rows above. */
    against: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '1,2,3,4,5,7,8' },
    /** Of the rows' calls: less than 1 tries the benchmark itself. */
    share: { type: 'string', default: '1' },
  },
});

/** Percent of a core a call more than a bot costs. */
const PROVIDER_GOAL = 0.05;
const DELAY_GOAL_MS = 25;

const TITLES: Readonly<Record<BridgeKind, string>> = {
  bare: 'The bare bridge: plain RTP, Twilio’s JSON, each frame sent on when it comes, nothing checked',
  floor: 'The floor: a C loop with the system calls of a bridge',
  endpoint: 'The endpoint alone: plain RTP ↔ WebSocket',
  relayed: 'The whole path: SRTP ↔ rtpengine ↔ RTP ↔ endpoint ↔ WebSocket',
  'relayed-srtp': 'The whole path with SRTP inside too',
  'openai-realtime': 'The endpoint alone: plain RTP ↔ OpenAI Realtime, µ-law in base64',
  deepgram: 'The endpoint alone: plain RTP ↔ Deepgram Voice Agent, µ-law in binary',
  'gemini-live': 'The endpoint alone: plain RTP ↔ Gemini Live, 16 and 24 kHz in base64: its words cannot be followed',
};

// Without a word that came back they are no numbers.
function delay({ p50, p99, p999, max }: DelayFigures): string {
  if (!Number.isFinite(p50)) return 'not known';
  return `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, p99.9 ${p999.toFixed(1)}, at most ${max.toFixed(1)} ms`;
}

function playedBy({ meanMs, late }: ReceiverFigures): string {
  return Number.isNaN(meanMs) ? 'not known' : `after ${meanMs.toFixed(1)} ms, ${String(late)} packets late`;
}

function list(figures: Readonly<Partial<Record<string, number>>>, digits: number, unit: string): string {
  return Object.entries(figures)
    .map(([name, figure = Number.NaN]) => `${name} ${figure.toFixed(digits)} ${unit}`)
    .join(', ');
}

function show(title: string, outcome: Outcome, bare: Outcome | undefined): void {
  const { traffic, cpu, memory, maxLateMs } = outcome;
  const { sent, lost, up, down, total, sentLate, silenced, fixed, adaptive, generatorLateMs } = traffic;
  console.log(`\n${title}`);
  console.log(
    `  words             ${String(sent)} packets sent, ${String(lost)} did not arrive (${((100 * lost) / sent).toFixed(3)} %; goal: none at 500 calls on two cores)`,
  );
  console.log(`  caller to bot     ${delay(up)} (goal: p99 ${String(DELAY_GOAL_MS)} ms at 200 calls)`);
  console.log(
    `  bot to caller     ${delay(down)} (goal: the same); ${String(sentLate)} sent late, ${String(silenced)} replaced by silence`,
  );
  if (!values.paced) console.log(`  there and back    ${delay(total)}`);
  console.log(`  played            ${playedBy(fixed)} with a fixed 40 ms; ${playedBy(adaptive)} with an adaptive buffer`);
  console.log(
    `  lateness          generator ${generatorLateMs.toFixed(1)} ms at worst${maxLateMs === undefined ? '' : `, endpoint ${maxLateMs.toFixed(1)} ms`}`,
  );
  console.log(`  CPU a call        ${list(cpu, 3, '%')}`);
  console.log(`  memory in all     ${list(memory, 0, 'kB')}`);
  console.log(
    `  calls a core      ${(100 / ownCpu(outcome)).toFixed(0)} of the bridge${cpu.rtpengine === undefined ? '' : ' with rtpengine'}`,
  );
  if (bare !== undefined)
    console.log(`  ratio             ${(ownCpu(outcome) / ownCpu(bare)).toFixed(2)} times the CPU of the bare bridge`);
}

function showProvider(kind: BridgeKind, outcome: Outcome, bot: Outcome): void {
  const more = ownCpu(outcome) - ownCpu(bot);
  const goal = kind === 'gemini-live' ? '' : `, goal ${String(PROVIDER_GOAL)}: ${more <= PROVIDER_GOAL ? 'reached' : 'MISSED'}`;
  console.log(`  than with a bot   ${more.toFixed(3)} % of a core a call more${goal}`);
}

function kindOf(name: string): BridgeKind {
  if (Object.hasOwn(TITLES, name)) return name as BridgeKind;
  throw new Error(`--only ${name}: one of ${Object.keys(TITLES).join(', ')}`);
}

async function measureKinds(
  kinds: readonly BridgeKind[],
  settings: Omit<MeasurementSettings, 'kind'>,
  programs: NativePrograms,
): Promise<void> {
  console.log(`${values.calls} calls for ${values.seconds} s, bots on ${settings.format}`);
  const found = new Map<BridgeKind, Outcome>();
  for (const kind of kinds) {
    const outcome = await measured({ ...settings, kind }, programs);
    show(TITLES[kind], outcome, found.get('bare'));
    found.set(kind, outcome);
    const bot = found.get('endpoint');
    if (bot !== undefined && PROVIDERS.some((name) => name === kind)) showProvider(kind, outcome, bot);
  }
}

const kinds = values.only.split(',').map(kindOf);
const settings: Omit<MeasurementSettings, 'kind'> = {
  checkout: '.',
  format: STREAM_FORMATS.find((name) => name === values.format) ?? 'twilio',
  workers: Number(values.workers),
  profile: values.profile,
  bots: values.paced ? 'paced' : 'echo',
  calls: Number(values.calls),
  seconds: Number(values.seconds),
};
const { against } = values;
const rows = values.rows.split(',').map(Number);
console.log(`${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}`);
const programs = await NativePrograms.compiled();
try {
  if (against === undefined) await measureKinds(kinds, settings, programs);
  else await compareRows({ ...settings, against, rounds: Number(values.rounds), rows, share: Number(values.share) }, programs);
} finally {
  await programs.remove();
}
