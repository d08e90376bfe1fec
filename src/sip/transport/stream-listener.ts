import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer, type SecureContext, type TLSSocket } from 'node:tls';
import type { Clock } from '../../lib/clock.js';
import { isInBlocks } from '../../lib/address.js';
import type { Log } from '../../lib/log.js';
import type { Endpoint, FlowListener } from './flow.js';
import { readProxyHeader } from './proxy-protocol.js';
import { StreamFlow, type StreamFlowLimits } from './stream-flow.js';
import { TlsServerContexts, type TlsMaterial } from './tls-server-contexts.js';

/** Who may tell where a connection comes from. */
export interface ListenerTrust {
  /** Addresses and blocks of balancers: their connections begin with a PROXY protocol header. */
  readonly proxyProtocolFrom: readonly string[];
}

export interface ListenerLimits extends StreamFlowLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerSource: number;
  /** Connections that there are file handles for, of all transports and directions together; `null`: no limit. */
  readonly maxHandles: number | null;
  /** A connection without a message for so long is closed when handles are short. */
  readonly strangerTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  /** No bytes either way for so long: closed. */
  readonly idleTimeoutMs: number;
}

/** Since the start. */
export interface ListenerTotals {
  readonly handshakes: number;
  readonly failedHandshakes: number;
  readonly refusedPerSource: number;
  /** No file handle was left for them. */
  readonly refusedByHandles: number;
  /** Strangers that had to make room. */
  readonly closedStrangers: number;
}

/** The share of the handles above which they are short. */
const SHORT_OF_HANDLES = 0.8;

/** Accepts TCP or TLS connections and makes flows of them. */
export class StreamListener {
  readonly #server: Server;
  readonly #flows = new Set<StreamFlow>();
  /** Connections that may have said nothing yet, the oldest first, and since when they are here. */
  readonly #strangers = new Map<StreamFlow, number>();
  readonly #perSource = new Map<string, number>();
  readonly #raw = new Set<Socket>();
  /** Takes the connections when balancers are among them; `null`: the server does. */
  readonly #front: Server | null;
  /** Where a balancer's connections come from, by their address and port here. */
  readonly #origins = new Map<string, Endpoint>();
  #local: Endpoint;
  #contexts: TlsServerContexts | undefined;
  readonly #totals = { handshakes: 0, failedHandshakes: 0, refusedPerSource: 0, refusedByHandles: 0, closedStrangers: 0 };

  constructor(
    readonly transport: 'TLS' | 'TCP',
    bind: Endpoint,
    material: TlsMaterial | null,
    private readonly listener: FlowListener,
    private readonly limits: ListenerLimits,
    private readonly trust: ListenerTrust,
    private readonly clock: Clock,
    private readonly log: Log,
    /** Handles of all listeners and of outgoing connections. */
    private readonly handlesInUse: () => number,
  ) {
    this.#local = bind;
    this.#server = material === null ? createTcpServer((socket) => this.#adopt(socket)) : this.#createTls(material);
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      this.#totals.handshakes += 1;
      this.#adopt(socket);
    });
    this.#server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.#totals.failedHandshakes += 1;
      this.log.info({ peer: socket.remoteAddress ?? '', error: error.message }, 'sip.tls.handshake_failed');
      socket.destroy();
    });
    const isBehindBalancers = trust.proxyProtocolFrom.length > 0;
    this.#front = isBehindBalancers ? createTcpServer((socket) => this.#receive(socket)) : null;
    if (!isBehindBalancers) this.#server.on('connection', (socket: Socket) => this.#admit(socket, socket.remoteAddress ?? ''));
    this.#listening.maxConnections = limits.maxConnections;
  }

  /** Where it listens; the port is the real one once `listen` has resolved. */
  get local(): Endpoint {
    return this.#local;
  }

  get #listening(): Server {
    return this.#front ?? this.#server;
  }

  get totals(): ListenerTotals {
    return this.#totals;
  }

  get connectionCount(): number {
    return this.#flows.size;
  }

  /** Those included that have not shaken hands. */
  get handleCount(): number {
    return this.#raw.size;
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
      const server = this.#listening;
      server.once('error', reject);
      server.listen({ host: this.#local.address, port: this.#local.port, backlog: 1_024 }, () => {
        server.off('error', reject);
        server.on('error', (error) => this.log.error({ error: error.message }, 'sip.listener.error'));
        const bound = server.address();
        if (bound !== null && typeof bound === 'object') this.#local = { ...this.#local, port: bound.port };
        resolve();
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#listening.close(() => resolve());
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

  /** A balancer's connection says first where it comes from; everybody else's is what it is. */
  #receive(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? '');
    if (!isInBlocks(this.trust.proxyProtocolFrom, address)) return this.#handOn(socket, address);
    socket.on('error', () => socket.destroy());
    this.#raw.add(socket);
    socket.once('close', () => this.#raw.delete(socket));
    const cancel = this.clock.setTimer(this.limits.handshakeTimeoutMs, () => socket.destroy());
    socket.once('close', cancel);
    readProxyHeader(socket, (origin) => {
      cancel();
      if (origin === null) {
        this.log.warn({ peer: address }, 'sip.proxy_protocol.no_header');
        socket.destroy();
        return;
      }
      if (origin !== 'itself') {
        const key = socketKey(socket);
        this.#origins.set(key, origin);
        socket.once('close', () => this.#origins.delete(key));
      }
      this.#handOn(socket, origin === 'itself' ? address : origin.address);
    });
  }

  #handOn(socket: Socket, source: string): void {
    this.#admit(socket, source);
    if (!socket.destroyed) this.#server.emit('connection', socket);
  }

  /** Counts the connection against its source before any work is done for it. */
  #admit(socket: Socket, source: string): void {
    if (!this.#hasHandleFor(source)) {
      this.#totals.refusedByHandles += 1;
      socket.destroy();
      return;
    }
    const count = (this.#perSource.get(source) ?? 0) + 1;
    if (count > this.limits.maxConnectionsPerSource) {
      this.#totals.refusedPerSource += 1;
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

  /**
   * Without a handle the kernel's connections are closed unseen, and the applications' too: so some are kept back. When handles are short, each new
   * connection takes the place of the stranger that has been silent for longest.
   */
  #hasHandleFor(source: string): boolean {
    const { maxHandles } = this.limits;
    const inUse = this.handlesInUse();
    if (maxHandles === null || inUse < maxHandles * SHORT_OF_HANDLES) return true;
    const stranger = this.#oldestStranger();
    if (stranger !== undefined) {
      this.#totals.closedStrangers += 1;
      stranger.close();
    }
    const isRefused = inUse >= maxHandles && stranger === undefined;
    this.log.warn(
      { peer: source, connections: inUse, limit: maxHandles, closed: stranger?.remote.address, is_refused: isRefused },
      'sip.handles.short',
    );
    return !isRefused;
  }

  #oldestStranger(): StreamFlow | undefined {
    for (const [flow, sinceMs] of this.#strangers) {
      if (flow.isOpen && !flow.hasSpoken) return this.clock.nowMs() - sinceMs >= this.limits.strangerTimeoutMs ? flow : undefined;
      this.#strangers.delete(flow);
    }
    return undefined;
  }

  #adopt(socket: Socket): void {
    if (socket.destroyed || socket.remoteAddress === undefined || socket.remotePort === undefined) return;
    const remote = this.#origins.get(socketKey(socket)) ?? { address: plainAddress(socket.remoteAddress), port: socket.remotePort };
    const flow = new StreamFlow(socket, this.transport, this.#local, remote, this.listener, this.limits, this.clock);
    this.#flows.add(flow);
    this.#strangers.set(flow, this.clock.nowMs());
    socket.setTimeout(this.limits.idleTimeoutMs, () => flow.close());
    socket.once('close', () => {
      this.#flows.delete(flow);
      this.#strangers.delete(flow);
    });
  }
}

/** The same key for a connection and for the TLS socket on it. */
function socketKey(socket: Socket): string {
  return `${socket.remoteAddress ?? ''}|${String(socket.remotePort)}`;
}

/** `::ffff:192.0.2.1`, as a dual-stack socket names an IPv4 peer, without the prefix. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
