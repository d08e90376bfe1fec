import type { CellPlace } from '../../config/cells.js';
import { cellAmong } from '../../lib/cells.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Admission } from '../../sip/admission.js';
import { cellOf } from '../../sip/message/cell-of.js';
import type { SipStack } from '../../sip/stack.js';
import type { Endpoint, Flow, FlowListener } from '../../sip/transport/flow.js';
import type { OpenTransactions } from '../../sip/transport/retirement.js';
import { retryAfter } from '../../sip/user-agent/retry-after.js';
import type { CellLineLimits } from './cell-line.js';
import { HandedCalls, HandedDatagrams } from './handed-calls.js';
import { Neighbour } from './neighbour.js';

/** Where a cell meets the others of its host. */
export interface CellSettings extends CellPlace {
  /** Path of the Unix socket of a cell. */
  readonly pathOf: (index: number) => string;
}

interface SharedCallsParts {
  readonly settings: CellSettings;
  readonly stack: SipStack;
  readonly admission: Admission;
  /** Whether a new call would get an application here. */
  readonly takesCalls: () => boolean;
  /** Where the UDP socket is, if any. */
  readonly udp: Endpoint | null;
  readonly flowTo: (peer: Endpoint) => Flow | undefined;
  readonly limits: CellLineLimits;
  readonly clock: Clock;
  readonly log: Log;
}

/** How long it is known which cell took a call in place of another: a CANCEL may come late. */
const KNOWN_MS = 300_000;
const MAX_KNOWN = 10_000;

/**
 * Between the sockets and the stack of a cell: shares calls out over all cells of the host. A cell that has no application for new calls,
 * or is away, gets none.
 */
export class SharedCalls implements FlowListener {
  /** In place of a UDP socket, where the first cell has it. */
  readonly datagrams: HandedDatagrams | null;
  readonly #neighbours = new Map<number, Neighbour>();
  readonly #handed: HandedCalls;
  /** Calls that another cell has than their Call-ID says, oldest first. */
  readonly #elsewhere = new Map<string, { readonly cell: number; readonly sinceMs: number }>();
  #isRetiring = false;

  constructor(private readonly parts: SharedCallsParts) {
    const { settings, stack, udp, flowTo, limits, clock, log } = parts;
    const { index: own, count, pathOf } = settings;
    this.datagrams = own === 1 || udp === null ? null : new HandedDatagrams(udp, this);
    this.#handed = new HandedCalls({
      path: pathOf(own),
      stack,
      takes: (flow, text) => this.#takes(flow, text),
      datagrams: this.datagrams,
      limits,
      log,
    });
    for (let index = 1; index <= count; index += 1) {
      if (index === own) continue;
      const neighbour = new Neighbour({
        own,
        path: pathOf(index),
        again: (flow, text) => this.#share(flow, text),
        giveUp: (flow, text) => this.#giveUp(flow, text),
        flowTo,
        limits,
        clock,
        log,
      });
      this.#neighbours.set(index, neighbour);
    }
  }

  async open(): Promise<void> {
    await this.#handed.listen();
    for (const neighbour of this.#neighbours.values()) neighbour.open();
  }

  /** New calls are for the other cells. */
  retire(): void {
    this.#isRetiring = true;
  }

  async close(): Promise<void> {
    for (const neighbour of this.#neighbours.values()) neighbour.close();
    await this.#handed.close();
  }

  /** Those of other cells on this connection of ours, or on all. */
  transactions(flow?: Flow): OpenTransactions {
    const each = [...this.#neighbours.values()].map((neighbour) => neighbour.transactions(flow));
    return { client: each.reduce((sum, { client }) => sum + client, 0), server: each.reduce((sum, { server }) => sum + server, 0) };
  }

  onMessage(flow: Flow, text: string): void {
    this.#share(flow, text);
  }

  onSpoiled(flow: Flow, problem: Parameters<FlowListener['onSpoiled']>[1]): void {
    this.parts.stack.onSpoiled(flow, problem);
  }

  onClose(flow: Flow): void {
    this.parts.stack.onClose(flow);
    for (const neighbour of this.#neighbours.values()) neighbour.closed(flow);
  }

  #share(flow: Flow, text: string): void {
    const { settings, stack, admission } = this.parts;
    const { cell, newCallId } = cellOf(text, settings.count);
    const known = newCallId === null || this.#elsewhere.size === 0 ? undefined : this.#elsewhere.get(newCallId)?.cell;
    // A CANCEL is of use only where its INVITE is.
    const isNew = newCallId !== null && !/^(?:CANCEL|ACK) /.test(text);
    const taker = isNew ? this.#taker(flow, text, known ?? cell) : (known ?? cell);
    if (isNew && taker !== (known ?? cell)) this.#remember(newCallId, taker);
    const neighbour = this.#neighbours.get(taker);
    if (neighbour === undefined) return stack.onMessage(flow, text);
    const source = flow.remote.address;
    if (admission.isFlood(source)) return;
    // The stack refuses it.
    if (isNew && !admission.admits(source)) return stack.onMessage(flow, text);
    neighbour.hand(flow, text, isNew);
  }

  /** The first cell from this one on that takes a new request; without any, this process answers it. */
  #taker(flow: Flow, text: string, first: number): number {
    const { index, count } = this.parts.settings;
    for (let step = 0; step < count; step += 1) {
      const cell = cellAmong(first + step, count);
      if (cell === index ? this.#takes(flow, text) : this.#neighbours.get(cell)?.takesCalls === true) return cell;
    }
    return index;
  }

  #takes(flow: Flow, text: string): boolean {
    const { takesCalls, stack } = this.parts;
    // A retransmission goes on where the request is.
    return (!this.#isRetiring && takesCalls()) || (!flow.reliable && stack.isKnown(text));
  }

  #remember(callId: string, cell: number): void {
    const nowMs = this.parts.clock.nowMs();
    this.#elsewhere.delete(callId);
    this.#elsewhere.set(callId, { cell, sinceMs: nowMs });
    for (const [oldest, { sinceMs }] of this.#elsewhere) {
      if (this.#elsewhere.size <= MAX_KNOWN && nowMs - sinceMs < KNOWN_MS) break;
      this.#elsewhere.delete(oldest);
    }
  }

  /** The cell may be back later: nothing says that its dialogs have ended. */
  #giveUp(flow: Flow, text: string): void {
    this.parts.stack.turnDown(flow, text, 500, 'Server Internal Error', [retryAfter()]);
  }
}
