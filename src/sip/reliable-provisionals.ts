import { randomInt } from 'node:crypto';
import { NamedTimers } from '../lib/named-timers.js';
import type { TimerQueue } from '../lib/timer-queue.js';
import { RELIABLE_START, stepReliable, type ReliableEvent, type ReliableState, type ReliableTimer } from './dialog/reliable.js';
import { getHeader, type SipRequest } from './message/message.js';
import type { Flow } from './transport/flow.js';

interface Unacknowledged {
  readonly rseq: number;
  readonly text: string;
  state: ReliableState;
  readonly timers: NamedTimers<ReliableTimer>;
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
    const timers = new NamedTimers<ReliableTimer>(this.timers, (timer) => this.#step(sent, { type: 'timer', timer }));
    const sent: Unacknowledged = { rseq, text, state: RELIABLE_START, timers };
    this.#unacknowledged = sent;
    this.#step(sent, { type: 'sent' });
  }

  /** Runs it when the PRACK has come. */
  afterPrack(act: () => void): void {
    this.#waiting.push(act);
  }

  /** Whether the PRACK names the response that waits; it does so no more then. */
  acknowledge(prack: SipRequest): boolean {
    const waiting = this.#unacknowledged;
    const match = /^(\d+)\s+(\d+)\s+INVITE$/.exec(getHeader(prack, 'rack') ?? '');
    if (waiting === undefined || match === null) return false;
    if (Number(match[1]) !== waiting.rseq || Number(match[2]) !== this.inviteCSeq) return false;
    this.#step(waiting, { type: 'prack' });
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
    this.#unacknowledged?.timers.stopAll();
    this.#unacknowledged = undefined;
    for (const act of this.#waiting.splice(0)) act();
  }

  #step(waiting: Unacknowledged, event: ReliableEvent): void {
    const { state, effects } = stepReliable(waiting.state, event, this.t1Ms);
    waiting.state = state;
    for (const effect of effects) {
      switch (effect.do) {
        case 'resend':
          this.flow.send(waiting.text);
          break;
        case 'start':
          waiting.timers.start(effect.timer, effect.delayMs);
          break;
        case 'stop-timers':
          waiting.timers.stopAll();
          break;
        case 'gave-up':
          this.#unacknowledged = undefined;
          this.onGaveUp();
          break;
      }
    }
  }
}
