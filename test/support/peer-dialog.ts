import { contactOf, requestLines, typeOf, type Parts } from './sip-message.js';
import type { WireMessage, WirePeer } from './wire-peer.js';

/** An SDP that says as much as a test of the SIP server needs. */
export function sdpOf(port: number, direction = 'sendrecv'): string {
  return `v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${String(port)} RTP/AVP 0\r\na=${direction}\r\n`;
}

export const PEER_SDP = sdpOf(41_000);

let serial = 0;
const next = (): string => `${String(process.pid)}-${String((serial += 1))}`;

/** A request out of any dialog, as it was sent. */
export class SentRequest {
  readonly lines: readonly string[];
  readonly callId: string;

  constructor(
    readonly peer: WirePeer,
    readonly method: string,
    uri: string,
    parts: Parts = {},
  ) {
    const id = next();
    this.callId = `peer-${id}@test`;
    const from = `"Peer" <sip:peer@test>;tag=p${id}`;
    this.lines = [
      ...requestLines(peer, { method, uri, branch: `z9hG4bK-${id}`, from, to: `<${uri}>`, callId: this.callId, cseq: 1 }),
      ...(parts.extra?.some((line) => line.startsWith('Contact:')) === true ? [] : [`Contact: ${contactOf(peer)}`]),
    ];
    peer.send([...this.lines, ...(parts.extra ?? []), ...typeOf(parts)], parts.body);
  }

  /** The next response to it with this status. */
  status(status: number): Promise<WireMessage> {
    return this.peer.next(
      `${String(status)} to ${this.method}`,
      (message) => message.status === status && message.header('Call-ID') === this.callId && message.header('CSeq') === `1 ${this.method}`,
    );
  }

  cancel(): void {
    this.peer.send(this.#again('CANCEL').filter((line) => !line.startsWith('Contact')));
  }

  /** The ACK to a refusal: in the INVITE's transaction. */
  acknowledgeRefusal(refusal: WireMessage): void {
    this.peer.send(this.#again('ACK').map((line) => (line.startsWith('To: ') ? `To: ${refusal.header('To') ?? ''}` : line)));
  }

  #again(method: string): string[] {
    return this.lines.map((line) => line.replace(/^INVITE /, `${method} `).replace('1 INVITE', `1 ${method}`));
  }
}

/** INVITE with an offer. */
export function invite(peer: WirePeer, user: string, parts: Parts = {}): SentRequest {
  return new SentRequest(peer, 'INVITE', `sip:${user}@127.0.0.1`, { body: PEER_SDP, ...parts });
}

/** A call or subscription as the peer has it. */
export class PeerDialog {
  #cseq: number;

  private constructor(
    readonly peer: WirePeer,
    readonly callId: string,
    private readonly local: string,
    private readonly remote: string,
    private readonly target: string,
    cseq: number,
    private readonly routes: readonly string[] = [],
  ) {
    this.#cseq = cseq;
  }

  /** The peer called, and got this 1xx or 2xx. */
  static caller(peer: WirePeer, response: WireMessage): PeerDialog {
    const [callId, local, remote] = ['Call-ID', 'From', 'To'].map((name) => response.header(name) ?? '');
    return new PeerDialog(peer, callId!, local!, remote!, uriOf(response.header('Contact')), 1);
  }

  /** The peer was called by this request, and answered with this tag. */
  static callee(peer: WirePeer, request: WireMessage, tag: string): PeerDialog {
    const [callId, local, remote] = ['Call-ID', 'To', 'From'].map((name) => request.header(name) ?? '');
    return new PeerDialog(
      peer,
      callId!,
      `${local!};tag=${tag}`,
      remote!,
      uriOf(request.header('Contact')),
      100,
      request.headers('Record-Route'),
    );
  }

  /** A request in the dialog; resolves with its final answer. An INVITE that is answered 2xx gets its ACK. */
  async ask(method: string, parts: Parts = {}): Promise<WireMessage> {
    this.#cseq += 1;
    const wanted = `${String(this.#cseq)} ${method}`;
    this.#send(method, this.#cseq, parts);
    const answer = await this.peer.next(
      `answer to ${wanted}`,
      (message) => message.status >= 200 && message.header('CSeq') === wanted && message.header('Call-ID') === this.callId,
    );
    if (method === 'INVITE' && answer.status < 300) this.acknowledge(this.#cseq);
    return answer;
  }

  acknowledge(cseq = 1, body = ''): void {
    this.#send('ACK', cseq, { body });
  }

  /** A request of the application's in this dialog. */
  request(method: string): Promise<WireMessage> {
    return this.peer.next(
      `${method} of ${this.callId}`,
      (message) => message.startLine.startsWith(`${method} `) && message.header('Call-ID') === this.callId,
    );
  }

  #send(method: string, cseq: number, parts: Parts): void {
    const { peer, local: from, remote: to, callId, routes } = this;
    const uri = this.target === '' ? 'sip:x@127.0.0.1' : this.target;
    const lines = requestLines(peer, { method, uri, branch: `z9hG4bK-${next()}`, from, to, callId, cseq, routes });
    peer.send([...lines, `Contact: ${contactOf(peer)}`, ...(parts.extra ?? []), ...typeOf(parts)], parts.body);
  }
}

/** A call that the application answers with 200; acknowledged. */
export async function answered(peer: WirePeer, user: string, parts: Parts = {}): Promise<PeerDialog> {
  const ok = await invite(peer, user, parts).status(200);
  const dialog = PeerDialog.caller(peer, ok);
  dialog.acknowledge();
  return dialog;
}

function uriOf(contact: string | undefined): string {
  return /<([^>]*)>/.exec(contact ?? '')?.[1] ?? contact ?? '';
}
