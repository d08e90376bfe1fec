import type { DialogEntry, PendingInvite } from '../dialog/dialog-entry.js';
import type { ReliableProvisionals } from '../dialog/reliable-provisionals.js';
import type { CoreHeaders } from '../message/core-headers.js';
import type { SipRequest } from '../message/message.js';
import type { ServerTransaction, ServerTransactionOwner } from '../transaction/transaction-runner.js';
import type { Flow } from '../transport/flow.js';

/** The side of the user agent that answers requests. */
export interface IncomingOwner {
  /** `cancel` is `null` when the dialog ended before the answer. */
  onCancel(request: IncomingRequest, cancel: SipRequest | null): void;
  onFailure(request: IncomingRequest, why: 'ack-timeout' | 'transport-error'): void;
}

/** A request from a peer that the user has to answer. */
export class IncomingRequest implements ServerTransactionOwner, PendingInvite {
  /** A provisional response with a tag, or a final one, has gone out: the tag is settled. */
  isTagged = false;
  /** A final response has gone out. */
  isAnswered = false;
  /** Set once an INVITE got a reliable provisional response (RFC 3262). */
  reliable: ReliableProvisionals | undefined;

  /**
   * Set by the user that answers it: the INVITE was cancelled, or its sender is gone; it is answered already. `cancel` is `null` when no
   * CANCEL came.
   */
  onCancelled: (cancel: SipRequest | null) => void = () => undefined;

  /** False: it may make a dialog. */
  readonly isInDialog: boolean;

  constructor(
    readonly transaction: ServerTransaction,
    /** `null`: outside of any dialog. */
    public dialog: DialogEntry | null,
    private readonly owner: IncomingOwner,
  ) {
    this.isInDialog = dialog !== null;
    transaction.owner = this;
  }

  get message(): SipRequest {
    return this.transaction.request;
  }

  get core(): CoreHeaders {
    return this.transaction.core;
  }

  get flow(): Flow {
    return this.transaction.flow;
  }

  onCancel(cancel: SipRequest): void {
    this.owner.onCancel(this, cancel);
  }

  onDialogEnded(): void {
    this.owner.onCancel(this, null);
  }

  onFailure(why: 'ack-timeout' | 'transport-error'): void {
    this.owner.onFailure(this, why);
  }
}
