import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '../../lib/log.js';
import type { Endpoint, Flow, FlowListener, TlsFacts, TransportName } from '../../sip/transport/flow.js';
import { UdpPeers } from '../../sip/transport/udp-listener.js';
import { CellLine, type CellFrame, type CellLineLimits, type OwnersKind, type TakersKind } from './cell-line.js';
import { DATAGRAM, readDatagram, writeDatagram } from './datagram.js';

type Line = CellLine<TakersKind, OwnersKind>;

/** What a cell sends about a connection before its first message. */
export interface FlowFacts {
  readonly transport: TransportName;
  readonly remote: Endpoint;
  readonly local: Endpoint;
  readonly tlsIdentity: string;
  readonly tls: TlsFacts | null;
}

/** A connection that another cell has: what is sent on it goes there. */
class HandedFlow implements Flow {
  readonly reliable = true;
  readonly isAdmitted = true;
  readonly transport: TransportName;
  readonly remote: Endpoint;
  readonly local: Endpoint;
  readonly tlsIdentity: string;
  readonly tls: TlsFacts | null;
  #isOpen = true;

  constructor(
    { transport, remote, local, tlsIdentity, tls }: FlowFacts,
    private readonly line: Line,
    private readonly id: number,
    private readonly listener: FlowListener,
  ) {
    this.transport = transport;
    this.remote = remote;
    this.local = local;
    this.tlsIdentity = tlsIdentity;
    this.tls = tls;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(text: string): void {
    if (this.#isOpen) this.line.send('s', this.id, text);
  }

  close(): void {
    if (this.#isOpen) this.line.send('x', this.id);
    this.ended();
  }

  /** The connection is closed, or cannot be reached any more. */
  ended(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.listener.onClose(this);
  }
}

/** The UDP socket, which the first cell reads. */
export class HandedDatagrams extends UdpPeers {
  override readonly isAdmitted = true;
  /** To the first cell; `null`: it is away. */
  line: Line | null = null;

  constructor(
    readonly local: Endpoint,
    listener: FlowListener,
  ) {
    super(listener);
  }

  get isOpen(): boolean {
    return this.line !== null;
  }

  listen(): Promise<void> {
    return Promise.resolve();
  }

  send(remote: Endpoint, text: string): void {
    this.line?.send('s', DATAGRAM, writeDatagram(remote, text));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

interface HandedCallsParts {
  /** Unix socket where the other cells connect. */
  readonly path: string;
  /** Where messages go. */
  readonly stack: FlowListener;
  /** Whether this cell takes a new request. */
  readonly takes: (flow: Flow, text: string) => boolean;
  readonly datagrams: HandedDatagrams | null;
  readonly limits: CellLineLimits;
  readonly log: Log;
}

/** What the other cells hand over to this one. */
export class HandedCalls {
  readonly #server: Server;
  readonly #lines = new Set<Line>();

  constructor(private readonly parts: HandedCallsParts) {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Rejects with the system error. */
  listen(): Promise<void> {
    const { path, log } = this.parts;
    // Left by a killed process.
    rmSync(path, { force: true });
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) => log.error({ error: error.message }, 'sip_server.listener.error'));
        resolve();
      });
    });
  }

  close(): Promise<void> {
    for (const line of this.#lines) line.close();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: Socket): void {
    const { limits, datagrams } = this.parts;
    const flows = new Map<number, HandedFlow>();
    const line: Line = new CellLine(
      socket,
      limits,
      (frame) => this.#onFrame(line, flows, frame),
      () => {
        this.#lines.delete(line);
        if (datagrams?.line === line) datagrams.line = null;
        for (const flow of flows.values()) flow.ended();
      },
    );
    this.#lines.add(line);
  }

  #onFrame(line: Line, flows: Map<number, HandedFlow>, { kind, id, text }: CellFrame<OwnersKind>): void {
    const { stack, takes, datagrams } = this.parts;
    switch (kind) {
      case 'h':
        if (id === 1 && datagrams !== null) datagrams.line = line;
        return;
      case 'f':
        flows.set(id, new HandedFlow(JSON.parse(text) as FlowFacts, line, id, stack));
        return;
      case 'c':
        flows.get(id)?.ended();
        flows.delete(id);
        return;
      case 'n':
      case 'm': {
        const datagram = id === DATAGRAM ? readDatagram(text) : null;
        const message = datagram?.text ?? text;
        const flow = datagram === null ? flows.get(id) : datagrams?.flowTo(datagram.peer);
        // One that we closed.
        if (flow?.isOpen !== true) return;
        if (kind === 'n' && !takes(flow, message)) return line.send('r', id, text);
        stack.onMessage(flow, message);
      }
    }
  }
}
