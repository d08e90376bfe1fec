import { connect as connectTcp, type Socket, type TcpSocketConnectOpts } from 'node:net';
import { connect, TLSSocket, type ConnectionOptions } from 'node:tls';
import { readWire, WirePeer } from './wire-peer.js';

export type { WireMessage } from './wire-peer.js';

/** A hand-made SIP peer over TLS or TCP: sends text, waits for messages. */
export class SipPeer extends WirePeer {
  readonly #socket: Socket;
  #pending = '';
  readonly transport: 'TCP' | 'TLS';
  closed = false;
  /** What broke the connection. */
  error: Error | undefined;

  private constructor(socket: Socket) {
    super();
    this.#socket = socket;
    this.transport = socket instanceof TLSSocket ? 'TLS' : 'TCP';
    socket.on('data', (chunk: Buffer) => this.#onData(chunk.toString('latin1')));
    socket.on('close', () => (this.closed = true));
    socket.on('error', (error) => (this.error = error));
  }

  static connect(port: number, ca: string, options: ConnectionOptions & Pick<TcpSocketConnectOpts, 'localAddress'> = {}): Promise<SipPeer> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost', ...options });
      socket.once('secureConnect', () => resolve(new SipPeer(socket)));
      socket.once('error', reject);
    });
  }

  static connectTcp(port: number, host = '127.0.0.1'): Promise<SipPeer> {
    return new Promise((resolve, reject) => {
      const socket = connectTcp({ host, port });
      socket.once('connect', () => resolve(new SipPeer(socket)));
      socket.once('error', reject);
    });
  }

  /** One that came to a listener of the test's. */
  static accepted(socket: Socket): SipPeer {
    return new SipPeer(socket);
  }

  get localPort(): number {
    return this.#socket.localPort ?? 0;
  }

  raw(text: string): void {
    this.#socket.write(text, 'latin1');
  }

  /** What it sends is one write: the other side reads it at once. */
  together<T>(send: () => T): T {
    this.#socket.cork();
    const sent = send();
    this.#socket.uncork();
    return sent;
  }

  /** Resolves when the other side has closed the connection. */
  whenClosed(): Promise<void> {
    if (this.closed) return Promise.resolve();
    return new Promise((resolve) => this.#socket.once('close', () => resolve()));
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(text: string): void {
    this.#pending += text;
    for (;;) {
      if (this.#pending.startsWith('\r\n')) {
        this.deliver(readWire('PONG\r\n\r\n'));
        this.#pending = this.#pending.slice(2);
        continue;
      }
      const headEnd = this.#pending.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = Number(/content-length:\s*(\d+)/i.exec(this.#pending.slice(0, headEnd))?.[1] ?? 0);
      const end = headEnd + 4 + length;
      if (this.#pending.length < end) return;
      this.deliver(readWire(this.#pending.slice(0, end)));
      this.#pending = this.#pending.slice(end);
    }
  }
}
