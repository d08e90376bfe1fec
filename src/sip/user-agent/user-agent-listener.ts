import type { DialogEntry } from '../dialog/dialog-entry.js';
import type { OutgoingRequest } from './outgoing-request.js';
import type { IncomingRequest } from './incoming-request.js';
import type { Header, SipRequest, SipResponse } from '../message/message.js';
import type { Endpoint, Flow, Target, TransportName } from '../transport/flow.js';

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
