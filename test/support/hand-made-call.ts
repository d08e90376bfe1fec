import { contactOf, requestLines, typeOf } from './sip-message.js';
import { addressed, type WireMessage, type WirePeer } from './wire-peer.js';

let serial = 0;

/** A caller's side of one call, on a peer's connection. */
export class HandMadeCall {
  readonly callId: string;
  readonly #tag: string;
  #branch: string;
  readonly #number: string;
  /** Of the INVITE. */
  #first = 1;
  #cseq = 1;

  constructor(
    private peer: WirePeer,
    number: string,
    private readonly from = '"Carrier" <sip:+15550100999@carrier>',
  ) {
    serial += 1;
    this.callId = `hand-${String(process.pid)}-${String(serial)}@carrier`;
    this.#tag = `t${String(serial)}`;
    this.#branch = `z9hG4bKhand${String(process.pid)}x${String(serial)}`;
    this.#number = number;
  }

  /** A request in the INVITE's transaction or, with the answer, in its dialog. */
  #lines(method: string, cseq: number, branch: string, to: string, answer?: WireMessage): string[] {
    // RFC 3261 §12.2.1.1: behind proxies the route set, in reverse, and the remote target.
    const routes = answer?.headers('Record-Route').reverse() ?? [];
    const uri = routes.length === 0 ? this.#uri : (/<([^>]+)>/.exec(answer?.header('Contact') ?? '')?.[1] ?? this.#uri);
    const from = `${this.from};tag=${this.#tag}`;
    return requestLines(this.peer, { method, uri, branch, from, to, callId: this.callId, cseq, routes });
  }

  get #uri(): string {
    return this.#number.includes(':') ? this.#number : `sip:${this.#number}@127.0.0.1`;
  }

  get #to(): string {
    return `<${this.#uri}>`;
  }

  /** Port of our Contact; `null`: that of our connection, where nobody listens. */
  contactPort: number | null = null;

  get #contact(): string {
    return `Contact: ${contactOf(this.peer, this.contactPort ?? undefined)}`;
  }

  invite(sdp: string, extra: readonly string[] = [], contact: string | null = this.#contact): void {
    const lines = this.#lines('INVITE', this.#first, this.#branch, this.#to);
    this.peer.send([...lines, ...(contact === null ? [] : [contact]), ...typeOf({ body: sdp, extra }), ...extra], sdp);
  }

  /** The next INVITE is another attempt. */
  again(): void {
    this.#branch += 'n';
  }

  /** The next INVITE follows a refusal, as after a challenge (RFC 3261 §8.1.3.5): the same Call-ID and tag, the next CSeq. */
  next(): void {
    this.again();
    this.#first = this.#cseq += 1;
  }

  /** @param by another connection than the INVITE's */
  cancel(by: WirePeer = this.peer): void {
    by.send(this.#lines('CANCEL', this.#first, this.#branch, this.#to));
  }

  /** The final answer to the INVITE; a refusal is acknowledged. */
  async final(withinMs?: number): Promise<WireMessage> {
    const answer = await this.peer.next(
      `final answer of ${this.callId}`,
      (message) =>
        message.status >= 200 && message.header('Call-ID') === this.callId && message.header('CSeq') === `${String(this.#first)} INVITE`,
      withinMs,
    );
    if (answer.status >= 300) this.peer.send(this.#lines('ACK', this.#first, this.#branch, answer.header('To') ?? ''));
    return answer;
  }

  /** A request out of any dialog, as the carrier's health check is. */
  probe(method: string): Promise<WireMessage> {
    return this.request(method, addressed(this.#to));
  }

  /** The INVITE's call, answered and acknowledged: its 200. */
  async answered(sdp: string, extra: readonly string[] = []): Promise<WireMessage> {
    this.invite(sdp, extra);
    const ok = await this.final();
    if (ok.status !== 200) throw new Error(`${ok.startLine}: ${ok.header('Warning') ?? ''}`);
    this.ack(ok);
    return ok;
  }

  /** @param sdp the answer to an offer in the 200 */
  ack(answer: WireMessage, sdp = ''): void {
    const number = Number((answer.header('CSeq') ?? '1').split(' ')[0]);
    const lines = this.#lines('ACK', number, `${this.#branch}a${String(number)}`, answer.header('To') ?? '', answer);
    this.peer.send([...lines, ...typeOf({ body: sdp })], sdp);
  }

  /** Sends a request in the dialog and resolves with its final answer; a refusal of a re-INVITE is acknowledged. */
  async request(method: string, answer: WireMessage, body = '', extra: readonly string[] = []): Promise<WireMessage> {
    this.#cseq += 1;
    const cseq = this.#cseq;
    const [branch, to] = [`${this.#branch}r${String(cseq)}`, answer.header('To') ?? ''];
    const lines = this.#lines(method, cseq, branch, to, answer);
    this.peer.send([...lines, this.#contact, ...typeOf({ body, extra }), ...extra], body);
    const final = await this.peer.next(
      `answer to ${method}`,
      (message) =>
        message.status >= 200 && message.header('Call-ID') === this.callId && message.header('CSeq') === `${String(cseq)} ${method}`,
    );
    if (method === 'INVITE' && final.status >= 300) this.peer.send(this.#lines('ACK', cseq, branch, to, answer));
    return final;
  }

  /** The carrier hangs up. */
  async hangUp(answer: WireMessage): Promise<void> {
    const bye = await this.request('BYE', answer);
    if (bye.status !== 200) throw new Error(`BYE: ${bye.startLine}`);
  }

  /** The call goes on over another connection. */
  over(peer: WirePeer): this {
    this.peer = peer;
    return this;
  }

  /** The gateway's next request of this call. */
  incoming(method: string): Promise<WireMessage> {
    const isIt = (message: WireMessage): boolean => message.startLine.startsWith(`${method} `) && message.header('Call-ID') === this.callId;
    return this.peer.next(`${method} of ${this.callId}`, isIt);
  }
}
