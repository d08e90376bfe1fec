import { CarrierAudio } from './carrier-audio.js';
import type { RunningGateway } from './gateway.js';
import { HandMadeCall } from './hand-made-call.js';
import { SipPeer, type WireMessage } from './sip-peer.js';
import { HANG_GUARD_MS } from './hang-guard.js';
import { respond } from './sip-message.js';

/** Where a carrier connects to; 127.0.0.1 unless it says otherwise. */
export type Trunk = Pick<RunningGateway, 'sipPort' | 'ca'> & { readonly sipHost?: string };

/** One call of a carrier with a connection of its own and real audio. OPTIONS, BYE and re-INVITE of the gateway's are answered. */
export class CarrierCall {
  /** The gateway's 200. */
  answer!: WireMessage;
  /** 0: not yet. */
  answeredMs = 0;
  /** Answers to the gateway's next re-INVITEs; those after them get 200. */
  readonly refusals: string[] = [];
  /** Answer to each OPTIONS and BYE of the gateway's; `null`: none. */
  otherAnswer: string | null = '200 OK';
  /** Each connection that it ever had: one of another cell's goes on when a cell dies. */
  readonly #peers = new Set<SipPeer>();

  private constructor(
    public peer: SipPeer,
    readonly signalling: HandMadeCall,
    readonly audio: CarrierAudio,
  ) {
    this.over(peer);
  }

  /** The call goes on over this connection. */
  over(peer: SipPeer): void {
    this.#use(peer);
    peer.onMessage = (message) => {
      if (message.header('Call-ID') === this.signalling.callId) this.#onMessage(message);
    };
  }

  /** The gateway says this over a connection that it opened, which the call has from now on. */
  take(peer: SipPeer, message: WireMessage): void {
    this.#use(peer);
    this.#onMessage(message);
  }

  #use(peer: SipPeer): void {
    this.#peers.add(peer);
    this.peer = peer;
    this.signalling.over(peer);
  }

  #onMessage(message: WireMessage): void {
    if (/^(OPTIONS|BYE) /.test(message.startLine)) {
      if (this.otherAnswer !== null) respond(this.peer, message, this.otherAnswer);
      return;
    }
    if (!message.startLine.startsWith('INVITE ')) return;
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return respond(this.peer, message, refusal);
    this.audio.follow(message.body);
    respond(this.peer, message, '200 OK', { body: this.audio.sdp() });
  }

  /** Everything up to the INVITE. */
  static async open(gateway: Trunk, number: string): Promise<CarrierCall> {
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca, gateway.sipHost === undefined ? {} : { host: gateway.sipHost });
    return new CarrierCall(peer, new HandMadeCall(peer, number), await CarrierAudio.open());
  }

  /** An answered call with audio from both sides. */
  static async talking(gateway: Trunk, number: string): Promise<CarrierCall> {
    const call = await CarrierCall.open(gateway, number);
    await call.connect();
    return call;
  }

  /** @param contact port of the URI that we are reached at; left out: that of our connection, where nobody listens */
  async connect(contact: number | null = null): Promise<void> {
    this.signalling.contactPort = contact;
    this.signalling.invite(this.audio.sdp());
    this.answer = await this.signalling.final();
    if (this.answer.status !== 200) throw new Error(`refused: ${this.answer.text}`);
    this.answeredMs = performance.now();
    this.signalling.ack(this.answer);
    this.audio.follow(this.answer.body);
    await this.heardAfter(performance.now());
  }

  /** Without an offer of ours. */
  async connectLate(): Promise<void> {
    this.signalling.invite('');
    this.answer = await this.signalling.final();
    this.signalling.ack(this.answer, this.audio.sdp());
    this.audio.follow(this.answer.body);
    await this.heardAfter(performance.now());
  }

  heardAfter(momentMs: number): Promise<void> {
    return until(() => this.audio.isHeardAfter(momentMs), 'no audio');
  }

  async echoedAfter(momentMs: number): Promise<void> {
    await this.heardAfter(momentMs);
    this.audio.press();
    return until(() => this.audio.isEchoedAfter(momentMs), 'no echo');
  }

  /** A request of ours in the dialog; a 2xx to INVITE is acknowledged. */
  async request(method: string, body = ''): Promise<WireMessage> {
    const answer = await this.signalling.request(method, this.answer, body);
    if (method === 'INVITE' && answer.status === 200) this.signalling.ack(answer);
    return answer;
  }

  /** The next request of the gateway's in this call. */
  theirs(method: string): Promise<WireMessage> {
    const { callId } = this.signalling;
    return this.peer.next(method, (message) => message.startLine.startsWith(`${method} `) && message.header('Call-ID') === callId);
  }

  has(method: string): boolean {
    const { callId } = this.signalling;
    return this.peer.received.some((message) => message.startLine.startsWith(`${method} `) && message.header('Call-ID') === callId);
  }

  close(): void {
    this.audio.close();
    for (const peer of this.#peers) peer.close();
  }
}

/** Looks every 20 ms, the rhythm of the packets, until it holds. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  otherwise: string,
  { withinMs = HANG_GUARD_MS, everyMs = 20 } = {},
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`${otherwise} within ${String(withinMs)} ms`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
