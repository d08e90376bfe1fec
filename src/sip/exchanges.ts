import type { DialogEntry } from './dialog-entry.js';
import type { CoreHeaders } from './message/core-headers.js';
import type { SipRequest } from './message/message.js';
import type { ClientTransaction, ServerTransaction } from './transaction-runner.js';
import type { Flow } from './transport/flow.js';

/** A request from a peer that the user has to answer. */
export class IncomingRequest {
  /** A provisional response with a tag, or a final one, has gone out: the tag is settled. */
  isTagged = false;

  constructor(
    readonly transaction: ServerTransaction,
    /** `null`: outside of any dialog. */
    public dialog: DialogEntry | null,
  ) {}

  get message(): SipRequest {
    return this.transaction.request;
  }

  get core(): CoreHeaders {
    return this.transaction.core;
  }

  get flow(): Flow {
    return this.transaction.flow;
  }
}

/** A request of ours, from the moment it was sent. */
export class OutgoingRequest {
  transaction: ClientTransaction | null = null;
  /** A refresh of the session timer: its answers are no business of the user's. */
  isRefresh = false;
  /** CANCEL was asked for before a provisional response had come. */
  wantsCancel = false;

  constructor(
    readonly message: SipRequest,
    readonly text: string,
    public dialog: DialogEntry | null,
    readonly flow: Flow,
  ) {}
}
