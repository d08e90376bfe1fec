import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { encodeFrame, FrameDecoder } from '../../src/sip-server/control-protocol.js';
import { newUuid } from '../../src/lib/ids.js';

const META = '300|tls|203.0.113.7|5061|09:00:00.000000';

/** A message that an application wants sent. */
export interface AppFrame {
  readonly id: string;
  readonly transaction: string;
  readonly dialog: string;
  readonly text: string;
}

/** The control port of a drachtio-server, written by hand: says what the test says, over the connection that there is now. */
export class HandMadeServer {
  /** Everything that the application wanted sent, on whatever connection. */
  readonly frames: (AppFrame & { readonly connection: number })[] = [];
  connections = 0;
  /** Written in the same read as the answer to `authenticate`. */
  greeting: readonly string[] = [];
  onFrame: (frame: AppFrame) => void = () => undefined;
  answersPings = true;
  pings = 0;
  #socket: Socket | undefined;

  private constructor(
    private readonly server: Server,
    private readonly version: string,
  ) {
    server.on('connection', (socket) => this.#accept(socket));
  }

  static async listen(version = 'v0.9.10'): Promise<HandMadeServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    return new HandMadeServer(server, version);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  write(...payloads: readonly string[]): void {
    this.#socket?.write(payloads.map(encodeFrame).join(''), 'latin1');
  }

  /** Any bytes, whether a frame or not. */
  writeBytes(bytes: string): void {
    this.#socket?.write(bytes, 'latin1');
  }

  /** Breaks the connection; the application dials again. */
  drop(): void {
    this.#socket?.destroy();
  }

  async close(): Promise<void> {
    this.drop();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #accept(socket: Socket): void {
    this.connections += 1;
    this.#socket = socket;
    const decoder = new FrameDecoder(1 << 20);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const item of decoder.push(chunk.toString('latin1'))) if (item.type === 'frame') this.#onPayload(item.payload);
    });
  }

  #onPayload(payload: string): void {
    const [head = ''] = payload.split('\r\n', 1);
    const [id = '', verb, transaction = '', dialog = ''] = head.split('|');
    if (verb === 'authenticate')
      this.write(`${newUuid()}|response|${id}|OK|tls/[::1]:5061|${this.version}|tls/[::1]:5061`, ...this.greeting);
    else if (verb === 'ping' && (this.pings += 1) > 0 && !this.answersPings) return;
    else if (verb !== 'sip') this.write(`${newUuid()}|response|${id}|OK`);
    else {
      const frame = { id, transaction, dialog, text: payload.slice(head.length + 2) };
      this.frames.push({ ...frame, connection: this.connections });
      this.onFrame(frame);
    }
  }
}

/** A request or response from the network, as a frame. */
export function shown(text: string, transaction: string, dialog: string): string {
  return `${newUuid()}|sip|network|${META}|${transaction}|${dialog}|\r\n${text}`;
}

/** The server has sent the application's response. */
export function sentResponse(id: string, text: string, transaction: string, dialog: string): string {
  return `${newUuid()}|response|${id}|OK|application|${META}|${transaction}|${dialog}||Msg sent:|\r\n${text}`;
}

/** The server has sent the application's request. */
export function sentRequest(id: string, text: string, transaction: string): string {
  return `${newUuid()}|response|${id}|OK|application|${META}|${transaction}|Msg sent:|\r\n${text}`;
}

export function refused(id: string, why: string): string {
  return `${newUuid()}|response|${id}|NOK|${why}`;
}
