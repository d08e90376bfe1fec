import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import type { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

/** What the carrier knows of a call that it has sent. */
export class CarrierCall {
  readonly signalling: HandMadeCall;
  /** Final answers to its INVITE; a second one would be a fault. */
  readonly finals: WireMessage[] = [];
  hasRung = false;
  isOver = false;

  constructor(
    peer: SipPeer,
    number: string,
    readonly isLate: boolean,
  ) {
    this.signalling = new HandMadeCall(peer, number);
  }

  get isAnswered(): boolean {
    return this.finals[0]?.status === 200;
  }

  get isTalking(): boolean {
    return this.isAnswered && !this.isOver;
  }
}

/** A carrier that follows the protocol: it acknowledges, answers what the gateway asks in its calls, and opens another connection when one breaks. */
export class Carrier {
  readonly calls: CarrierCall[] = [];
  #peer: SipPeer | null = null;

  constructor(private readonly world: World) {}

  async connect(): Promise<void> {
    const peer = await this.world.carrier().catch(() => null);
    this.#peer = peer;
    if (peer === null) return;
    peer.onMessage = (message) => this.#take(peer, message);
  }

  /** Its connection breaks. */
  drop(): void {
    this.#peer?.close();
    this.#peer = null;
  }

  async call(number: string, isLate: boolean): Promise<void> {
    const peer = await this.#connected();
    if (peer === null) return;
    const call = new CarrierCall(peer, number, isLate);
    this.calls.push(call);
    call.signalling.invite(isLate ? '' : offerSdp());
  }

  async cancel(call: CarrierCall): Promise<void> {
    const peer = await this.#connected();
    // A CANCEL follows a provisional response (RFC 3261 §9.1).
    if (peer !== null && call.hasRung && call.finals.length === 0) call.signalling.cancel(peer);
  }

  async hangUp(call: CarrierCall): Promise<void> {
    const [ok] = call.finals;
    const peer = await this.#connected();
    if (!call.isTalking || ok === undefined || peer === null) return;
    call.isOver = true;
    // It gives up after 64·T1 (RFC 3261 §17.1.2.2), as when the connection breaks.
    void call.signalling
      .over(peer)
      .request('BYE', ok)
      .catch(() => undefined);
  }

  /** A re-INVITE; one that is refused changes nothing. */
  async change(call: CarrierCall, direction: 'sendonly' | 'sendrecv'): Promise<void> {
    const [ok] = call.finals;
    const peer = await this.#connected();
    if (!call.isTalking || ok === undefined || peer === null) return;
    void call.signalling
      .over(peer)
      .request('INVITE', ok, offerSdp({ direction }))
      .then((answer) => {
        if (answer.status === 200) call.signalling.ack(answer);
      })
      .catch(() => undefined);
  }

  async #connected(): Promise<SipPeer | null> {
    if (this.#peer === null || this.#peer.closed) await this.connect();
    return this.#peer;
  }

  #take(peer: SipPeer, message: WireMessage): void {
    const call = this.calls.find(({ signalling }) => signalling.callId === message.header('Call-ID'));
    if (message.status === 0) return this.#answer(peer, message, call);
    if (call === undefined || message.header('CSeq') !== '1 INVITE') return;
    if (message.status < 200) {
      call.hasRung = true;
      return;
    }
    const isRepeated = call.finals.some(({ status }) => status === message.status);
    if (!isRepeated) call.finals.push(message);
    // Each 200 and each refusal is acknowledged, however often it comes.
    if (message.status === 200) call.signalling.over(peer).ack(message, call.isLate ? offerSdp({ payloads: '0 101' }) : '');
    else void call.signalling.over(peer).final();
  }

  #answer(peer: SipPeer, request: WireMessage, call: CarrierCall | undefined): void {
    const [method = ''] = request.startLine.split(' ');
    if (method === 'ACK') return;
    if (method === 'OPTIONS' && call === undefined) return respond(peer, request, '200 OK');
    if (call === undefined || call.isOver) return respond(peer, request, '481 Call/Transaction Does Not Exist');
    if (method === 'BYE') call.isOver = true;
    respond(peer, request, '200 OK', method === 'INVITE' ? { body: offerSdp({ payloads: '0 101' }) } : {});
  }
}
