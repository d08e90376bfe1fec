import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { Arrivals } from '../arrivals.js';

export interface FakeOptions {
  /** PEM; with it the server speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** HTTP status of an upgrade, in place of accepting it. */
  readonly refusal?: (upgrade: IncomingMessage) => number | null;
}

/** The WebSocket server of a provider that does not exist here: each connection is a session. */
export class FakeServer<Session> {
  readonly sessions = new Arrivals<Session>();
  readonly upgrades: IncomingMessage[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start<Session>(
    open: (socket: WebSocket, upgrade: IncomingMessage) => Session,
    options: FakeOptions = {},
  ): Promise<FakeServer<Session>> {
    const { tls, refusal = () => null } = options;
    const server = tls === undefined ? createHttpServer() : createHttpsServer(tls);
    const fake = new FakeServer<Session>(server);
    const sockets = new WebSocketServer({ noServer: true, maxPayload: 16 * 1_024 * 1_024 });
    server.on('upgrade', (request: IncomingMessage, stream, head) => {
      fake.upgrades.push(request);
      const status = refusal(request);
      if (status !== null) return void stream.end(`HTTP/1.1 ${String(status)} Refused\r\nContent-Length: 0\r\n\r\n`);
      sockets.handleUpgrade(request, stream, head, (socket) => {
        socket.on('error', () => undefined);
        fake.sessions.add(open(socket, request));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return fake;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

/** Where a session's messages go. */
interface SessionEnd {
  send(message: string | Uint8Array): void;
  close(code: number, reason: string): void;
}

interface PlayedSession {
  receive(text: string): void;
  receiveBytes?(bytes: Buffer): void;
  readonly closed: Arrivals<number>;
}

/** A provider whose sessions are played: each gets the messages of its connection, and how that ended. */
export function startSessions<Session extends PlayedSession>(
  open: (end: SessionEnd, upgrade: { readonly url: string; readonly headers: IncomingMessage['headers'] }) => Session,
  options: FakeOptions = {},
): Promise<FakeServer<Session>> {
  return FakeServer.start((socket, upgrade) => {
    const end: SessionEnd = {
      send: (message) => socket.send(message),
      close: (code, reason) => (code === 1_006 ? socket.terminate() : socket.close(code, reason)),
    };
    const session = open(end, { url: upgrade.url ?? '', headers: upgrade.headers });
    socket.on('message', (data: Buffer, isBinary: boolean) =>
      isBinary && session.receiveBytes !== undefined ? session.receiveBytes(data) : session.receive(data.toString()),
    );
    socket.on('close', (code) => session.closed.add(code));
    return session;
  }, options);
}
