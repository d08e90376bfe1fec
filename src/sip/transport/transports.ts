import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Endpoint, Flow, FlowListener, Target, TransportName } from './flow.js';
import { StreamFlow } from './stream-flow.js';
import { StreamListener, type ListenerLimits } from './stream-listener.js';
import type { TlsMaterial } from './tls-server-contexts.js';
import { UdpListener } from './udp-listener.js';

export interface TransportOptions {
  readonly bindAddress: string;
  /** `null`: this transport is off. 0: any free port (tests). */
  readonly ports: { readonly tls: number | null; readonly tcp: number | null; readonly udp: number | null };
  readonly tls: TlsMaterial | null;
  /** What connections of ours trust and whether the peer's certificate must check out. */
  readonly outgoingTls: { readonly ca: string | null; readonly verify: boolean };
  readonly limits: ListenerLimits;
  readonly clock: Clock;
  readonly log: Log;
}

export interface BoundTransport {
  readonly transport: TransportName;
  readonly local: Endpoint;
}

/** Every socket that carries SIP: the listeners, and the connections that we open ourselves. */
export class Transports {
  readonly #listeners: (StreamListener | UdpListener)[] = [];
  readonly #opened = new Set<StreamFlow>();

  constructor(
    private readonly options: TransportOptions,
    private readonly listener: FlowListener,
  ) {
    const { bindAddress, ports, tls, limits, clock, log } = options;
    if (ports.tls !== null && tls !== null) {
      this.#listeners.push(new StreamListener('TLS', { address: bindAddress, port: ports.tls }, tls, listener, limits, clock, log));
    }
    if (ports.tcp !== null) {
      this.#listeners.push(new StreamListener('TCP', { address: bindAddress, port: ports.tcp }, null, listener, limits, clock, log));
    }
    if (ports.udp !== null) {
      this.#listeners.push(
        new UdpListener({ address: bindAddress, port: ports.udp }, listener, limits.maxHeadBytes + limits.maxBodyBytes, log),
      );
    }
  }

  /** Rejects with the system's error, its `port` and `address` named. */
  async listen(): Promise<void> {
    for (const listener of this.#listeners) await listener.listen();
  }

  /** Takes other certificates into use for new connections. Throws, and changes nothing, when they cannot be used. */
  setTls(material: TlsMaterial): void {
    for (const listener of this.#listeners) if (listener instanceof StreamListener) listener.setTls(material);
  }

  /** The listeners in the order TLS, TCP, UDP. */
  get bound(): BoundTransport[] {
    return this.#listeners.map(({ transport, local }) => ({ transport, local }));
  }

  get connectionCount(): number {
    let count = this.#opened.size;
    for (const listener of this.#listeners) if (listener instanceof StreamListener) count += listener.connectionCount;
    return count;
  }

  /** A flow to the target; it may still fail to connect, and then closes. `undefined`: this transport is not enabled. */
  open(target: Target): Flow | undefined {
    if (target.transport === 'UDP') {
      const udp = this.#listeners.find((candidate) => candidate instanceof UdpListener);
      return udp?.flowTo({ address: target.host, port: target.port });
    }
    const remote: Endpoint = { address: target.host, port: target.port };
    const socket = target.transport === 'TCP' ? connectTcp({ host: target.host, port: target.port }) : this.#connectTls(target);
    const local = this.#listeners.find(({ transport }) => transport === target.transport)?.local ?? {
      address: this.options.bindAddress,
      port: 0,
    };
    const flow = new StreamFlow(socket, target.transport, local, remote, this.listener, this.options.limits, this.options.clock);
    this.#opened.add(flow);
    socket.once('close', () => this.#opened.delete(flow));
    return flow;
  }

  async close(): Promise<void> {
    for (const flow of this.#opened) flow.close();
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }

  #connectTls(target: Target): ReturnType<typeof connectTls> {
    const { ca, verify } = this.options.outgoingTls;
    return connectTls({
      host: target.host,
      port: target.port,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: verify,
      ...(ca === null ? {} : { ca }),
      // RFC 6066 §3: a name, never an address.
      ...(isIP(target.host) === 0 ? { servername: target.host } : {}),
    });
  }
}
