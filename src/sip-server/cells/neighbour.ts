import { connect } from 'node:net';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { transactionOf } from '../../sip/message/cell-of.js';
import type { Endpoint, Flow } from '../../sip/transport/flow.js';
import type { OpenTransactions } from '../../sip/transport/retirement.js';
import { CellLine, type CellFrame, type CellLineLimits, type OwnersKind, type TakersKind } from './cell-line.js';
import { DATAGRAM, readDatagram, writeDatagram } from './datagram.js';
import type { FlowFacts } from './handed-calls.js';

type Line = CellLine<OwnersKind, TakersKind>;

/** A connection of ours with messages for the neighbour. */
interface Handed {
  readonly id: number;
  readonly flow: Flow;
  /** Requests of the peer's without a final response: the text, by transaction. */
  readonly requests: Map<string, string>;
  /** Requests of the neighbour's without one. */
  readonly sent: Set<string>;
}

interface NeighbourParts {
  /** Our own number. */
  readonly own: number;
  /** Its Unix socket. */
  readonly path: string;
  /** The cell refused it, or is gone with it: it is to be taken anew. */
  readonly again: (flow: Flow, text: string) => void;
  /** The cell was away too long. */
  readonly giveUp: (flow: Flow, text: string) => void;
  readonly flowTo: (peer: Endpoint) => Flow | undefined;
  readonly limits: CellLineLimits;
  readonly clock: Clock;
  readonly log: Log;
}

/** While the cell is away. */
const CONNECT_EACH_MS = 50;
/** Messages for a cell that is away wait as long as those for an application that is. */
const WAIT_MS = 2_000;
const MAX_WAITING = 1_000;
/** How long a cell that refused a call gets no other. */
const REFUSES_MS = 100;
/** A cell that has not even refused a new request within this time is hung. */
const SILENT_MS = 1_000;
/** Bounds what a peer can make us store. */
const MAX_OPEN_PER_FLOW = 10_000;

/** Another cell, which gets what belongs to its calls. */
export class Neighbour {
  #line: Line | null = null;
  readonly #byFlow = new Map<Flow, Handed>();
  readonly #byId = new Map<number, Handed>();
  #waiting: { readonly flow: Flow; readonly text: string }[] = [];
  #lastId = DATAGRAM;
  #refusedMs = -Infinity;
  /** When it got the first new request after which nothing came from it. */
  #awaitedMs = Infinity;
  #isClosed = false;
  #cancelConnect: CancelTimer | undefined;
  #cancelWait: CancelTimer | undefined;

  constructor(private readonly parts: NeighbourParts) {}

  /** As long as it is away, tries again and again. */
  open(): void {
    const { path, own, limits, clock } = this.parts;
    const socket = connect({ path });
    const retry = (): void => {
      if (!this.#isClosed) this.#cancelConnect = clock.setTimer(CONNECT_EACH_MS, () => this.open());
    };
    socket.once('error', retry);
    socket.once('connect', () => {
      socket.off('error', retry);
      const line: Line = new CellLine(
        socket,
        limits,
        (frame) => this.#onFrame(frame),
        () => {
          this.#onGone();
          retry();
        },
      );
      this.#line = line;
      line.send('h', own);
      this.#cancelWait?.();
      for (const { flow, text } of this.#waiting.splice(0)) this.hand(flow, text, false);
    });
  }

  get takesCalls(): boolean {
    const nowMs = this.parts.clock.nowMs();
    return this.#line !== null && nowMs - this.#refusedMs >= REFUSES_MS && nowMs - this.#awaitedMs < SILENT_MS;
  }

  /** @param isNew a request that it may refuse */
  hand(flow: Flow, text: string, isNew: boolean): void {
    if (!flow.isOpen) return;
    if (this.#line === null) return this.#wait(flow, text);
    if (isNew) this.#awaitedMs = Math.min(this.#awaitedMs, this.parts.clock.nowMs());
    const kind = isNew ? 'n' : 'm';
    if (!flow.reliable) return this.#line.send(kind, DATAGRAM, writeDatagram(flow.remote, text));
    const handed = this.#byFlow.get(flow) ?? this.#introduce(flow, this.#line);
    this.#note(handed.requests, handed.sent, text);
    this.#line.send(kind, handed.id, text);
  }

  closed(flow: Flow): void {
    const handed = this.#byFlow.get(flow);
    if (handed === undefined) return;
    this.#byFlow.delete(flow);
    this.#byId.delete(handed.id);
    this.#line?.send('c', handed.id);
  }

  /** Its transactions without a final response on this connection of ours, or on all. */
  transactions(flow?: Flow): OpenTransactions {
    const all = flow === undefined ? [...this.#byFlow.values()] : [this.#byFlow.get(flow)];
    return {
      client: all.reduce((sum, handed) => sum + (handed?.sent.size ?? 0), 0),
      server: all.reduce((sum, handed) => sum + (handed?.requests.size ?? 0), 0),
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelConnect?.();
    this.#cancelWait?.();
    this.#line?.close();
  }

  #introduce(flow: Flow, line: Line): Handed {
    this.#lastId += 1;
    const handed = { id: this.#lastId, flow, requests: new Map<string, string>(), sent: new Set<string>() };
    this.#byFlow.set(flow, handed);
    this.#byId.set(handed.id, handed);
    const { transport, remote, local, tlsIdentity = '', tls = null } = flow;
    line.send('f', handed.id, JSON.stringify({ transport, remote, local, tlsIdentity, tls } satisfies FlowFacts));
    return handed;
  }

  /** A message of one side: its request is open, or its final response ends one of the other side's. */
  #note(own: Map<string, string> | Set<string>, theirs: Map<string, string> | Set<string>, text: string): void {
    const transaction = transactionOf(text);
    if (transaction === null) return;
    const { key, isRequest, isFinal } = transaction;
    if (isFinal) theirs.delete(key);
    if (!isRequest || own.size >= MAX_OPEN_PER_FLOW) return;
    if (own instanceof Map) own.set(key, text);
    else own.add(key);
  }

  #wait(flow: Flow, text: string): void {
    const { giveUp, clock } = this.parts;
    if (this.#waiting.length >= MAX_WAITING) return giveUp(flow, text);
    if (this.#waiting.push({ flow, text }) > 1) return;
    this.#cancelWait = clock.setTimer(WAIT_MS, () => {
      for (const late of this.#waiting.splice(0)) giveUp(late.flow, late.text);
    });
  }

  #onFrame({ kind, id, text }: CellFrame<TakersKind>): void {
    this.#awaitedMs = Infinity;
    const datagram = id === DATAGRAM ? readDatagram(text) : null;
    const handed = this.#byId.get(id);
    const flow = datagram === null ? handed?.flow : this.parts.flowTo(datagram.peer);
    // One that has closed meanwhile.
    if (flow === undefined) return;
    switch (kind) {
      case 's':
        if (handed !== undefined) this.#note(handed.sent, handed.requests, text);
        return flow.send(datagram?.text ?? text);
      case 'x':
        return flow.close();
      case 'r': {
        const refused = datagram?.text ?? text;
        this.#refusedMs = this.parts.clock.nowMs();
        const transaction = transactionOf(refused);
        if (transaction !== null) handed?.requests.delete(transaction.key);
        return this.parts.again(flow, refused);
      }
    }
  }

  /** Requests without an answer are taken anew: those in dialogs wait for the cell, the others go elsewhere. */
  #onGone(): void {
    this.#line = null;
    this.#awaitedMs = Infinity;
    const lost = [...this.#byFlow.values()];
    this.#byFlow.clear();
    this.#byId.clear();
    if (this.#isClosed) return;
    this.parts.log.warn({ transactions: lost.reduce((sum, { requests }) => sum + requests.size, 0) }, 'sip_server.neighbour.gone');
    for (const { flow, requests } of lost) for (const text of requests.values()) if (flow.isOpen) this.parts.again(flow, text);
  }
}
