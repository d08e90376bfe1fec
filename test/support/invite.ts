import { addressed, type WireMessage, type WirePeer } from './wire-peer.js';

let serial = 0;

/** One call's worth of hand-made SIP on a peer's connection. */
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

  #lines(method: string, cseqMethod: string, cseq: number, branch: string, to: string, answer?: WireMessage): string[] {
    // RFC 3261 §12.2.1.1: behind proxies the route set, in reverse, and the remote target.
    const routes = answer?.headers('Record-Route').reverse() ?? [];
    const target = routes.length === 0 ? this.#uri : (/<([^>]+)>/.exec(answer?.header('Contact') ?? '')?.[1] ?? this.#uri);
    return [
      `${method} ${target} SIP/2.0`,
      ...routes.map((route) => `Route: ${route}`),
      `Via: SIP/2.0/${this.#transport} 127.0.0.1:${String(this.peer.localPort)};branch=${branch};rport`,
      'Max-Forwards: 70',
      `From: ${this.from};tag=${this.#tag}`,
      `To: ${to}`,
      `Call-ID: ${this.callId}`,
      `CSeq: ${String(cseq)} ${cseqMethod}`,
    ];
  }

  get #transport(): 'TLS' | 'UDP' {
    return this.peer.transport === 'UDP' ? 'UDP' : 'TLS';
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
    const port = String(this.contactPort ?? this.peer.localPort);
    return `Contact: <sip:carrier@127.0.0.1:${port};transport=${this.#transport.toLowerCase()}>`;
  }

  invite(sdp: string, extra: readonly string[] = [], contact: string | null = this.#contact): void {
    const type = sdp === '' || extra.some((line) => /^content-type/i.test(line)) ? [] : ['Content-Type: application/sdp'];
    this.peer.send(
      [...this.#lines('INVITE', 'INVITE', this.#first, this.#branch, this.#to), ...(contact === null ? [] : [contact]), ...type, ...extra],
      sdp,
    );
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
    by.send(this.#lines('CANCEL', 'CANCEL', this.#first, this.#branch, this.#to));
  }

  /** The final answer to the INVITE; a refusal is acknowledged. */
  async final(withinMs?: number): Promise<WireMessage> {
    const answer = await this.peer.next(
      `final answer of ${this.callId}`,
      (message) =>
        message.status >= 200 && message.header('Call-ID') === this.callId && message.header('CSeq') === `${String(this.#first)} INVITE`,
      withinMs,
    );
    if (answer.status >= 300) this.peer.send(this.#lines('ACK', 'ACK', this.#first, this.#branch, answer.header('To') ?? ''));
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
    const lines = this.#lines('ACK', 'ACK', number, `${this.#branch}a${String(number)}`, answer.header('To') ?? '', answer);
    this.peer.send([...lines, ...(sdp === '' ? [] : ['Content-Type: application/sdp'])], sdp);
  }

  /** Sends a request in the dialog and resolves with its final answer; a refusal of a re-INVITE is acknowledged. */
  async request(method: string, answer: WireMessage, body = '', extra: readonly string[] = []): Promise<WireMessage> {
    this.#cseq += 1;
    const cseq = this.#cseq;
    const [branch, to] = [`${this.#branch}r${String(cseq)}`, answer.header('To') ?? ''];
    const type = body === '' || extra.some((line) => /^content-type/i.test(line)) ? [] : ['Content-Type: application/sdp'];
    this.peer.send([...this.#lines(method, method, cseq, branch, to, answer), this.#contact, ...type, ...extra], body);
    const final = await this.peer.next(
      `answer to ${method}`,
      (message) =>
        message.status >= 200 && message.header('Call-ID') === this.callId && message.header('CSeq') === `${String(cseq)} ${method}`,
    );
    if (method === 'INVITE' && final.status >= 300) this.peer.send(this.#lines('ACK', 'ACK', cseq, branch, to, answer));
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

/** Answers a request that came from the gateway with 200. */
export function answerOk(peer: WirePeer, request: WireMessage): void {
  answerWith(peer, request, '200 OK');
}

/** Answers a request that came from the gateway; a description is that of a 2xx to an INVITE. */
export function answerWith(peer: WirePeer, request: WireMessage, status: string, sdp = '', extra: readonly string[] = []): void {
  const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].flatMap((name) => request.headers(name).map((value) => `${name}: ${value}`));
  const contact = `Contact: <sip:carrier@127.0.0.1:${String(peer.localPort)};transport=tls>`;
  peer.send([`SIP/2.0 ${status}`, ...copied, ...(sdp === '' ? [] : [contact, 'Content-Type: application/sdp']), ...extra], sdp);
}
