import { randomInt } from 'node:crypto';
import type { TimerQueue } from '../../lib/timers.js';
import { getHeader, type SipRequest } from '../message/message.js';
import { RetransmittedResponse } from './retransmission.js';
import type { Flow } from '../transport/flow.js';

interface Unacknowledged {
  readonly rseq: number;
  readonly response: RetransmittedResponse;
}

/** The reliable provisional responses to one INVITE (RFC 3262 §3): one at a time, repeated until its PRACK; what comes after waits. */
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

  /** A response waits for its PRACK: the next reliable one and a 2xx must not go out yet. */
  get isWaiting(): boolean {
    return this.#unacknowledged !== undefined;
  }

  /** The RSeq of the next one. */
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

  /** Runs it when the PRACK has come. */
  afterPrack(act: () => void): void {
    this.#waiting.push(act);
  }

  /** Whether the PRACK names the response that waits; it does so no more then. */
  acknowledge(prack: SipRequest): boolean {
    const waiting = this.#unacknowledged;
    // What follows the method is not looked at, as in drachtio-server: SIPp scenarios send `INVITE INVITE`.
    const match = /^(\d+)\s+(\d+)\s+INVITE(?=\s|$)/.exec(getHeader(prack, 'rack') ?? '');
    if (waiting === undefined || match === null) return false;
    if (Number(match[1]) !== waiting.rseq || Number(match[2]) !== this.inviteCSeq) return false;
    waiting.response.acknowledged();
    this.#unacknowledged = undefined;
    return true;
  }

  /** Sends what waited for the PRACK, up to the next reliable response. */
  release(): void {
    while (this.#unacknowledged === undefined) {
      const act = this.#waiting.shift();
      if (act === undefined) return;
      act();
    }
  }

  /** The INVITE has its final answer, or is gone: nothing is repeated, and what waited is let go (it finds the INVITE answered). */
  end(): void {
    this.#unacknowledged?.response.end();
    this.#unacknowledged = undefined;
    for (const act of this.#waiting.splice(0)) act();
  }
}
