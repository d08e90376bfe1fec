import g711 from 'alawmulaw';
import { expect } from 'vitest';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import { AgentSite, type AgentCall } from './agent/agent-site.js';
import { TestBot } from './agent/test-bot.js';
import { until } from './carrier-call.js';
import { RunningGateway } from './gateway.js';
import { CallEnd } from './media/call-end.js';
import { OutboundSite, TO } from './outbound-site.js';
import type { TakenCall } from './outbound-trunk.js';
import type { Product, StartProduct } from './product.js';
import { respond } from './sip-message.js';

export const NUMBER = '+15550100777';
export const PACKETS = 25;
export const FRAMES = (sample: number): Int16Array => new Int16Array(PACKETS * 160).fill(sample);

/** A call with an agent, and the one that we placed for its transfer. */
export interface Transfer {
  readonly call: AgentCall;
  readonly leg: TakenCall;
  readonly end: CallEnd;
}

/** A gateway whose agent is a bot, with a number that may dial +49 through a carrier of the test's. */
export class TransferSite<P extends Product = RunningGateway> {
  private constructor(
    readonly outbound: OutboundSite<P>,
    readonly bot: TestBot,
    readonly agents: AgentSite<P>,
  ) {}

  static start(settings: Readonly<Record<string, string>> = {}): Promise<TransferSite> {
    return TransferSite.startOn((all) => RunningGateway.start(all), settings);
  }

  static async startOn<P extends Product>(
    start: StartProduct<P>,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<TransferSite<P>> {
    const bot = await TestBot.start();
    const own = { TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true', TRUNKLINE_CALLS_TRANSFER_PREFIXES: '[+81]' };
    const outbound = await OutboundSite.startOn(start, false, { ...own, ...settings });
    const directions = ['inbound', { type: 'outbound', sip_endpoint: outbound.trunk.endpoint }];
    const answer = await outbound.gateway.api('POST', '/sip/attach', { phone_number: NUMBER, directions, service: 'sip' });
    expect(answer.status, JSON.stringify(answer.json)).toBe(200);
    await outbound.allow('--callers', NUMBER);
    return new TransferSite(outbound, bot, new AgentSite(outbound.gateway, bot));
  }

  talking(): Promise<AgentCall> {
    return this.agents.talking({ number: NUMBER });
  }

  /** The bot asks for a transfer, and the carrier refuses the REFER: the other number is dialled. */
  async dialled(call?: AgentCall): Promise<Omit<Transfer, 'end'>> {
    const first = call ?? (await this.talking());
    await refused(first);
    expect(await first.bot.message('transfer')).toMatchObject({ transfer: { id: 't1', state: 'accepted', status: null } });
    return { call: first, leg: await this.outbound.trunk.call() };
  }

  /** Both parties hear each other. */
  async joined(first?: AgentCall): Promise<Transfer> {
    const { call, leg } = await this.dialled(first);
    leg.respond('180 Ringing');
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    await hearEachOther(call.end, end);
    return { call, leg, end };
  }

  /** The agent and whoever answered talk. */
  async consulting(): Promise<Transfer> {
    const call = await this.talking();
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TO, step: 'consult' } });
    const leg = await this.outbound.trunk.call();
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    expect(await call.bot.message('transfer', 1)).toMatchObject({ transfer: { id: 't1', state: 'answered', status: null } });
    return { call, leg, end };
  }

  async recordOf(call: AgentCall): Promise<CallRecord> {
    return (await this.outbound.gateway.record(call.signalling.callId)) as unknown as CallRecord;
  }

  async destroy(): Promise<void> {
    await this.outbound.destroy();
    await this.bot.stop();
  }
}

/** The bot asks for a transfer, and the carrier refuses the REFER. */
export async function refused(call: AgentCall, to = TO): Promise<void> {
  call.bot.send({ event: 'transfer', transfer: { id: 't1', to } });
  const refer = await call.signalling.incoming('REFER');
  respond(call.peer, refer, '603 Decline');
}

/** Both carriers take each re-INVITE from now on, and answer OPTIONS. */
export function follow({ call, leg, end }: Transfer): void {
  followCaller(call);
  leg.peer.onMessage = (message) => {
    if (message.header('Call-ID') !== leg.callId) return;
    if (message.startLine.startsWith('OPTIONS ')) return respond(leg.peer, message, '200 OK');
    if (!message.startLine.startsWith('INVITE ')) return;
    end.connect(message.body);
    respond(leg.peer, message, '200 OK', { body: end.sdp() });
  };
}

export function followCaller(call: AgentCall): void {
  call.peer.onMessage = (message) => {
    if (message.header('Call-ID') !== call.signalling.callId) return;
    if (message.startLine.startsWith('OPTIONS ')) return respond(call.peer, message, '200 OK');
    if (!message.startLine.startsWith('INVITE ')) return;
    call.end.connect(message.body);
    respond(call.peer, message, '200 OK', { body: call.end.sdp() });
  };
}

export async function hearEachOther(one: CallEnd, other: CallEnd): Promise<void> {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const before = to.voiced;
    await until(async () => {
      await from.peer.speak(FRAMES(5_000));
      return to.voiced - before > PACKETS - 5;
    }, 'nothing is heard');
  }
}

/** Frames that the bot heard with exactly this level in them. */
export function heardBy(call: Pick<AgentCall, 'bot'>, sample: number): number {
  const [byte = 0] = g711.mulaw.encode(new Int16Array([sample]));
  return call.bot.of('media').filter((message) => {
    const payload = Buffer.from((message['media'] as { payload: string }).payload, 'base64');
    return payload.every((one) => one === byte);
  }).length;
}

export async function botHears(call: Pick<AgentCall, 'bot'>, from: CallEnd, sample: number): Promise<void> {
  const before = heardBy(call, sample);
  await until(async () => {
    await from.peer.speak(FRAMES(sample));
    return heardBy(call, sample) - before > PACKETS - 10;
  }, 'the bot hears nothing');
}
