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

/** Called when a timer ends a dialog. */
interface DialogEnds {
  /** No ACK to a 2xx within 64·T1. */
  onAckTimeout(dialog: DialogEntry): void;
  /** The subscription expired without a refresh. */
  onSubscriptionExpired(dialog: DialogEntry): void;
}

/** An INVITE of the peer without a final response. */
export interface PendingInvite {
  readonly reliable: ReliableProvisionals | undefined;
  /** The dialog ended before the final response (RFC 3261 §15.1.2). */
  onDialogEnded(): void;
}

/** The dialog's usage (RFC 5057). */
type DialogUsage = 'invite' | 'subscribe';

/** A live dialog: its state, its flow, and our 2xx that await an ACK. */
export class DialogEntry {
  readonly key: string;
  /** We sent or received a 2xx; before that the dialog is early (RFC 3261 §12.1). */
  isConfirmed = false;
  /** Our re-INVITE has no final response yet. */
  hasOwnInvite = false;
  hasPendingUpdate = false;
  /** The ACK to our first 2xx arrived. */
  wasAcknowledged = false;
  isEnded = false;
  /** Our BYE is in progress. */
  isEnding = false;
  /** `null`: no session timer negotiated. */
  sessionTimer: SessionTimer | null = null;
  sessionTimerHandle: QueuedTimer | undefined;
  /** Our last SDP and Contact, which our refreshes repeat. */
  lastSdp = '';
  lastContact: string | undefined;
  /** The peer's INVITE or re-INVITE without a final response. */
  invite: PendingInvite | null = null;
  /** CSeq number of our last INVITE, for its ACK. */
  ownInviteSeq = 0;
  /** RSeq of the peer's last reliable provisional response (RFC 3262 §4). */
  remoteRSeq: number | null = null;
  /** We cancelled our INVITE, but the peer had answered: BYE follows our ACK. */
  isCancelled = false;
  /** UAC: our ACKs by CSeq number, to answer retransmitted 2xx. */
  #acks: Map<number, string> | undefined;
  /** At most one: until its ACK, another INVITE gets 491. */
  #answered: Answered | undefined;
  #subscriptionTimer: QueuedTimer | undefined;

  constructor(
    public state: Dialog,
    public flow: Flow,
    readonly usage: DialogUsage,
    /** Recognizes merged copies of the initial INVITE. */
    readonly mergeKey: string | null,
    private readonly timers: TimerQueue,
    private readonly timerSettings: TimerSettings,
    private readonly ends: DialogEnds,
  ) {
    this.key = dialogKey(state.callId, state.localTag, state.remoteTag);
  }

  /** Ends the subscription after this time plus 64·T1 of grace, unless refreshed. */
  subscribedFor(seconds: number): void {
    if (this.#subscriptionTimer !== undefined) this.timers.stop(this.#subscriptionTimer);
    const graceMs = 64 * this.timerSettings.t1Ms;
    this.#subscriptionTimer = this.timers.start(seconds * 1_000 + graceMs, () => this.ends.onSubscriptionExpired(this));
  }

  get awaitsAck(): boolean {
    return this.#answered !== undefined;
  }

  /** Retransmits our 2xx to the INVITE with this CSeq number until the ACK. */
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

  /** Returns whether this is the first ACK to that INVITE. */
  acknowledged(cseq: number): boolean {
    if (this.#answered?.cseq !== cseq) return false;
    this.#answered.response.acknowledged();
    this.#answered = undefined;
    return true;
  }

  /** UAC: stores our ACK, to answer retransmitted 2xx. */
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

/** All dialogs by their id (RFC 3261 §12), and the requests for merge detection (§8.2.2.2). */
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

  /** `merge`: merge key of the initial INVITE, valid for the dialog's life; `null` when the request was ours. */
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

  /** False for a merged copy of a request in progress. */
  claim(transaction: ServerTransaction): boolean {
    const key = transaction.mergeKey;
    if (this.#merged.has(key)) return false;
    this.#merged.set(key, transaction);
    return true;
  }

  /** After the final response; an INVITE's merge key moves to its dialog. */
  release(transaction: ServerTransaction, dialog: DialogEntry | null): void {
    const key = transaction.mergeKey;
    if (this.#merged.get(key) === transaction) this.#merged.delete(key);
    if (dialog !== null && dialog.mergeKey === key) this.#merged.set(key, dialog);
  }

  /** The dialog of a peer's request or ACK. */
  of(core: CoreHeaders): DialogEntry | undefined {
    return this.find(core.callId, core.toTag ?? '', core.fromTag ?? '');
  }
}
