import type { DialogEntry } from '../dialog/dialog-entry.js';
import type { SipRequest, SipResponse } from '../message/message.js';
import type { ClientTransaction, ClientTransactionOwner } from '../transaction/transaction-runner.js';
import type { Flow } from '../transport/flow.js';

/** Who is told what becomes of a request of ours. */
export interface OutgoingOwner {
  onResponse(request: OutgoingRequest, response: SipResponse): void;
  onFailure(request: OutgoingRequest, why: 'timeout' | 'transport-error'): void;
  onEnded(request: OutgoingRequest): void;
}

/** A request of ours, from the moment it was sent. */
export class OutgoingRequest implements ClientTransactionOwner {
  transaction: ClientTransaction | null = null;
  /** A refresh of the session timer: its answers are no business of the user's. */
  isRefresh = false;
  /** The CANCEL that was asked for; it goes out when a provisional response has come (RFC 3261 §9.1). */
  cancel: OutgoingRequest | null = null;
  /** Dialogs that provisional responses made, one a fork (RFC 3261 §12.1.2). */
  readonly forks = new Set<DialogEntry>();

  /** A final response has come. */
  hasFinal = false;
  /** It goes over TCP because it is long: as it goes by UDP when the peer takes no connection (RFC 3261 §18.1.1). */
  byUdp: Pick<OutgoingRequest, 'message' | 'text' | 'flow'> | null = null;
  /** False: it may make dialogs. */
  readonly isInDialog: boolean;

  constructor(
    public message: SipRequest,
    public text: string,
    public dialog: DialogEntry | null,
    public flow: Flow,
    private readonly owner: OutgoingOwner,
  ) {
    this.isInDialog = dialog !== null;
  }

  onResponse(response: SipResponse): void {
    this.owner.onResponse(this, response);
  }

  onFailure(why: 'timeout' | 'transport-error'): void {
    this.owner.onFailure(this, why);
  }

  onEnded(): void {
    this.owner.onEnded(this);
  }
}
