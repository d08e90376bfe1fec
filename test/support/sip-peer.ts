import { connect as connectTcp, type Socket } from 'node:net';
import { connect, type ConnectionOptions } from 'node:tls';

/** One message as it came: enough of SIP for a hand-made test peer, and nothing of the product's own parser. */
export interface WireMessage {
  readonly text: string;
  readonly startLine: string;
  readonly status: number;
  readonly body: string;
  header(name: string): string | undefined;
}

function readWire(text: string): WireMessage {
  const headEnd = text.indexOf('\r\n\r\n');
  const [startLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  return {
    text,
    startLine,
    status: Number(/^SIP\/2\.0 (\d{3})/.exec(startLine)?.[1] ?? 0),
    body: text.slice(headEnd + 4),
    header: (name) =>
      lines
        .find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
        ?.slice(name.length + 1)
        .trim(),
  };
}

/** A hand-made SIP peer over TLS or TCP: sends text, waits for messages. */
export class SipPeer {
  readonly #socket: Socket;
  readonly received: WireMessage[] = [];
  readonly #waiters: { matches: (message: WireMessage) => boolean; resolve: (message: WireMessage) => void; timer: NodeJS.Timeout }[] = [];
  #pending = '';
  #taken = new Set<WireMessage>();
  closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk.toString('latin1')));
    socket.on('close', () => (this.closed = true));
    socket.on('error', () => undefined);
  }

  static connect(port: number, ca: string, options: ConnectionOptions = {}): Promise<SipPeer> {
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

  /** Sends lines joined by CRLF, with Content-Length added. */
  send(lines: readonly string[], body = ''): void {
    this.#socket.write(`${lines.join('\r\n')}\r\nContent-Length: ${String(Buffer.byteLength(body))}\r\n\r\n${body}`);
  }

  raw(text: string): void {
    this.#socket.write(text, 'latin1');
  }

  /** The next message that matches and was not taken yet; a failed wait names what did come. */
  next(what: string, matches: (message: WireMessage) => boolean, withinMs = 5_000): Promise<WireMessage> {
    const already = this.received.find((message) => !this.#taken.has(message) && matches(message));
    if (already !== undefined) {
      this.#taken.add(already);
      return Promise.resolve(already);
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const seen = this.received.map((message) => message.startLine).join(' | ');
        reject(new Error(`no ${what} within ${String(withinMs)} ms; received: ${seen}`));
      }, withinMs);
      this.#waiters.push({ matches, resolve, timer });
    });
  }

  status(status: number, withinMs?: number): Promise<WireMessage> {
    return this.next(String(status), (message) => message.status === status, withinMs);
  }

  final(withinMs?: number): Promise<WireMessage> {
    return this.next('final response', (message) => message.status >= 200, withinMs);
  }

  request(method: string, withinMs?: number): Promise<WireMessage> {
    return this.next(method, (message) => message.startLine.startsWith(`${method} `), withinMs);
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
        this.#deliver(readWire('PONG\r\n\r\n'));
        this.#pending = this.#pending.slice(2);
        continue;
      }
      const headEnd = this.#pending.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = Number(/content-length:\s*(\d+)/i.exec(this.#pending.slice(0, headEnd))?.[1] ?? 0);
      const end = headEnd + 4 + length;
      if (this.#pending.length < end) return;
      this.#deliver(readWire(this.#pending.slice(0, end)));
      this.#pending = this.#pending.slice(end);
    }
  }

  #deliver(message: WireMessage): void {
    this.received.push(message);
    const index = this.#waiters.findIndex((waiter) => waiter.matches(message));
    if (index < 0) return;
    const [waiter] = this.#waiters.splice(index, 1);
    clearTimeout(waiter!.timer);
    this.#taken.add(message);
    waiter!.resolve(message);
  }
}
