import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { STREAM_FORMATS, type StreamFormat } from '../../src/agent-protocol/stream-format.js';
import { memoryKb } from '../../test/support/processes.js';
import { RunningRtpengine } from '../../test/support/rtpengine.js';
import { ask, started, type Child } from '../support/child.js';
import { cpuMs } from '../support/process-figures.js';
import type { CarrierSide, DelayFigures, FarSide, TrafficFigures } from './messages.js';

// Calls in progress: SRTP carriers → rtpengine → media endpoint → WebSocket agents that say back what they hear → back again.
// A process each: generator, rtpengine, endpoint, agents.

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '250' },
    seconds: { type: 'string', default: '20' },
    format: { type: 'string', default: 'twilio' },
    workers: { type: 'string', default: '1' },
    /** `bare`, `endpoint`, `relayed`, `relayed-srtp`, or a provider, which is held against `endpoint`; several with commas. */
    only: { type: 'string', default: 'bare,endpoint,relayed' },
    profile: { type: 'boolean', default: false },
  },
});

const PROVIDERS = ['openai-realtime', 'deepgram', 'gemini-live'] as const;
/** Percent of a core a call more than a bot costs. */
const PROVIDER_GOAL = 0.05;
const DELAY_GOAL_MS = 25;
const BATCH = 25;
/** Also for what calls had waiting while the others began: the queue of speech makes up for it in pauses, which it looks for each 2 s. */
const SETTLE_MS = 10_000;

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

interface Outcome {
  readonly traffic: TrafficFigures;
  /** Percent of a core a call, by process. */
  readonly cpu: Readonly<Record<string, number>>;
  /** kB a call. */
  readonly memory: Readonly<Record<string, number>>;
  readonly counters: { readonly maxLateMs?: number };
}

async function measured(kind: string, calls: number, seconds: number, format: StreamFormat): Promise<Outcome> {
  const isRelayed = kind.startsWith('relayed');
  const rtpengine = isRelayed ? await RunningRtpengine.start({ min: 28_000, max: 32_399 }) : null;
  const bot = await started('bench/media/bot.ts');
  const profiling = values.profile && kind !== 'bare' ? ['--cpu-prof', `--cpu-prof-dir=${resolve('test-results')}`] : [];
  const endpoint = await started(kind === 'bare' ? 'bench/media/bare.ts' : 'bench/media/endpoint.ts', ['--expose-gc', ...profiling]);
  const generator = await started('bench/media/generator.ts');
  const watched: Record<string, number> = { endpoint: endpoint.pid, agents: bot.pid, generator: generator.pid };
  if (rtpengine !== null) watched['rtpengine'] = rtpengine.pid;
  await ask(endpoint, {
    type: 'set-up',
    ngPort: rtpengine?.port ?? null,
    format: kind === 'bare' ? 'twilio' : format,
    botUrl: `ws://127.0.0.1:${String(bot.ready.port)}/`,
    provider: PROVIDERS.find((name) => name === kind) ?? null,
    agentSideSrtp: kind === 'relayed-srtp',
    workers: Number(values.workers),
    portMin: 24_000,
    portMax: 24_199,
  });
  // The first calls load code and fill pools: they do not count as memory.
  await open(generator, endpoint, 0, BATCH, isRelayed);
  await ask(endpoint, { type: 'collect' });
  const before = Object.fromEntries(Object.entries(watched).map(([name, pid]) => [name, memoryKb(pid)]));
  for (let first = BATCH; first < calls; first += BATCH) await open(generator, endpoint, first, Math.min(BATCH, calls - first), isRelayed);
  await pause(SETTLE_MS);
  await ask(endpoint, { type: 'counters' });
  await ask(generator, { type: 'measure' });
  const cpuBefore = Object.fromEntries(Object.entries(watched).map(([name, pid]) => [name, cpuMs(pid)]));
  await pause(seconds * 1_000);
  const cpu = Object.fromEntries(
    Object.entries(watched).map(([name, pid]) => [name, (100 * (cpuMs(pid) - (cpuBefore[name] ?? 0))) / (seconds * 1_000) / calls]),
  );
  const traffic = await ask<TrafficFigures>(generator, { type: 'figures' });
  const counters = await ask<Outcome['counters']>(endpoint, { type: 'counters' });
  await ask(endpoint, { type: 'collect' });
  const memory = Object.fromEntries(
    Object.entries(watched).map(([name, pid]) => [name, (memoryKb(pid) - (before[name] ?? 0)) / Math.max(1, calls - BATCH)]),
  );
  const gone = new Promise((done) => endpoint.child.once('exit', done));
  endpoint.child.kill('SIGTERM');
  await gone;
  for (const { child } of [generator, bot]) child.kill();
  await rtpengine?.stop();
  return { traffic, cpu, memory, counters };
}

async function open(generator: Child, endpoint: Child, first: number, calls: number, isRelayed: boolean): Promise<void> {
  const carriers = await ask<CarrierSide[]>(generator, { type: 'prepare', calls, first, srtp: isRelayed });
  const far = await ask<FarSide[]>(endpoint, { type: 'open', calls: carriers });
  await ask(generator, { type: 'start', far });
}

function show(title: string, { traffic, cpu, memory, counters }: Outcome, bare: Outcome | undefined): void {
  // Without a word that came back they are no numbers.
  const delay = ({ p50, p99, p999, max }: DelayFigures): string =>
    !Number.isFinite(p50)
      ? 'not known'
      : `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, p99.9 ${p999.toFixed(1)}, at most ${max.toFixed(1)} ms`;
  console.log(`\n${title}`);
  console.log(
    `  words             ${String(traffic.sent)} packets sent, ${String(traffic.lost)} did not come back (${((100 * traffic.lost) / traffic.sent).toFixed(3)} %; goal: none at 500 calls on two cores)`,
  );
  console.log(`  mouth to agent    ${delay(traffic.up)} (goal: p99 ${String(DELAY_GOAL_MS)} ms at 200 calls)`);
  console.log(`  agent to ear      ${delay(traffic.down)} (goal: the same)`);
  console.log(`  there and back    ${delay(traffic.total)}, jitter ${traffic.jitterMs.toFixed(2)} ms`);
  console.log(
    `  lateness          generator ${traffic.generatorLateMs.toFixed(1)} ms at worst${counters.maxLateMs === undefined ? '' : `, endpoint ${counters.maxLateMs.toFixed(1)} ms`}`,
  );
  console.log(
    `  CPU a call        ${Object.entries(cpu)
      .map(([name, share]) => `${name} ${share.toFixed(3)} %`)
      .join(', ')}`,
  );
  console.log(
    `  memory a call     ${Object.entries(memory)
      .map(([name, kb]) => `${name} ${kb.toFixed(0)} kB`)
      .join(', ')}`,
  );
  const own = cpu['endpoint'] ?? 0;
  const product = own + (cpu['rtpengine'] ?? 0);
  console.log(
    `  calls a core      ${(100 / own).toFixed(0)} of the endpoint${product > own ? `, ${(100 / product).toFixed(0)} with rtpengine` : ''}`,
  );
  if (bare === undefined) return;
  const bareShare = bare.cpu['endpoint'] ?? 1;
  console.log(
    `  ratio             ${(own / bareShare).toFixed(2)} times the CPU of the bare bridge in this run (goal 0.8)${product > own ? `, ${(product / bareShare).toFixed(2)} with rtpengine` : ''}`,
  );
}

const TITLES: Readonly<Record<string, string>> = {
  bare: 'Baseline: a bare bridge of UDP and WebSocket, Twilio’s JSON, no SRTP, nothing checked',
  endpoint: 'The endpoint alone: plain RTP ↔ WebSocket',
  relayed: 'The whole path: SRTP ↔ rtpengine ↔ RTP ↔ endpoint ↔ WebSocket',
  'relayed-srtp': 'The whole path with SRTP inside too',
  'openai-realtime': 'The endpoint alone: plain RTP ↔ OpenAI Realtime, µ-law in base64',
  deepgram: 'The endpoint alone: plain RTP ↔ Deepgram Voice Agent, µ-law in binary',
  'gemini-live': 'The endpoint alone: plain RTP ↔ Gemini Live, 16 and 24 kHz in base64: its words cannot be followed',
};

const calls = Number(values.calls);
const format = STREAM_FORMATS.find((name) => name === values.format) ?? 'twilio';
console.log(
  `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${String(calls)} calls for ${values.seconds} s, agents on ${format}`,
);
let bare: Outcome | undefined;
let bot: Outcome | undefined;
for (const kind of values.only.split(',')) {
  const title = TITLES[kind];
  if (title === undefined) throw new Error(`--only ${kind}: one of ${Object.keys(TITLES).join(', ')}`);
  const outcome = await measured(kind, calls, Number(values.seconds), format);
  show(title, outcome, bare);
  if (kind === 'bare') bare = outcome;
  if (kind === 'endpoint') bot = outcome;
  if (bot === undefined || !PROVIDERS.some((name) => name === kind)) continue;
  const more = (outcome.cpu['endpoint'] ?? 0) - (bot.cpu['endpoint'] ?? 0);
  const goal = kind === 'gemini-live' ? '' : `, goal ${String(PROVIDER_GOAL)}: ${more <= PROVIDER_GOAL ? 'reached' : 'MISSED'}`;
  console.log(`  than with a bot   ${more.toFixed(3)} % of a core a call more${goal}`);
}
