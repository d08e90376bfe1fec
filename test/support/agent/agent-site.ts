import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AudioCodec } from '../../../src/rtp/codec/g711.js';
import { RunningGateway } from '../gateway.js';
import { HandMadeCall } from '../hand-made-call.js';
import { CallEnd } from '../media/call-end.js';
import type { Product, StartProduct } from '../product.js';
import { SipPeer, type WireMessage } from '../sip-peer.js';
import { TestBot, type BotCall, type BotOptions } from './test-bot.js';
import { respond } from '../sip-message.js';

/** A carrier's call to a number whose agent is a bot. */
export class AgentCall {
  /** The gateway's 200. */
  ok!: WireMessage;
  bot!: BotCall;

  constructor(
    readonly peer: SipPeer,
    readonly signalling: HandMadeCall,
    readonly end: CallEnd,
    private readonly isLate: boolean,
  ) {}

  /** The 200 came; its ACK has not gone out. A refusal closes the connection and the sockets, and rejects with its text. */
  async answered(): Promise<void> {
    this.ok = await this.signalling.final();
    if (this.ok.status !== 200) {
      await this.close();
      throw new Error(`refused: ${this.ok.text}`);
    }
    this.end.connect(this.ok.body);
  }

  ack(): void {
    this.signalling.ack(this.ok, this.isLate ? this.end.sdp() : '');
  }

  /** The caller's BYE; ends with the connection and the sockets closed. */
  async hangUp(): Promise<void> {
    await this.signalling.hangUp(this.ok);
    await this.close();
  }

  /** The gateway's BYE, which is answered: its Reason. */
  async ended(): Promise<string> {
    const bye = await this.signalling.incoming('BYE');
    respond(this.peer, bye, '200 OK');
    await this.close();
    return bye.header('Reason') ?? '';
  }

  async close(): Promise<void> {
    this.peer.close();
    await this.end.close();
  }
}

export interface CallOptions {
  readonly number?: string;
  readonly codec?: AudioCodec;
  /** Further headers of the INVITE. */
  readonly headers?: readonly string[];
  /** Without an offer: the answer is in the ACK. */
  readonly isLate?: boolean;
}

/** The whole product with a bot as the operator's default agent. */
export class AgentSite<P extends Product = RunningGateway> {
  #attached = 0;

  constructor(
    readonly gateway: P,
    readonly bot: TestBot,
  ) {}

  static start(settings: Readonly<Record<string, string>> = {}, options: BotOptions = {}): Promise<AgentSite> {
    return AgentSite.startOn((all) => RunningGateway.start(all), settings, options);
  }

  static async startOn<P extends Product>(
    start: StartProduct<P>,
    settings: Readonly<Record<string, string>> = {},
    options: BotOptions = {},
  ): Promise<AgentSite<P>> {
    const bot = await TestBot.start(options);
    try {
      const defaults = { TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' };
      return new AgentSite(await start({ ...defaults, ...settings }), bot);
    } catch (error) {
      await bot.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.gateway.destroy();
    await this.bot.stop();
  }

  /** Makes an agent by the command line and attaches a number to it. */
  async numberOf(settings: object): Promise<string> {
    this.#attached += 1;
    const number = `+1555010${String(2_000 + this.#attached)}`;
    const file = join(this.gateway.directory, `agent-${String(this.#attached)}.json`);
    await writeFile(file, JSON.stringify(settings));
    const made = await this.gateway.cli('agent', 'create', '--json', '--settings', file);
    if (made.code !== 0) throw new Error(made.stderr);
    const { agent_id: agentId } = JSON.parse(made.stdout) as { agent_id: string };
    const body = { phone_number: number, directions: ['inbound'], service: 'sip', agent_id: agentId };
    const attached = await this.gateway.api('POST', '/sip/attach', body);
    if (attached.status !== 200) throw new Error(JSON.stringify(attached.json));
    return number;
  }

  /** An INVITE is out. */
  async invite({ number = this.gateway.ready.phone_number, codec, headers = [], isLate = false }: CallOptions = {}): Promise<AgentCall> {
    const peer = await SipPeer.connect(this.gateway.sipPort, this.gateway.ca);
    const call = new AgentCall(peer, new HandMadeCall(peer, number), await CallEnd.open(codec === undefined ? {} : { codec }), isLate);
    call.signalling.invite(isLate ? '' : call.end.sdp(), headers);
    return call;
  }

  /** A call that was answered and acknowledged, and that the bot was told of. */
  async talking(options: CallOptions = {}, bot: TestBot = this.bot): Promise<AgentCall> {
    const before = bot.calls.all.length;
    const call = await this.invite(options);
    await call.answered();
    call.bot = await bot.calls.at(before);
    call.ack();
    await call.bot.message('start');
    return call;
  }
}
