import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer, type SecureContext, type TLSSocket } from 'node:tls';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Endpoint, FlowListener } from './flow.js';
import { StreamFlow, type StreamFlowLimits } from './stream-flow.js';
import { TlsServerContexts, type TlsMaterial } from './tls-server-contexts.js';

export interface ListenerLimits extends StreamFlowLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerSource: number;
  readonly handshakeTimeoutMs: number;
  /** No bytes either way for so long: closed. */
  readonly idleTimeoutMs: number;
}

/** Accepts TCP or TLS connections and makes flows of them. */
export class StreamListener {
  readonly #server: Server;
  readonly #flows = new Set<StreamFlow>();
  readonly #perSource = new Map<string, number>();
  readonly #raw = new Set<Socket>();
  #local: Endpoint;
  #contexts: TlsServerContexts | undefined;

  constructor(
    readonly transport: 'TLS' | 'TCP',
    bind: Endpoint,
    material: TlsMaterial | null,
    private readonly listener: FlowListener,
    private readonly limits: ListenerLimits,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.#local = bind;
    this.#server = material === null ? createTcpServer((socket) => this.#adopt(socket)) : this.#createTls(material);
    this.#server.on('secureConnection', (socket: TLSSocket) => this.#adopt(socket));
    this.#server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.log.info({ peer: socket.remoteAddress ?? '', error: error.message }, 'sip.tls.handshake_failed');
      socket.destroy();
    });
    this.#server.on('connection', (socket: Socket) => this.#admit(socket));
    this.#server.maxConnections = limits.maxConnections;
  }

  /** Where it listens; the port is the real one once `listen` has resolved. */
  get local(): Endpoint {
    return this.#local;
  }

  get connectionCount(): number {
    return this.#flows.size;
  }

  /** New handshakes see the new material; connections stay as they are. Throws, and changes nothing, when it cannot be used. */
  setTls(material: TlsMaterial): void {
    if (!(this.#server instanceof TlsServer)) return;
    const contexts = new TlsServerContexts(material);
    this.#server.setSecureContext(contexts.options);
    this.#contexts = contexts;
  }

  /** Rejects with the system's error (EADDRINUSE, EACCES, …). */
  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: this.#local.address, port: this.#local.port, backlog: 1_024 }, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) => this.log.error({ error: error.message }, 'sip.listener.error'));
        const bound = this.#server.address();
        if (bound !== null && typeof bound === 'object') this.#local = { ...this.#local, port: bound.port };
        resolve();
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const flow of this.#flows) flow.close();
      for (const socket of this.#raw) socket.destroy();
    });
  }

  #createTls(material: TlsMaterial): TlsServer {
    this.#contexts = new TlsServerContexts(material);
    return createTlsServer({
      ...this.#contexts.options,
      handshakeTimeout: this.limits.handshakeTimeoutMs,
      requestCert: material.clients !== null,
      rejectUnauthorized: material.clients?.mode === 'require',
      SNICallback: (serverName, done: (error: null, context?: SecureContext) => void) => done(null, this.#contexts?.choose(serverName)),
    });
  }

  /** Counts the connection against its source before any work is done for it. */
  #admit(socket: Socket): void {
    const source = socket.remoteAddress ?? '';
    const count = (this.#perSource.get(source) ?? 0) + 1;
    if (count > this.limits.maxConnectionsPerSource) {
      this.log.warn({ peer: source, limit: this.limits.maxConnectionsPerSource }, 'sip.connection.refused_per_source_limit');
      socket.destroy();
      return;
    }
    this.#perSource.set(source, count);
    this.#raw.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.#raw.delete(socket);
      const left = (this.#perSource.get(source) ?? 1) - 1;
      if (left > 0) this.#perSource.set(source, left);
      else this.#perSource.delete(source);
    });
  }

  #adopt(socket: Socket): void {
    if (socket.destroyed || socket.remoteAddress === undefined || socket.remotePort === undefined) return;
    const remote: Endpoint = { address: plainAddress(socket.remoteAddress), port: socket.remotePort };
    const flow = new StreamFlow(socket, this.transport, this.#local, remote, this.listener, this.limits, this.clock);
    this.#flows.add(flow);
    socket.setTimeout(this.limits.idleTimeoutMs, () => flow.close());
    socket.once('close', () => this.#flows.delete(flow));
  }
}

/** `::ffff:192.0.2.1`, as a dual-stack socket names an IPv4 peer, without the prefix. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
