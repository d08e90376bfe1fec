import type { QueuedTimer, TimerQueue } from '../lib/timer-queue.js';
import { ANSWERED_START, stepAnswered, type AnsweredEvent, type AnsweredState, type AnsweredTimer } from './dialog/answered.js';
import { dialogKey, type Dialog } from './dialog/dialog.js';
import type { SessionTimer } from './dialog/session-timer.js';
import type { TimerSettings } from './transaction/timers.js';
import type { Flow } from './transport/flow.js';

interface Answered {
  state: AnsweredState;
  readonly text: string;
  readonly flow: Flow;
  readonly timers: Map<AnsweredTimer, QueuedTimer>;
}

/** A dialog as it lives: its state, the flow it came by, and the 2xx of ours that wait for their ACK. */
export class DialogEntry {
  /** A 2xx was sent or received; before that the dialog is early (RFC 3261 §12.1). */
  isConfirmed = false;
  /** A re-INVITE of the peer that we have not answered. */
  hasPendingInvite = false;
  /** A re-INVITE of ours that the peer has not answered. */
  hasOwnInvite = false;
  hasPendingUpdate = false;
  isEnded = false;
  /** A BYE of ours is under way. */
  isEnding = false;
  /** `null`: no session timer was settled. */
  sessionTimer: SessionTimer | null = null;
  sessionTimerHandle: QueuedTimer | undefined;
  /** What our refreshes repeat: the last SDP and Contact of ours. */
  lastSdp = '';
  lastContact: string | undefined;
  /** UAC: the ACK by CSeq number, to be repeated when the 2xx is. */
  readonly acks = new Map<number, string>();
  readonly #answered = new Map<number, Answered>();

  constructor(
    public state: Dialog,
    public flow: Flow,
    /** The key under which copies of the initial INVITE are recognised as merged. */
    readonly mergeKey: string | null,
    private readonly timers: TimerQueue,
    private readonly timerSettings: TimerSettings,
    private readonly onAckTimeout: (entry: DialogEntry) => void,
  ) {}

  get key(): string {
    return dialogKey(this.state.callId, this.state.localTag, this.state.remoteTag);
  }

  /** A 2xx of ours waits for its ACK. */
  get awaitsAck(): boolean {
    return this.#answered.size > 0;
  }

  /** A 2xx to the INVITE with this CSeq number went out: it is repeated until the ACK. */
  answered(cseq: number, text: string, flow: Flow): void {
    const answered: Answered = { state: ANSWERED_START, text, flow, timers: new Map() };
    this.#answered.set(cseq, answered);
    this.#step(cseq, answered, { type: 'answered' });
  }

  /** Returns whether this is the first ACK for that INVITE. */
  acknowledged(cseq: number): boolean {
    const answered = this.#answered.get(cseq);
    if (answered === undefined) return false;
    this.#step(cseq, answered, { type: 'ack' });
    return true;
  }

  end(): void {
    this.isEnded = true;
    if (this.sessionTimerHandle !== undefined) this.timers.stop(this.sessionTimerHandle);
    for (const answered of this.#answered.values()) for (const timer of answered.timers.values()) this.timers.stop(timer);
    this.#answered.clear();
  }

  #step(cseq: number, answered: Answered, event: AnsweredEvent): void {
    const { state, effects } = stepAnswered(answered.state, event, this.timerSettings);
    answered.state = state;
    for (const effect of effects) {
      switch (effect.do) {
        case 'resend':
          answered.flow.send(answered.text);
          break;
        case 'start':
          answered.timers.set(
            effect.timer,
            this.timers.start(effect.delayMs, () => this.#step(cseq, answered, { type: 'timer', timer: effect.timer })),
          );
          break;
        case 'stop': {
          const timer = answered.timers.get(effect.timer);
          if (timer !== undefined) this.timers.stop(timer);
          break;
        }
        case 'acknowledged':
          this.#answered.delete(cseq);
          break;
        case 'gave-up':
          this.#answered.delete(cseq);
          this.onAckTimeout(this);
          break;
      }
    }
  }
}
