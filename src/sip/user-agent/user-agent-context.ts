import type { ReliableProvisionals } from '../dialog/reliable-provisionals.js';
import type { CoreHeaders } from '../message/core-headers.js';
import type { OwnTransport } from './compose.js';
import type { DialogEntry, DialogTable, PendingInvite } from '../dialog/dialog-table.js';
import { getHeader, type SipRequest, type SipResponse, type Header } from '../message/message.js';
import type { SessionRefresher } from './session-refresher.js';
import type { SipStack } from '../stack.js';
import type {
  ServerTransaction,
  ServerTransactionOwner,
  ClientTransaction,
  ClientTransactionOwner,
} from '../transaction/transaction-runner.js';
import type { Flow, Endpoint, Target, TransportName } from '../transport/flow.js';

/** What the client and the server side of the user agent share. */
export interface UserAgentContext {
  readonly stack: SipStack;
  readonly flows: FlowSource;
  readonly dialogs: DialogTable;
  readonly sessions: SessionRefresher;
  /** NOTIFYs that came before the answer to the SUBSCRIBE of ours that they belong to, by Call-ID and our tag (RFC 6665 §4.1.2.4). */
  readonly earlyNotifies: Map<string, ServerTransaction[]>;
  /** Set once, before the first message. */
  listener: UserAgentListener | undefined;
}

/** What our Via and Contact name on this flow. */
export function ownTransport(flows: FlowSource, flow: Flow): OwnTransport {
  return { transport: flow.transport, ...flows.advertised(flow.transport) };
}

/** RFC 4028: a 2xx to INVITE or UPDATE settles the session timer. */
export function setsSession(method: string, status: number): boolean {
  return (method === 'INVITE' || method === 'UPDATE') && status >= 200 && status < 300;
}

/** RFC 6665 §4.4.1: the notifier's last NOTIFY ends the subscription and its dialog. */
export function endsSubscription(dialog: DialogEntry, method: string, subscriptionState: string | undefined): boolean {
  return dialog.usage === 'subscribe' && method === 'NOTIFY' && /^terminated\b/i.test(subscriptionState ?? '');
}

/** A 2xx to SUBSCRIBE: its Expires, or else the request's, says how long the subscription lives (RFC 6665 §4.2.1). */
export function subscribed(dialog: DialogEntry, request: SipRequest, response: SipResponse): void {
  if (dialog.usage !== 'subscribe') return;
  const seconds = Number(getHeader(response, 'expires') ?? getHeader(request, 'expires') ?? DEFAULT_EXPIRES_SECONDS);
  dialog.subscribedFor(Number.isInteger(seconds) && seconds >= 0 ? Math.min(seconds, MAX_EXPIRES_SECONDS) : DEFAULT_EXPIRES_SECONDS);
}

/** What a registration or a subscription lasts when nobody says (RFC 3261 §10.2, RFC 6665 §3.1.1 leave it open). */
export const DEFAULT_EXPIRES_SECONDS = 3_600;
/** What is asked for beyond that is not kept for longer. */
export const MAX_EXPIRES_SECONDS = 604_800;

/** What the user agent tells its user. */
export interface UserAgentListener {
  onRequest(request: IncomingRequest): void;
  /** The first ACK to a 2xx. */
  onAck(dialog: DialogEntry, ack: SipRequest, flow: Flow): void;
  /** `synthesized`: 408 or 503 made here because none came. */
  onResponse(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void;
  /** The user agent ended the dialog by itself: with this BYE, or a subscription that ran out without one. */
  onDialogEnded(dialog: DialogEntry, bye: SipRequest | null): void;
}

export interface ResponseParts {
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly Header[];
  readonly body: string;
  /** Used when no tag went out yet. */
  readonly localTag?: string | undefined;
}

/** The ways out: which flows there are and which addresses our own URIs state. */
export interface FlowSource {
  open(target: Target): Flow | undefined;
  /** What Via and Contact name for this transport. */
  advertised(transport: TransportName): Endpoint;
}

export type SendProblem = 'bad-uri' | 'no-transport';

/** `no-100rel`: a reliable provisional response to a peer that knows none. `not-allowed`: RFC 4320 forbids this status to a non-INVITE request. */
export type RespondProblem = 'unknown-transaction' | 'no-100rel' | 'not-allowed';

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
