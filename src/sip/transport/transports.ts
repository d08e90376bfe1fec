import { connect as connectTcp, isIP } from 'node:net';
import { checkServerIdentity, connect as connectTls, createSecureContext, type PeerCertificate, type SecureContext } from 'node:tls';
import { isPublicAddress } from '../../lib/address-scope.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { defaultPort } from './service-location.js';
import { errorText } from '../../lib/result.js';
import type { Endpoint, Flow, FlowListener, PeerTls, Target, TransportName } from './flow.js';
import { LocatedUdpFlow } from './located-udp-flow.js';
import { Locator, type NameResolver } from './locator.js';
import { OutgoingFlow, type Dialing, type OutgoingLimits } from './outgoing-flow.js';
import { retire, type Retired, type Retiring } from './retirement.js';
import { StreamListener, type ListenerLimits, type ListenerTotals, type ListenerTrust } from './stream-listener.js';
import { namesForAddress, namesSipDomain } from './tls-identity.js';
import type { TlsCertificate, TlsMaterial } from './tls-server-contexts.js';
import { UdpListener, type UdpPeers } from './udp-listener.js';

export interface TransportLimits extends ListenerLimits, OutgoingLimits {
  /** Upper bound of DNS TTLs. */
  readonly dnsMaxTtlMs: number;
}

/** For connections that we open. */
export interface OutgoingTls {
  /** CAs, PEM; `null`: the public ones. */
  readonly ca: string | null;
  /** Whether to verify the peer's certificate. */
  readonly verify: boolean;
  /** Where the target is an address, its certificate may have one of these names instead; `203.0.113.0/28=sip.example.com`: one of these addresses. */
  readonly names: readonly string[];
}

export interface TransportOptions {
  readonly bindAddress: string;
  /** `null`: disabled. 0: any free port (tests). */
  readonly ports: { readonly tls: number | null; readonly tcp: number | null; readonly udp: number | null };
  /** Descriptors of sockets that were opened for us, and may hold what arrived before; the others are opened here. */
  readonly sockets?: Readonly<Partial<Record<TransportName, number>>>;
  /** In place of a UDP socket of our own: another process has it. */
  readonly udp?: UdpPeers | undefined;
  readonly tls: TlsMaterial | null;
  readonly outgoingTls: OutgoingTls;
  readonly limits: TransportLimits;
  readonly trust: ListenerTrust;
  readonly resolver: NameResolver;
  readonly clock: Clock;
  readonly log: Log;
}

export interface BoundTransport {
  readonly transport: TransportName;
  readonly local: Endpoint;
}

/** Connect timeout of an attempt. */
const ATTEMPT_LIMIT_MS = 1_000;
/** Of peers with settings of their own. */
const MAX_SECURE_CONTEXTS = 200;
/** Servers that rest. */
const MAX_RESTING = 1_000;
/** Connections that peers let us use. */
const MAX_ALIASES = 10_000;
/** Pause after a failed attempt. */
const ATTEMPT_PAUSE_MS = 60_000;

/** Every SIP socket: the listeners, and the connections that we open. */
export class Transports {
  readonly #listeners: StreamListener[] = [];
  readonly #udp: UdpPeers | undefined;
  readonly #locator: Locator;
  // By transport, host, port and, if given, address and TLS settings.
  readonly #opened = new Map<string, OutgoingFlow>();
  /** Targets of recently failed attempts and when their pause ends, oldest first. */
  readonly #failed = new Map<string, number>();
  /** Servers that want no requests for now, by address and port, and until when. */
  readonly #resting = new Map<string, number>();
  /** Connections to them: they carry what they have, and nothing new. */
  readonly #left = new Set<OutgoingFlow>();
  /** Connections that peers opened and let us use, by the target that they stand for. */
  readonly #aliases = new Map<string, Flow>();
  /** The listener's certificate: peers that ask for one are shown it. */
  #own: TlsCertificate | null;
  #isClosed = false;
  /** By the id of the peer's settings, '' for our own: to read the public CAs takes longer than a handshake. Oldest first. */
  readonly #secureContexts = new Map<string, SecureContext>();

  constructor(
    private readonly options: TransportOptions,
    private readonly listener: FlowListener,
  ) {
    this.#locator = new Locator({
      resolver: options.resolver,
      clock: options.clock,
      random: Math.random,
      maxTtlMs: options.limits.dnsMaxTtlMs,
    });
    const { bindAddress, ports, tls, limits, trust, clock, log } = options;
    this.#own = tls?.certificates[0] ?? null;
    const listenOn = (transport: 'TLS' | 'TCP', port: number, material: TlsMaterial | null): void => {
      const bind = { address: bindAddress, port };
      const handles = (): number => this.#handleCount;
      this.#listeners.push(new StreamListener(transport, bind, material, listener, limits, trust, clock, log, handles));
    };
    if (ports.tls !== null && tls !== null) listenOn('TLS', ports.tls, tls);
    if (ports.tcp !== null) listenOn('TCP', ports.tcp, null);
    if (ports.udp !== null) {
      const bind = { address: bindAddress, port: ports.udp };
      this.#udp = options.udp ?? new UdpListener(bind, listener, limits.maxHeadBytes + limits.maxBodyBytes, log);
    }
  }

  /** Rejects with the system error, with `port` and `address`. */
  async listen(): Promise<void> {
    for (const listener of this.#all) await listener.listen(this.options.sockets?.[listener.transport]);
  }

  /** Replaces the certificates for new connections. Throws on unusable ones, and changes nothing. */
  setTls(material: TlsMaterial): void {
    for (const listener of this.#listeners) listener.setTls(material);
    [this.#own] = material.certificates;
    this.#secureContexts.delete('');
  }

  /** In the order TLS, TCP, UDP. */
  get bound(): BoundTransport[] {
    return this.#all.map(({ transport, local }) => ({ transport, local }));
  }

  get #all(): (StreamListener | UdpPeers)[] {
    return this.#udp === undefined ? this.#listeners : [...this.#listeners, this.#udp];
  }

  /** Sum over all listeners. */
  get listenerTotals(): ListenerTotals {
    const sum = { handshakes: 0, failedHandshakes: 0, refusedPerSource: 0, refusedByHandles: 0, closedStrangers: 0 };
    for (const listener of this.#listeners) {
      sum.handshakes += listener.totals.handshakes;
      sum.failedHandshakes += listener.totals.failedHandshakes;
      sum.refusedPerSource += listener.totals.refusedPerSource;
      sum.refusedByHandles += listener.totals.refusedByHandles;
      sum.closedStrangers += listener.totals.closedStrangers;
    }
    return sum;
  }

  get connectionCount(): number {
    let count = this.#opened.size + this.#left.size;
    for (const listener of this.#listeners) count += listener.connectionCount;
    return count;
  }

  get #handleCount(): number {
    let count = this.#opened.size + this.#left.size;
    for (const listener of this.#listeners) count += listener.handleCount;
    return count;
  }

  /**
   * A flow to the target: an existing connection (RFC 5923), or a new one that may still fail and then closes. `undefined`: transport
   * disabled, too many connections, or an attempt failed recently.
   */
  open(target: Target): Flow | undefined {
    const { transport } = target;
    if (this.#isClosed) return undefined;
    if (transport === 'UDP') return this.#openUdp(target);
    const key = keyOf(target);
    const known = this.#opened.get(key);
    if (known?.isOpen === true) {
      if (target.isKept === true) known.keep();
      return known;
    }
    // The peer opened it: there is nothing to connect.
    const alias = this.#aliases.get(aliasKeyOf(target));
    if (alias?.isOpen === true) return alias;
    if (transport === 'TLS' && this.#contextOf(target.tls) === undefined) return undefined;
    const bound = this.#listeners.find((listener) => listener.transport === transport)?.local;
    const { bindAddress, limits, clock, log } = this.options;
    const isAttempt = target.isAttempt === true;
    if (isAttempt && (bound === undefined || this.#failedLately(key))) return undefined;
    if (this.#opened.size + this.#left.size >= limits.maxConnections) {
      log.warn({ host: target.host, limit: limits.maxConnections }, 'sip.connection.not_opened');
      return undefined;
    }
    const local = bound ?? { address: bindAddress, port: 0 };
    const flow: OutgoingFlow = new OutgoingFlow({ ...target, transport }, local, {
      locate: (wanted) => this.#locate(wanted),
      connect: (endpoint) => this.#connect(endpoint, target),
      listener: {
        onMessage: (from, text) => this.listener.onMessage(from, text),
        onSpoiled: (from, problem) => this.listener.onSpoiled(from, problem),
        onClose: (closed) => {
          if (this.#opened.get(key) === flow) this.#opened.delete(key);
          this.#left.delete(flow);
          if (isAttempt && !flow.wasConnected) this.#failed.set(key, clock.nowMs() + ATTEMPT_PAUSE_MS);
          this.listener.onClose(closed);
        },
      },
      limits: isAttempt ? { ...limits, connectTimeoutMs: Math.min(limits.connectTimeoutMs, ATTEMPT_LIMIT_MS) } : limits,
      clock,
      log,
    });
    this.#opened.set(key, flow);
    if (target.isKept === true) flow.keep();
    return flow;
  }

  /**
   * RFC 5923 §6: a peer lets us use its connection for requests to the sent-by address of its Via. It may, if its verified certificate has
   * that name, or the connection comes from that address.
   */
  alias(flow: Flow, { host, port }: { readonly host: string; readonly port: number | null }): void {
    const identity = flow.tlsIdentity ?? '';
    const isSameHost = isIP(host) === 0 ? identity.split(', ').includes(`DNS:${host.toLowerCase()}`) : flow.remote.address === host;
    if (identity === '' || !isSameHost) return;
    const key = aliasKeyOf({ transport: flow.transport, host, port });
    this.#aliases.delete(key);
    this.#aliases.set(key, flow);
    for (const [oldest, known] of this.#aliases) {
      if (known.isOpen && this.#aliases.size <= MAX_ALIASES) break;
      this.#aliases.delete(oldest);
    }
  }

  /**
   * A flow to a server of the target that was not tried and does not rest (RFC 3263 §4.3); `undefined`: there is none. The server at `from`
   * rests for `restMs` then. Rejects as locating does.
   */
  async openNext(target: Target, tried: readonly Endpoint[], from: Flow, restMs: number): Promise<Flow | undefined> {
    const endpoints = await this.#locate(target);
    const next = endpoints.find((endpoint) => !this.#rests(endpoint) && !tried.some((one) => serverKey(one) === serverKey(endpoint)));
    if (next === undefined) return undefined;
    if (restMs > 0) this.#rest(target, from, restMs);
    return this.open({ ...target, ...next });
  }

  /** Its other servers, if it has any, go first. */
  async #locate(target: Target): Promise<Endpoint[]> {
    const endpoints = (await this.#locator.locate(target)).filter((one) => isAllowed(target, one));
    if (endpoints.length === 0) throw new Error(`${target.host} is at no public address, as it has to be`);
    return [...endpoints.filter((one) => !this.#rests(one)), ...endpoints.filter((one) => this.#rests(one))];
  }

  #rests(endpoint: Endpoint): boolean {
    return (this.#resting.get(serverKey(endpoint)) ?? -Infinity) > this.options.clock.nowMs();
  }

  #rest(target: Target, from: Flow, restMs: number): void {
    const server = serverKey(from.remote);
    this.#resting.delete(server);
    this.#resting.set(server, this.options.clock.nowMs() + restMs);
    const oldest = this.#resting.size > MAX_RESTING ? this.#resting.keys().next().value : undefined;
    if (oldest !== undefined) this.#resting.delete(oldest);
    const key = keyOf(target);
    const known = this.#opened.get(key);
    if (known === undefined || known !== from) return;
    this.#opened.delete(key);
    this.#left.add(known);
  }

  /** Before `close`: ends each connection once no transaction is open on it. New ones are for the next process. */
  retire(open: Pick<Retiring, 'transactions' | 'unacknowledged'>, limitMs: number): Promise<Retired> {
    const listeners = this.#listeners;
    for (const listener of listeners) listener.stopAccepting();
    const sum = (of: (listener: StreamListener) => number): number => listeners.reduce((total, listener) => total + of(listener), 0);
    return retire(
      {
        flows: () => [...listeners.flatMap(({ flows }) => flows), ...this.#opened.values(), ...this.#left],
        handshakes: () => sum(({ handleCount, connectionCount }) => handleCount - connectionCount),
        ...open,
      },
      limitMs,
      this.options.clock,
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const flow of [...this.#opened.values(), ...this.#left]) flow.close();
    await Promise.all(this.#all.map((listener) => listener.close()));
  }

  #failedLately(key: string): boolean {
    const nowMs = this.options.clock.nowMs();
    for (const [oldest, untilMs] of this.#failed) {
      if (untilMs > nowMs) break;
      this.#failed.delete(oldest);
    }
    return this.#failed.has(key);
  }

  #openUdp(target: Target): Flow | undefined {
    const udp = this.#udp;
    if (udp === undefined || isIP(target.host) !== 0) {
      const endpoint = { address: target.host, port: target.port ?? defaultPort('UDP') };
      return isAllowed(target, endpoint) ? udp?.flowTo(endpoint) : undefined;
    }
    return new LocatedUdpFlow(target, udp, (wanted) => this.#locate(wanted), this.listener, this.options.log);
  }

  #connect({ address, port }: Endpoint, target: Target): ReturnType<Dialing['connect']> {
    if (target.transport !== 'TLS') return { socket: connectTcp({ host: address, port }), ready: 'connect' };
    const { verify, names: carriers } = this.options.outgoingTls;
    const { host, tls } = target;
    const usual = isIP(host) === 0 ? [host] : [host, ...namesForAddress(carriers, host)];
    const names = tls === undefined || tls.names.length === 0 ? usual : tls.names;
    const socket = connectTls({
      host: address,
      port,
      secureContext: this.#contextOf(tls),
      // Who names a CA or a name means it.
      rejectUnauthorized: verify || tls !== undefined,
      // RFC 6066 §3: a name, never an address.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // RFC 5922 §4: the URI's domain, whatever server SRV named. Accepts wildcards, against §7.2: carriers use them.
      checkServerIdentity: (_host, certificate) => {
        const problems = names.map((name) => (namesSipDomain(certificate, name) ? undefined : checkServerIdentity(name, certificate)));
        return problems.includes(undefined) ? undefined : problems[0];
      },
    });
    let shown: PeerCertificate | null = null;
    // Before Node.js checks it: afterwards the socket is destroyed, and its certificate gone.
    socket.prependListener('secure', () => (shown = socket.getPeerCertificate()));
    return { socket, ready: 'secureConnect', shown: () => shown };
  }

  /** `undefined`: the peer's settings are unusable. */
  #contextOf(tls: PeerTls | undefined): SecureContext | undefined {
    const id = tls?.id ?? '';
    const known = this.#secureContexts.get(id);
    if (known !== undefined) return known;
    const ca = tls?.ca ?? this.options.outgoingTls.ca;
    const own = tls === undefined ? this.#own : tls.own && { cert: tls.own.certificate, key: tls.own.key };
    try {
      const context = createSecureContext({
        minVersion: 'TLSv1.2',
        ...(ca === null ? {} : { ca }),
        ...own,
      });
      this.#secureContexts.set(id, context);
      const oldest = this.#secureContexts.size > MAX_SECURE_CONTEXTS ? this.#secureContexts.keys().next().value : undefined;
      if (oldest !== undefined) this.#secureContexts.delete(oldest);
      return context;
    } catch (error) {
      this.options.log.error({ error: errorText(error) }, 'sip.tls.settings_unusable');
      return undefined;
    }
  }
}

/** Requests of one key share a connection. */
function keyOf({ transport, host, port, address, tls, isPublicOnly = false }: Target): string {
  return [transport, host, port ?? '', address ?? '', tls?.id ?? '', isPublicOnly ? 'public' : ''].join('|');
}

function isAllowed({ isPublicOnly = false }: Target, { address }: Endpoint): boolean {
  return !isPublicOnly || isPublicAddress(address);
}

/** RFC 3261 §18.1.1: a sent-by without a port means the default one. */
function aliasKeyOf(target: Target): string {
  return keyOf({ ...target, port: target.port ?? defaultPort(target.transport), isPublicOnly: false });
}

function serverKey({ address, port }: Endpoint): string {
  return `${address}|${String(port)}`;
}
