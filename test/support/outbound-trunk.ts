import { once } from 'node:events';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { testCertificates } from './certificates.js';
import { PeerDialog } from './peer-dialog.js';
import { SipPeer, type WireMessage } from './sip-peer.js';
import { respond } from './sip-message.js';

/** A carrier that takes our calls: it accepts TLS connections, and the test answers by hand. */
export class OutboundTrunk {
  readonly peers: SipPeer[] = [];
  #take: ((call: TakenCall) => void) | undefined;
  readonly #waiting: ((peer: SipPeer) => void)[] = [];

  private constructor(
    private readonly server: Server,
    event: 'connection' | 'secureConnection',
  ) {
    server.on(event, (socket: Socket) => {
      const peer = SipPeer.accepted(socket);
      this.peers.push(peer);
      this.#takeFrom(peer);
      for (const take of this.#waiting.splice(0)) take(peer);
    });
  }

  /** @param more left out: its certificate is for 127.0.0.1 */
  static async open({
    onConnection,
    ...more
  }: TlsOptions & { readonly onConnection?: (socket: TLSSocket) => void } = {}): Promise<OutboundTrunk> {
    const { cert, key } = await testCertificates();
    const server = createServer({ cert, key, minVersion: 'TLSv1.2', ...more });
    if (onConnection !== undefined) server.on('secureConnection', onConnection);
    return OutboundTrunk.#listening(server, 'secureConnection');
  }

  /** One behind a proxy that speaks TLS in its place. */
  static openTcp(): Promise<OutboundTrunk> {
    return OutboundTrunk.#listening(createTcpServer(), 'connection');
  }

  static async #listening(server: Server, event: 'connection' | 'secureConnection'): Promise<OutboundTrunk> {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new OutboundTrunk(server, event);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `127.0.0.1:${String(this.port)}`;
  }

  /** The connection that the gateway opened. */
  async peer(): Promise<SipPeer> {
    const last = this.peers.filter((one) => !one.closed).at(-1);
    return last ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The next call. */
  async call(): Promise<TakenCall> {
    const peer = await this.peer();
    return new TakenCall(peer, await peer.request('INVITE'));
  }

  /** Takes every call that comes, from now on, over each connection. */
  takeAll(take: (call: TakenCall) => void): void {
    this.#take = take;
    for (const peer of this.peers) this.#takeFrom(peer);
  }

  #takeFrom(peer: SipPeer): void {
    const take = this.#take;
    if (take === undefined) return;
    peer.onMessage = (message) => {
      if (message.startLine.startsWith('INVITE ')) take(new TakenCall(peer, message));
    };
  }

  /** The called numbers of all INVITEs, in order. */
  get invited(): readonly string[] {
    return this.peers.flatMap(({ received }) => received).flatMap(({ startLine }) => /^INVITE sips?:(\+\d+)@/.exec(startLine)?.[1] ?? []);
  }

  async close(): Promise<void> {
    for (const peer of this.peers) peer.close();
    this.server.close();
    await once(this.server, 'close');
  }
}

let tags = 0;

/** A call at the carrier, which the test answers. */
export class TakenCall {
  readonly tag = `callee-${String((tags += 1))}`;

  constructor(
    readonly peer: SipPeer,
    readonly invite: WireMessage,
  ) {}

  get callId(): string {
    return this.invite.header('Call-ID') ?? '';
  }

  respond(status: string, parts: { readonly body?: string; readonly extra?: readonly string[]; readonly tag?: string } = {}): void {
    respond(this.peer, this.invite, status, { tag: this.tag, ...parts });
  }

  /** The next request of this call. */
  request(method: string): Promise<WireMessage> {
    const isOurs = (message: WireMessage): boolean =>
      message.startLine.startsWith(`${method} `) && message.header('Call-ID') === this.callId && message !== this.invite;
    return this.peer.next(`${method} of ${this.callId}`, isOurs);
  }

  /** Answers the CANCEL, and the INVITE with 487, which is acknowledged. */
  async cancelled(): Promise<WireMessage> {
    const cancel = await this.request('CANCEL');
    respond(this.peer, cancel, '200 OK', { tag: this.tag });
    this.respond('487 Request Terminated');
    await this.request('ACK');
    return cancel;
  }

  /** Resolves with the ACK to the 200. */
  async answer(sdp: string): Promise<WireMessage> {
    this.respond('200 OK', { body: sdp });
    return this.request('ACK');
  }

  get dialog(): PeerDialog {
    return PeerDialog.callee(this.peer, this.invite, this.tag);
  }
}
