import { setTimeout as pause } from 'node:timers/promises';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { AgentSite, type AgentCall } from '../../test/support/agent/agent-site.js';
import { TestBot } from '../../test/support/agent/test-bot.js';
import { RunningGateway } from '../../test/support/gateway.js';
import { CallEnd } from '../../test/support/media/call-end.js';
import { OutboundTrunk } from '../../test/support/outbound-trunk.js';
import { childrenOf } from '../../test/support/processes.js';
import { placingSettings } from '../gateway/product.js';
import { cpuMs } from '../support/process-figures.js';
import { respond } from '../../test/support/sip-message.js';

// What a call costs the product's own processes while two parties talk: the same calls with their agent alone, in a consultation (the
// caller has hold music), as a call of three, and joined. All parties talk all the time; the agent says back what it gets.

const { values } = parseArgs({ options: { calls: { type: 'string', default: '20' }, seconds: { type: 'string', default: '40' } } });
const [calls, seconds] = [Number(values.calls), Number(values.seconds)];

const NUMBER = '+15550100777';
const TO = '+4930123456';
const OWN = ['gateway', 'sip-server'] as const;
const SETTLE_MS = 5_000;
const WARM_UP_MS = 15_000;
const HALF_A_SECOND = new Int16Array(4_000).fill(5_000);

class Talk {
  #isOver = false;
  readonly #ends: CallEnd[] = [];
  readonly #speaking: Promise<void>[] = [];

  add(end: CallEnd): void {
    this.#ends.push(end);
    this.#speaking.push(this.#speak(end));
  }

  /** Packets that each end got since it was asked last. */
  take(): readonly number[] {
    return this.#ends.map(({ peer: { received } }) => (received as unknown[]).splice(0).length);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#speaking);
  }

  async #speak({ peer }: CallEnd): Promise<void> {
    while (!this.#isOver) await peer.speak(HALF_A_SECOND);
  }
}

const bot = await TestBot.echo();
const trunk = await OutboundTrunk.open();
const own = { TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' };
const product = await RunningGateway.start({ ...(await placingSettings()), ...own });
const site = new AgentSite(product, bot);
const talk = new Talk();

async function allowDialling(): Promise<void> {
  const directions = ['inbound', { type: 'outbound', sip_endpoint: trunk.endpoint }];
  const { status } = await product.api('POST', '/sip/attach', { phone_number: NUMBER, directions, service: 'sip' });
  const limits = ['--max-calls-per-second', '100', '--max-concurrent-calls', '1000', '--max-calls-per-day', '10000'];
  const allowed = ['--prices', '+49=0.01', '--callers', NUMBER, ...limits, '--max-cost-per-day', '100000'];
  const { code, stderr } = await product.cli('org', 'set-dialling', product.ready.org_id, ...allowed);
  if (status !== 200 || code !== 0) throw new Error(`nothing may be dialled: ${String(status)} ${stderr}`);
}

async function talking(): Promise<AgentCall> {
  const call = await site.talking({ number: NUMBER });
  call.peer.onMessage = (message) => {
    if (message.startLine.startsWith('OPTIONS ')) respond(call.peer, message, '200 OK');
  };
  talk.add(call.end);
  return call;
}

async function consult(caller: AgentCall): Promise<void> {
  caller.bot.send({ event: 'transfer', transfer: { id: 't1', to: TO, step: 'consult' } });
  const leg = await trunk.call();
  const party = (await CallEnd.open()).connect(leg.invite.body);
  await leg.answer(party.sdp());
  talk.add(party);
}

async function next(callers: readonly AgentCall[], step: 'conference' | 'complete'): Promise<void> {
  for (const caller of callers) {
    caller.bot.send({ event: 'transfer', transfer: { id: step, step } });
    if (step === 'complete') await caller.bot.message('stop');
  }
}

/** CPU so far, in milliseconds, by process. */
function spent(): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { name, pid } of childrenOf(product.ready.pid)) sums[name] = (sums[name] ?? 0) + cpuMs(pid);
  return sums;
}

interface Phase {
  readonly title: string;
  /** Percent of a core a call, and what does not count: the agent costs what it costs alone. */
  readonly goal: { readonly most: number; readonly without: 'nothing' | 'agent' } | null;
  /** Percent of a core, by process. */
  readonly cpu: Readonly<Record<string, number>>;
  /** Packets a second that an end got, at worst. */
  readonly least: number;
}

async function measured(title: string, goal: Phase['goal'] = null): Promise<Phase> {
  await pause(SETTLE_MS);
  talk.take();
  const [before, begun] = [spent(), performance.now()];
  await pause(seconds * 1_000);
  const [after, tookMs] = [spent(), performance.now() - begun];
  const cpu = Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, (100 * (ms - (before[name] ?? 0))) / tookMs]));
  return { title, goal, cpu, least: Math.min(...talk.take()) / (tookMs / 1_000) };
}

const ownOf = ({ cpu }: Phase): number => OWN.reduce((all, name) => all + (cpu[name] ?? 0), 0);

function show(phase: Phase, idle: Phase, agent: Phase): void {
  const { title, goal, cpu, least } = phase;
  const each = (name: string): number => ((cpu[name] ?? 0) - (idle.cpu[name] ?? 0)) / calls;
  const sum = (ownOf(phase) - ownOf(idle)) / calls;
  const judgedSum = goal?.without === 'agent' ? (ownOf(phase) - ownOf(agent)) / calls : sum;
  const what = goal?.without === 'agent' ? `${judgedSum.toFixed(3)} more than with an agent alone, ` : '';
  const judged = goal === null ? '' : ` (${what}goal ${String(goal.most)}: ${judgedSum <= goal.most ? 'reached' : 'MISSED'})`;
  console.log(
    `${title.padEnd(16)} ${sum.toFixed(3)} % of a core a call${judged}; gateway ${each('gateway').toFixed(3)}, SIP server ${each('sip-server').toFixed(3)}, ` +
      `rtpengine ${each('rtpengine').toFixed(3)}, Redis ${each('redis-server').toFixed(3)}; each party got ${least.toFixed(1)} packets/s or more`,
  );
}

try {
  console.log(
    `${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${String(calls)} calls, ${String(seconds)} s each`,
  );
  await allowDialling();
  const callers: AgentCall[] = [];
  while (callers.length < calls) callers.push(await talking());
  await pause(WARM_UP_MS);
  const agent = await measured('with an agent');
  const phases = [agent];
  for (const caller of callers) await consult(caller);
  phases.push(await measured('a consultation', { most: 0.3, without: 'agent' }));
  await next(callers, 'conference');
  phases.push(await measured('three-way', { most: 0.3, without: 'agent' }));
  // All legs are on one connection.
  const carrier = await trunk.peer();
  carrier.onMessage = (message) => {
    if (/^(?:OPTIONS|BYE) /.test(message.startLine)) respond(carrier, message, '200 OK');
  };
  await next(callers, 'complete');
  phases.push(await measured('joined', { most: 0.02, without: 'nothing' }));
  await talk.end();
  for (const caller of callers) await caller.hangUp();
  // As warm as it was with calls.
  const idle = await measured('idle');
  for (const phase of phases) show(phase, idle, agent);
  console.log(
    `idle             gateway ${(idle.cpu['gateway'] ?? 0).toFixed(2)} % of a core, SIP server ${(idle.cpu['sip-server'] ?? 0).toFixed(2)} %`,
  );
} finally {
  await talk.end();
  await product.destroy();
  await trunk.close();
  await bot.stop();
}
process.exit();
