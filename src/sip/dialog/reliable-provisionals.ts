import { randomInt } from 'node:crypto';
import type { TimerQueue } from '../../lib/timers.js';
import { getHeader, type SipRequest } from '../message/message.js';
import { RetransmittedResponse } from './retransmission.js';
import type { Flow } from '../transport/flow.js';

interface Unacknowledged {
  readonly rseq: number;
  readonly response: RetransmittedResponse;
}

/** The reliable provisional responses to one INVITE (RFC 3262 §3): one at a time, retransmitted until its PRACK; later ones wait. */
export class ReliableProvisionals {
  #nextRSeq = randomInt(1, 2 ** 31);
  #unacknowledged: Unacknowledged | undefined;
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly inviteCSeq: number,
    private readonly flow: Flow,
    private readonly timers: TimerQueue,
    private readonly t1Ms: number,
    /** No PRACK within 64·T1. */
    private readonly onGaveUp: () => void,
  ) {}

  /** Until the PRACK, neither the next reliable response nor a 2xx may go out. */
  get isWaiting(): boolean {
    return this.#unacknowledged !== undefined;
  }

  nextRSeq(): number {
    const rseq = this.#nextRSeq;
    this.#nextRSeq += 1;
    return rseq;
  }

  sent(rseq: number, text: string): void {
    const response = new RetransmittedResponse(
      () => this.flow.send(text),
      { t1Ms: this.t1Ms, longestMs: Infinity },
      this.timers,
      () => {
        this.#unacknowledged = undefined;
        this.onGaveUp();
      },
    );
    this.#unacknowledged = { rseq, response };
  }

  /** Runs `act` after the PRACK. */
  afterPrack(act: () => void): void {
    this.#waiting.push(act);
  }

  /** Whether the PRACK acknowledges the waiting response; true only once. */
  acknowledge(prack: SipRequest): boolean {
    const waiting = this.#unacknowledged;
    // Ignores what follows the method, as drachtio-server does: SIPp scenarios send `INVITE INVITE`.
    const match = /^(\d+)\s+(\d+)\s+INVITE(?=\s|$)/.exec(getHeader(prack, 'rack') ?? '');
    if (waiting === undefined || match === null) return false;
    if (Number(match[1]) !== waiting.rseq || Number(match[2]) !== this.inviteCSeq) return false;
    waiting.response.acknowledged();
    this.#unacknowledged = undefined;
    return true;
  }

  /** Sends the waiting responses, up to the next reliable one. */
  release(): void {
    while (this.#unacknowledged === undefined) {
      const act = this.#waiting.shift();
      if (act === undefined) return;
      act();
    }
  }

  /** The INVITE ended: stops retransmission and runs the waiting actions, which find the INVITE answered. */
  end(): void {
    this.#unacknowledged?.response.end();
    this.#unacknowledged = undefined;
    for (const act of this.#waiting.splice(0)) act();
  }
}
