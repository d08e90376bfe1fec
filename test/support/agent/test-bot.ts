import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { Arrivals } from '../arrivals.js';
import { faultsFromAgent, faultsToAgent } from './message-schema.js';

export interface BotMessage {
  readonly event: string;
  readonly streamSid?: string;
  readonly [name: string]: unknown;
}

/** One call on a bot: what came, and what to say. */
export class BotCall {
  readonly messages = new Arrivals<BotMessage>();
  readonly binary = new Arrivals<Buffer>();
  readonly closed = new Arrivals<number>();
  readonly #arrivalMs = new WeakMap<BotMessage, number>();

  constructor(
    readonly socket: WebSocket,
    readonly upgrade: IncomingMessage,
    onMessage: (call: BotCall, message: BotMessage) => void,
  ) {
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) return this.binary.add(data);
      const message = JSON.parse(data.toString()) as BotMessage;
      const faults = faultsToAgent(message);
      if (faults !== '') throw new Error(`${data.toString()}: ${faults}`);
      this.#arrivalMs.set(message, performance.now());
      onMessage(this, message);
      this.messages.add(message);
    });
    socket.on('close', (code) => this.closed.add(code));
    socket.on('error', () => undefined);
  }

  get streamSid(): string {
    return this.start.streamSid ?? '';
  }

  get start(): BotMessage {
    const start = this.messages.all.find(({ event }) => event === 'start');
    if (start === undefined) throw new Error('the call has not started');
    return start;
  }

  /** The messages of one kind so far. */
  of(event: string): BotMessage[] {
    return this.messages.all.filter((message) => message.event === event);
  }

  /** The message of this kind in this place, once it has come. */
  message(event: string, index = 0): Promise<BotMessage> {
    return this.messages.until(() => this.of(event)[index]);
  }

  /** When it came, by `performance.now()`. */
  arrivalMs(message: BotMessage): number {
    return this.#arrivalMs.get(message) ?? Number.NaN;
  }

  /** The caller's audio so far, as it came. */
  get heard(): Buffer {
    return Buffer.concat(this.of('media').map((message) => payloadOf(message)));
  }

  send(message: object): void {
    const faults = faultsFromAgent(message);
    if (faults !== '') throw new Error(`${JSON.stringify(message)}: ${faults}`);
    this.socket.send(JSON.stringify(message));
  }

  say(payload: Uint8Array): void {
    this.send({ event: 'media', streamSid: this.streamSid, media: { payload: Buffer.from(payload).toString('base64') } });
  }
}

export function payloadOf(message: BotMessage): Buffer {
  return Buffer.from((message.media as { payload: string }).payload, 'base64');
}

export interface BotOptions {
  /** PEM; with it the bot speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** HTTP status of every upgrade, in place of accepting it. */
  readonly refuseWith?: number;
  readonly onMessage?: (call: BotCall, message: BotMessage) => void;
  readonly port?: number;
}

/** A voice bot on loopback, by the `ws` package's server: what its owner would write for Twilio. */
export class TestBot {
  readonly calls = new Arrivals<BotCall>();

  private constructor(
    private readonly server: Server,
    private readonly sockets: WebSocketServer,
    private readonly scheme: string,
  ) {}

  static async start(options: BotOptions = {}): Promise<TestBot> {
    const server = options.tls === undefined ? createHttpServer() : createHttpsServer(options.tls);
    const sockets = new WebSocketServer({ noServer: true });
    const bot = new TestBot(server, sockets, options.tls === undefined ? 'ws' : 'wss');
    server.on('upgrade', (request, socket, head) => {
      if (options.refuseWith !== undefined) {
        socket.end(`HTTP/1.1 ${String(options.refuseWith)} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
        return;
      }
      sockets.handleUpgrade(request, socket, head, (accepted) => {
        bot.calls.add(new BotCall(accepted, request, options.onMessage ?? (() => undefined)));
      });
    });
    server.listen(options.port ?? 0, '127.0.0.1');
    await once(server, 'listening');
    return bot;
  }

  /** Says back what it hears, as soon as it hears it. */
  static echo(options: BotOptions = {}): Promise<TestBot> {
    return TestBot.start({ ...options, onMessage: (call, message) => message.event === 'media' && call.say(payloadOf(message)) });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.scheme}://127.0.0.1:${String(this.port)}/stream`;
  }

  async stop(): Promise<void> {
    for (const client of this.sockets.clients) client.terminate();
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }
}
