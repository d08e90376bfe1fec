import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer, type SecureContext, type TLSSocket } from 'node:tls';
import type { Clock } from '../../lib/clock.js';
import { isInBlocks } from '../../lib/address.js';
import type { Log } from '../../lib/log.js';
import type { Endpoint, FlowListener } from './flow.js';
import { readProxyHeader } from './proxy-protocol.js';
import { StreamFlow, type StreamFlowLimits } from './stream-flow.js';
import { TlsServerContexts, type TlsMaterial } from './tls-server-contexts.js';

export interface ListenerTrust {
  /** Addresses and CIDR blocks of balancers: their connections begin with a PROXY protocol header. */
  readonly proxyProtocolFrom: readonly string[];
}

export interface ListenerLimits extends StreamFlowLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerSource: number;
  /** File handles for connections, over all transports and directions; `null`: no limit. */
  readonly maxHandles: number | null;
  /** When handles are short, closes connections without a message after this time. */
  readonly strangerTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  /** Closes after this time without bytes either way. */
  readonly idleTimeoutMs: number;
}

/** Since the start. */
export interface ListenerTotals {
  readonly handshakes: number;
  readonly failedHandshakes: number;
  readonly refusedPerSource: number;
  /** Refused for lack of a file handle. */
  readonly refusedByHandles: number;
  /** Strangers closed to free handles. */
  readonly closedStrangers: number;
}

/** Share of the handles in use above which they are short. */
const SHORT_OF_HANDLES = 0.8;
const BACKLOG = 1_024;

/** Accepts TCP or TLS connections and wraps them in flows. */
export class StreamListener {
  readonly #server: Server;
  readonly #flows = new Set<StreamFlow>();
  /** Connections that may not have sent a message yet, oldest first, with their accept time. */
  readonly #strangers = new Map<StreamFlow, number>();
  readonly #perSource = new Map<string, number>();
  readonly #raw = new Set<Socket>();
  /** Accepts connections if balancers are configured; `null`: the server does. */
  readonly #front: Server | null;
  /** Client addresses of balanced connections, by address and port of the socket. */
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
    /** Handles of all listeners and outgoing connections. */
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

  /** The real address; the port is valid once `listen` resolves. */
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

  /** Including connections before their handshake. */
  get handleCount(): number {
    return this.#raw.size;
  }

  /** Applies to new handshakes; existing connections stay. Throws on unusable material, and changes nothing. */
  setTls(material: TlsMaterial): void {
    if (!(this.#server instanceof TlsServer)) return;
    const contexts = new TlsServerContexts(material);
    this.#server.setSecureContext(contexts.options);
    this.#contexts = contexts;
  }

  /** Rejects with the system error (EADDRINUSE, EACCES, …). @param fd a listening socket, in place of a new one */
  listen(fd?: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const server = this.#listening;
      server.once('error', reject);
      server.listen(
        fd === undefined ? { host: this.#local.address, port: this.#local.port, backlog: BACKLOG } : { fd, backlog: BACKLOG },
        () => {
          server.off('error', reject);
          server.on('error', (error) => this.log.error({ error: error.message }, 'sip.listener.error'));
          const bound = server.address();
          if (bound !== null && typeof bound === 'object') this.#local = { ...this.#local, port: bound.port };
          resolve();
        },
      );
    });
  }

  /** Connections come no more; those that there are stay. */
  stopAccepting(): void {
    this.#listening.close();
  }

  /** Those that are open. */
  get flows(): StreamFlow[] {
    return [...this.#flows].filter(({ isOpen }) => isOpen);
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

  /** A balancer's connection begins with its client's address; any other is its own source. */
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

  /** Counts the connection against its source before any work. */
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
   * Without a free handle the kernel closes connections unseen, the applications' too: so we reserve some. When handles are short, each new
   * connection evicts the stranger that has been silent longest.
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

/** Equal for a connection and its TLS socket. */
function socketKey(socket: Socket): string {
  return `${socket.remoteAddress ?? ''}|${String(socket.remotePort)}`;
}

/** Strips the prefix of `::ffff:192.0.2.1`, a dual-stack socket's notation of an IPv4 peer. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
