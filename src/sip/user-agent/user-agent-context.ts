import type { OwnTransport } from './compose.js';
import type { DialogEntry } from '../dialog/dialog-entry.js';
import type { DialogTable } from './dialog-table.js';
import { DEFAULT_EXPIRES_SECONDS, MAX_EXPIRES_SECONDS } from './expires.js';
import { getHeader, type SipRequest, type SipResponse } from '../message/message.js';
import type { SessionRefresher } from './session-refresher.js';
import type { SipStack } from '../stack.js';
import type { ServerTransaction } from '../transaction/transaction-runner.js';
import type { Flow } from '../transport/flow.js';
import type { FlowSource, UserAgentListener } from './user-agent-listener.js';

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
