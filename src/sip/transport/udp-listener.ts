import { createSocket, type Socket } from 'node:dgram';
import type { Log } from '../../lib/log.js';
import type { Endpoint, Flow, FlowListener } from './flow.js';
import { plainAddress } from './stream-listener.js';

/** A UDP peer on our one socket. Never closes on its own. */
class UdpFlow implements Flow {
  readonly transport = 'UDP' as const;
  readonly reliable = false;

  constructor(
    private readonly owner: UdpPeers,
    readonly remote: Endpoint,
  ) {}

  get local(): Endpoint {
    return this.owner.local;
  }

  get isOpen(): boolean {
    return this.owner.isOpen;
  }

  get isAdmitted(): boolean {
    return this.owner.isAdmitted;
  }

  send(text: string): void {
    this.owner.send(this.remote, text);
  }

  close(): void {
    this.owner.forget(this);
  }
}

const MAX_PEERS = 10_000;

/** The peers on a UDP socket, which another process may have. */
export abstract class UdpPeers {
  readonly transport = 'UDP' as const;
  /** What `Flow.isAdmitted` is for all of them. */
  readonly isAdmitted: boolean = false;
  // One flow object a peer, so that transactions are found by flow; evicts the oldest.
  readonly #peers = new Map<string, UdpFlow>();

  constructor(protected readonly listener: FlowListener) {}

  abstract get local(): Endpoint;
  abstract get isOpen(): boolean;
  /** @param fd a bound socket, in place of a new one */
  abstract listen(fd?: number): Promise<void>;
  abstract send(remote: Endpoint, text: string): void;
  abstract close(): Promise<void>;

  flowTo(remote: Endpoint): Flow {
    const key = `${remote.address}|${String(remote.port)}`;
    let flow = this.#peers.get(key);
    if (flow === undefined) {
      flow = new UdpFlow(this, remote);
      this.#peers.set(key, flow);
      if (this.#peers.size > MAX_PEERS) {
        const oldest = this.#peers.keys().next().value;
        if (oldest !== undefined) this.#peers.delete(oldest);
      }
    }
    return flow;
  }

  forget(flow: Flow): void {
    this.#peers.delete(`${flow.remote.address}|${String(flow.remote.port)}`);
    this.listener.onClose(flow);
  }
}

export class UdpListener extends UdpPeers {
  readonly #socket: Socket;
  #local: Endpoint;
  #isOpen = false;

  constructor(
    bind: Endpoint,
    listener: FlowListener,
    private readonly maxDatagramBytes: number,
    private readonly log: Log,
  ) {
    super(listener);
    this.#local = bind;
    this.#socket = createSocket({ type: bind.address.includes(':') ? 'udp6' : 'udp4', recvBufferSize: 4 << 20 });
    this.#socket.on('message', (data, from) => {
      if (data.length > this.maxDatagramBytes) return;
      // RFC 5626 §3.5.1: UDP keepalives are STUN or CRLF, not messages.
      const text = data.toString('latin1');
      if (text.trim() === '' || (data[0] ?? 0) < 0x20) return;
      this.listener.onMessage(this.flowTo({ address: plainAddress(from.address), port: from.port }), text);
    });
  }

  get local(): Endpoint {
    return this.#local;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @param fd a bound socket, in place of a new one */
  listen(fd?: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.once('error', reject);
      const where = { address: this.#local.address, port: this.#local.port, exclusive: true };
      this.#socket.bind(fd === undefined ? where : { fd }, () => {
        this.#socket.off('error', reject);
        this.#socket.on('error', (error) => this.log.warn({ error: error.message }, 'sip.udp.error'));
        this.#local = { ...this.#local, port: this.#socket.address().port };
        this.#isOpen = true;
        resolve();
      });
    });
  }

  send(remote: Endpoint, text: string): void {
    if (!this.#isOpen) return;
    this.#socket.send(Buffer.from(text, 'latin1'), remote.port, remote.address, (error) => {
      if (error !== null) this.log.info({ peer: remote.address, error: error.message }, 'sip.udp.send_failed');
    });
  }

  close(): Promise<void> {
    this.#isOpen = false;
    return new Promise((resolve) => this.#socket.close(() => resolve()));
  }
}
