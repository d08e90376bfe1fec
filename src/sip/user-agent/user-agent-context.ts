import type { OutgoingRequest } from './outgoing-request.js';
import type { IncomingRequest } from './incoming-request.js';
import type { OwnTransport } from './compose.js';
import type { DialogEntry } from '../dialog/dialog-entry.js';
import type { DialogTable } from './dialog-table.js';
import { getHeader, type SipRequest, type SipResponse, type Header } from '../message/message.js';
import type { SessionRefresher } from './session-refresher.js';
import type { SipStack } from '../stack.js';
import type { ServerTransaction } from '../transaction/transaction-runner.js';
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
