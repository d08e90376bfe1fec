import type { ReliableProvisionals } from '../dialog/reliable-provisionals.js';
import type { CoreHeaders } from '../message/core-headers.js';
import type { OwnTransport } from './compose.js';
import type { DialogEntry, DialogTable, PendingInvite } from '../dialog/dialog-table.js';
import {
  getHeader,
  getList,
  hasHeader,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  type Header,
  type RequestParts,
} from '../message/message.js';
import type { SessionRefresher } from './session-refresher.js';
import type { SipStack } from '../stack.js';
import type {
  ServerTransaction,
  ServerTransactionOwner,
  ClientTransaction,
  ClientTransactionOwner,
} from '../transaction/transaction-runner.js';
import type { Flow, Endpoint, PeerTls, Target, TransportName } from '../transport/flow.js';

/** Shared by the UAC and UAS sides. */
export interface UserAgentContext {
  readonly stack: SipStack;
  readonly flows: FlowSource;
  readonly dialogs: DialogTable;
  readonly sessions: SessionRefresher;
  /** NOTIFYs that precede the response to our SUBSCRIBE, by Call-ID and our tag (RFC 6665 §4.1.2.4). */
  readonly earlyNotifies: Map<string, ServerTransaction[]>;
  /** Set once, before the first message. */
  listener: UserAgentListener | undefined;
}

/** Address in our Via and Contact on this flow. */
export function ownTransport(flows: FlowSource, flow: Flow): OwnTransport {
  return { transport: flow.transport, ...flows.advertised(flow.transport) };
}

/**
 * Notes what a 2xx to INVITE or UPDATE says of the session.
 * @param own the message of the two that is ours: its SDP and Contact are in the next refresh
 */
export function settleSession(
  { sessions }: UserAgentContext,
  dialog: DialogEntry,
  method: string,
  response: SipResponse,
  own: SipMessage,
): void {
  if (!setsSession(method, response.status)) return;
  dialog.describes(own);
  // RFC 4028 §7.2: there is none for who says what it supports, and not timers, whatever the answer has.
  if (own !== response && deniesTimers(own)) return;
  if (dialog.sessionTimer !== null || hasHeader(response, 'session-expires')) sessions.settled(dialog, response, own !== response);
}

function deniesTimers(request: SipMessage): boolean {
  if (!hasHeader(request, 'supported') || hasHeader(request, 'session-expires')) return false;
  return ![...getList(request, 'supported'), ...getList(request, 'require')].some((option) => option.toLowerCase() === 'timer');
}

/** RFC 4028: a 2xx to INVITE or UPDATE settles the session timer. */
export function setsSession(method: string, status: number): boolean {
  return (method === 'INVITE' || method === 'UPDATE') && status >= 200 && status < 300;
}

/** RFC 6665 §4.4.1: the notifier's last NOTIFY ends the subscription and its dialog. */
export function endsSubscription(dialog: DialogEntry, method: string, subscriptionState: string | undefined): boolean {
  return dialog.usage === 'subscribe' && method === 'NOTIFY' && /^terminated\b/i.test(subscriptionState ?? '');
}

/** A 2xx to SUBSCRIBE: its Expires, or else the request's, is the subscription's lifetime (RFC 6665 §4.2.1). */
export function subscribed(dialog: DialogEntry, request: SipRequest, response: SipResponse): void {
  if (dialog.usage !== 'subscribe') return;
  const seconds = Number(getHeader(response, 'expires') ?? getHeader(request, 'expires') ?? DEFAULT_EXPIRES_SECONDS);
  dialog.subscribedFor(Number.isInteger(seconds) && seconds >= 0 ? Math.min(seconds, MAX_EXPIRES_SECONDS) : DEFAULT_EXPIRES_SECONDS);
}

/** Lifetime of a registration or subscription without Expires (RFC 3261 §10.2, RFC 6665 §3.1.1 leave it open). */
export const DEFAULT_EXPIRES_SECONDS = 3_600;
/** Upper bound of a requested lifetime. */
export const MAX_EXPIRES_SECONDS = 604_800;

/** Events for the user. */
export interface UserAgentListener {
  onRequest(request: IncomingRequest): void;
  /** The first ACK to a 2xx. */
  onAck(dialog: DialogEntry, ack: SipRequest, flow: Flow): void;
  /** `synthesized`: our own 408 or 503, in place of a response. */
  onResponse(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void;
  /** The user agent ended the dialog: with this BYE, or `null` for an expired subscription. */
  onDialogEnded(dialog: DialogEntry, bye: SipRequest | null): void;
}

export interface ResponseParts {
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly Header[];
  readonly body: string;
  /** Used if no tag was sent yet. */
  readonly localTag?: string | undefined;
}

/** A request of the user's. `tls`: of the connection, where it has settings of its own. `isPublicOnly`: as in `Target`; its dialog is, too. */
export type RequestToSend = RequestParts & { readonly tls?: PeerTls | undefined; readonly isPublicOnly?: boolean };

/** Opens flows and provides the addresses for our URIs. */
export interface FlowSource {
  open(target: Target): Flow | undefined;
  /**
   * A flow to a server of the target that was not tried (RFC 3263 §4.3); `undefined`: there is none. It leaves the server at `from` alone
   * for `restMs`, where the target has another. Left out: each target is one server.
   */
  openNext?(target: Target, tried: readonly Endpoint[], from: Flow, restMs: number): Promise<Flow | undefined>;
  /** Address in Via and Contact. */
  advertised(transport: TransportName): Endpoint;
}

/** `not-owner`: another host may have the dialog. */
export type SendProblem = 'bad-uri' | 'no-transport' | 'not-owner';

/** `no-100rel`: the peer does not support reliable provisional responses. `not-allowed`: forbidden by RFC 4320 §4.1, §4.2. */
export type RespondProblem = 'unknown-transaction' | 'no-100rel' | 'not-allowed';

/** The UAS side. */
export interface IncomingOwner {
  /** `cancel` is `null` if the dialog ended first. */
  onCancel(request: IncomingRequest, cancel: SipRequest | null): void;
  onFailure(request: IncomingRequest, why: 'ack-timeout' | 'transport-error'): void;
}

/** A peer's request for the user to answer. */
export class IncomingRequest implements ServerTransactionOwner, PendingInvite {
  /** We sent a final response, or a provisional one with a tag: the tag is fixed. */
  isTagged = false;
  /** We sent a final response. */
  isAnswered = false;
  /** For the record of the dialog that its 2xx creates; `null`: the dialog ends with the process. */
  userData: string | null = null;
  /** Set with the first reliable provisional response to an INVITE (RFC 3262). */
  reliable: ReliableProvisionals | undefined;

  /** Callback of the user: the INVITE was cancelled, or its sender is gone, and is answered. `cancel` is `null` without a CANCEL. */
  onCancelled: (cancel: SipRequest | null) => void = () => undefined;

  /** Callback of the user: the connection of a request other than INVITE is gone, and no response can reach its sender. */
  onUnreachable: () => void = () => undefined;

  /** False: it may create a dialog. */
  readonly isInDialog: boolean;

  constructor(
    readonly transaction: ServerTransaction,
    /** `null`: outside dialogs. */
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

/** Receives the outcome of our request. */
export interface OutgoingOwner {
  onResponse(request: OutgoingRequest, response: SipResponse): void;
  onFailure(request: OutgoingRequest, why: 'timeout' | 'transport-error'): void;
  onEnded(request: OutgoingRequest): void;
}

/** Our request, once sent. */
export class OutgoingRequest implements ClientTransactionOwner {
  transaction: ClientTransaction | null = null;
  /** A session timer refresh: its responses do not go to the user. */
  isRefresh = false;
  /** The requested CANCEL; sent after a provisional response (RFC 3261 §9.1). */
  cancel: OutgoingRequest | null = null;
  /** Dialogs of provisional responses, one a fork (RFC 3261 §12.1.2). */
  readonly forks = new Set<DialogEntry>();

  hasFinal = false;
  /** A provisional response above 100 arrived. */
  hasProgress = false;
  /** Where its next server is found when one is unavailable (RFC 3263 §4.3); `null`: it goes to `flow` alone. */
  target: Target | null = null;
  /** The user's own, to know it again by. */
  name = '';
  /** Servers of the target that did not take it, and the 503 of the last that answered; `isOurs`: in place of one. */
  readonly tried: Endpoint[] = [];
  refusal: { readonly response: SipResponse; readonly isOurs: boolean } | null = null;
  /** For the record of the dialog that its 2xx creates; `null`: the dialog ends with the process. */
  userData: string | null = null;
  /** Sent over TCP for its length: the UDP version, in case TCP fails (RFC 3261 §18.1.1). */
  byUdp: Pick<OutgoingRequest, 'message' | 'text' | 'flow'> | null = null;
  /** False: it may create dialogs. */
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
