import type { CoreHeaders } from '../message/core-headers.js';
import type { ServerTransaction } from '../transaction/transaction-runner.js';
import type { QueuedTimer, TimerQueue } from '../../lib/timers.js';
import { dialogKey, type Dialog, type SessionTimer } from './dialog.js';
import { RetransmittedResponse } from './retransmission.js';
import type { ReliableProvisionals } from './reliable-provisionals.js';
import type { TimerSettings } from '../transaction/timers.js';
import type { Flow } from '../transport/flow.js';

interface Answered {
  readonly cseq: number;
  readonly response: RetransmittedResponse;
}

/** What happens when a dialog ends by its own clock. */
interface DialogEnds {
  /** No ACK to a 2xx within 64·T1. */
  onAckTimeout(dialog: DialogEntry): void;
  /** Nobody refreshed the subscription. */
  onSubscriptionExpired(dialog: DialogEntry): void;
}

/** An INVITE of the peer without its final answer. */
export interface PendingInvite {
  readonly reliable: ReliableProvisionals | undefined;
  /** The dialog is over before the answer (RFC 3261 §15.1.2). */
  onDialogEnded(): void;
}

/** What the dialog is for: its usage in the sense of RFC 5057. */
type DialogUsage = 'invite' | 'subscribe';

/** A dialog as it lives: its state, the flow it came by, and the 2xx of ours that wait for their ACK. */
export class DialogEntry {
  /** What the dialog is found by. */
  readonly key: string;
  /** A 2xx was sent or received; before that the dialog is early (RFC 3261 §12.1). */
  isConfirmed = false;
  /** A re-INVITE of ours that the peer has not answered. */
  hasOwnInvite = false;
  hasPendingUpdate = false;
  /** The ACK to our first 2xx has come. */
  wasAcknowledged = false;
  isEnded = false;
  /** A BYE of ours is under way. */
  isEnding = false;
  /** `null`: no session timer was settled. */
  sessionTimer: SessionTimer | null = null;
  sessionTimerHandle: QueuedTimer | undefined;
  /** What our refreshes repeat: the last SDP and Contact of ours. */
  lastSdp = '';
  lastContact: string | undefined;
  /** The INVITE of the peer that waits for its final answer: the first one, or a re-INVITE. */
  invite: PendingInvite | null = null;
  /** CSeq number of our last INVITE: what its ACK carries. */
  ownInviteSeq = 0;
  /** RSeq of the last reliable provisional response of the peer (RFC 3262 §4). */
  remoteRSeq: number | null = null;
  /** Our INVITE was cancelled, but the peer had answered: BYE follows our ACK. */
  isCancelled = false;
  /** UAC: the ACK by CSeq number, to be repeated when the 2xx is. */
  #acks: Map<number, string> | undefined;
  /** One at a time: until its ACK, another INVITE gets 491. */
  #answered: Answered | undefined;
  #subscriptionTimer: QueuedTimer | undefined;

  constructor(
    public state: Dialog,
    public flow: Flow,
    readonly usage: DialogUsage,
    /** The key under which copies of the initial INVITE are recognised as merged. */
    readonly mergeKey: string | null,
    private readonly timers: TimerQueue,
    private readonly timerSettings: TimerSettings,
    private readonly ends: DialogEnds,
  ) {
    this.key = dialogKey(state.callId, state.localTag, state.remoteTag);
  }

  /** The subscription ends this long from now unless it is refreshed; the peer has 64·T1 of grace. */
  subscribedFor(seconds: number): void {
    if (this.#subscriptionTimer !== undefined) this.timers.stop(this.#subscriptionTimer);
    const graceMs = 64 * this.timerSettings.t1Ms;
    this.#subscriptionTimer = this.timers.start(seconds * 1_000 + graceMs, () => this.ends.onSubscriptionExpired(this));
  }

  /** A 2xx of ours waits for its ACK. */
  get awaitsAck(): boolean {
    return this.#answered !== undefined;
  }

  /** A 2xx to the INVITE with this CSeq number went out: it is repeated until the ACK. */
  answered(cseq: number, text: string, flow: Flow): void {
    const { t1Ms, t2Ms } = this.timerSettings;
    const response = new RetransmittedResponse(
      () => flow.send(text),
      { t1Ms, longestMs: t2Ms },
      this.timers,
      () => {
        this.#answered = undefined;
        this.ends.onAckTimeout(this);
      },
    );
    this.#answered = { cseq, response };
  }

  /** Returns whether this is the first ACK for that INVITE. */
  acknowledged(cseq: number): boolean {
    if (this.#answered?.cseq !== cseq) return false;
    this.#answered.response.acknowledged();
    this.#answered = undefined;
    return true;
  }

  /** UAC: keeps our ACK, to be repeated when the 2xx is. */
  keepAck(cseq: number, text: string): void {
    this.#acks ??= new Map();
    this.#acks.set(cseq, text);
  }

  repeatAck(cseq: number): void {
    const ack = this.#acks?.get(cseq);
    if (ack !== undefined) this.flow.send(ack);
  }

  end(): void {
    this.isEnded = true;
    if (this.sessionTimerHandle !== undefined) this.timers.stop(this.sessionTimerHandle);
    if (this.#subscriptionTimer !== undefined) this.timers.stop(this.#subscriptionTimer);
    this.#answered?.response.end();
    this.#answered = undefined;
  }
}

/** All dialogs, by RFC 3261 §12's id, and the requests that a copy by another way would be merged with (§8.2.2.2). */
export class DialogTable {
  readonly #dialogs = new Map<string, DialogEntry>();
  readonly #merged = new Map<string, ServerTransaction | DialogEntry>();

  constructor(
    private readonly timers: TimerQueue,
    private readonly timerSettings: TimerSettings,
    private readonly ends: DialogEnds,
  ) {}

  get size(): number {
    return this.#dialogs.size;
  }

  find(callId: string, localTag: string, remoteTag: string): DialogEntry | undefined {
    return this.#dialogs.get(dialogKey(callId, localTag, remoteTag));
  }

  /** `merge`: the initial INVITE's key, which stands for the dialog as long as it lives; `null` when the request was ours. */
  add(state: Dialog, flow: Flow, usage: DialogUsage, merge: string | null): DialogEntry {
    const entry = new DialogEntry(state, flow, usage, merge, this.timers, this.timerSettings, this.ends);
    this.#dialogs.set(entry.key, entry);
    return entry;
  }

  forget(dialog: DialogEntry): void {
    const { invite } = dialog;
    dialog.invite = null;
    dialog.end();
    if (this.#dialogs.get(dialog.key) === dialog) this.#dialogs.delete(dialog.key);
    if (dialog.mergeKey !== null && this.#merged.get(dialog.mergeKey) === dialog) this.#merged.delete(dialog.mergeKey);
    invite?.onDialogEnded();
  }

  /** False when the same request came by another way and is not done. */
  claim(transaction: ServerTransaction): boolean {
    const key = transaction.mergeKey;
    if (this.#merged.has(key)) return false;
    this.#merged.set(key, transaction);
    return true;
  }

  /** The request has its final answer; an INVITE's key goes over to the dialog that it made. */
  release(transaction: ServerTransaction, dialog: DialogEntry | null): void {
    const key = transaction.mergeKey;
    if (this.#merged.get(key) === transaction) this.#merged.delete(key);
    if (dialog !== null && dialog.mergeKey === key) this.#merged.set(key, dialog);
  }

  /** The dialog that a request or an ACK of a peer names. */
  of(core: CoreHeaders): DialogEntry | undefined {
    return this.find(core.callId, core.toTag ?? '', core.fromTag ?? '');
  }
}
