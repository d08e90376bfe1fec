import { HANG_GUARD_MS } from './hang-guard.js';

/** One message as it came: enough of SIP for a hand-made test peer, and nothing of the product's own parser. */
export interface WireMessage {
  readonly text: string;
  readonly startLine: string;
  readonly status: number;
  readonly body: string;
  header(name: string): string | undefined;
  /** All of a name, in their order. */
  headers(name: string): string[];
}

export function readWire(text: string): WireMessage {
  const headEnd = text.indexOf('\r\n\r\n');
  const [startLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const headers = (name: string): string[] =>
    lines.filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`)).map((line) => line.slice(name.length + 1).trim());
  return {
    text,
    startLine,
    status: Number(/^SIP\/2\.0 (\d{3})/.exec(startLine)?.[1] ?? 0),
    body: text.slice(headEnd + 4),
    header: (name) => headers(name)[0],
    headers,
  };
}

/** What a request of a dialog that never was is addressed to. */
export const addressed = (to: string): WireMessage => readWire(`SIP/2.0 200 OK\r\nTo: ${to}\r\n\r\n`);

/** A hand-made SIP peer: sends text, waits for messages. */
export abstract class WirePeer {
  abstract readonly transport: 'UDP' | 'TCP' | 'TLS';
  readonly received: WireMessage[] = [];
  /** Told of each message as it comes, before those that wait for one. */
  onMessage: (message: WireMessage) => void = () => undefined;
  readonly #waiters: { matches: (message: WireMessage) => boolean; resolve: (message: WireMessage) => void; timer: NodeJS.Timeout }[] = [];
  readonly #taken = new Set<WireMessage>();

  abstract get localPort(): number;
  abstract raw(text: string): void;
  abstract close(): void;

  /** Sends lines joined by CRLF, with Content-Length added. */
  send(lines: readonly string[], body = ''): void {
    const text = `${lines.join('\r\n')}\r\nContent-Length: ${String(Buffer.byteLength(body))}\r\n\r\n${body}`;
    this.raw(Buffer.from(text).toString('latin1'));
  }

  /** The next message that matches and was not taken yet; a failed wait names what did come. */
  next(what: string, matches: (message: WireMessage) => boolean, withinMs = HANG_GUARD_MS): Promise<WireMessage> {
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

  protected deliver(message: WireMessage): void {
    this.received.push(message);
    this.onMessage(message);
    const index = this.#waiters.findIndex((waiter) => waiter.matches(message));
    if (index < 0) return;
    const [waiter] = this.#waiters.splice(index, 1);
    clearTimeout(waiter!.timer);
    this.#taken.add(message);
    waiter!.resolve(message);
  }
}
