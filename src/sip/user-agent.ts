import { randomInt } from 'node:crypto';
import { newUuid } from '../lib/ids.js';
import { branchOf, cancelOf, composeRequest, contactOf, withoutTag, type OwnTransport } from './compose.js';
import { DialogEntry } from './dialog-entry.js';
import { dialogKey, refreshTarget, routingOf, uacDialog, uasDialog } from './dialog/dialog.js';
import type { CoreHeaders } from './message/core-headers.js';
import {
  getHeader,
  getHeaders,
  hasHeader,
  header,
  type Header,
  type RequestParts,
  type SipRequest,
  type SipResponse,
} from './message/message.js';
import { serialize } from './message/serialize.js';
import { uriScheme } from './message/uri.js';
import { resolveTarget } from './next-hop.js';
import { IncomingRequest, OutgoingRequest } from './exchanges.js';
import { makeResponse, type SipStack, type TransactionUser } from './stack.js';
import { SessionRefresher } from './session-refresher.js';
import { newTag } from './tags.js';
import type { ClientTransaction, ServerTransaction } from './transaction-runner.js';
import { mergeKey } from './transaction/matching.js';
import type { Endpoint, Flow, Target, TransportName } from './transport/flow.js';

/** What the user agent tells its user. */
export interface UserAgentListener {
  onRequest(request: IncomingRequest): void;
  /** The INVITE was cancelled, or its sender is gone; it is answered already. `cancel` is `null` when no CANCEL came. */
  onCancelled(request: IncomingRequest, cancel: SipRequest | null): void;
  /** The first ACK to a 2xx. */
  onAck(dialog: DialogEntry, ack: SipRequest, flow: Flow): void;
  /** `synthesized`: 408 or 503 made here because none came. */
  onResponse(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void;
  /** The user agent ended the dialog by itself with this BYE. */
  onDialogEnded(dialog: DialogEntry, bye: SipRequest): void;
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

/** RFC 3261's user agent core: dialogs, 2xx retransmission, what is answered without asking anybody. */
export class UserAgent implements TransactionUser {
  readonly #dialogs = new Map<string, DialogEntry>();
  readonly #merged = new Map<string, ServerTransaction | DialogEntry>();
  readonly #incoming = new Map<ServerTransaction, IncomingRequest>();
  readonly #outgoing = new Map<ClientTransaction, OutgoingRequest>();
  readonly #sessions: SessionRefresher;
  #listener: UserAgentListener | undefined;

  constructor(
    private readonly stack: SipStack,
    private readonly flows: FlowSource,
  ) {
    stack.attach(this);
    this.#sessions = new SessionRefresher(stack.timers, {
      refresh: (dialog, parts) => {
        const sent = this.sendInDialog(dialog, parts);
        if (typeof sent === 'object') sent.isRefresh = true;
        return typeof sent === 'object';
      },
      acknowledge: (dialog) => void this.sendInDialog(dialog, { method: 'ACK', headers: [], body: '' }),
      expire: (dialog) => this.#endByOurselves(dialog, 'SIP;cause=200;text="Session timer expired"'),
    });
  }

  attach(listener: UserAgentListener): void {
    this.#listener = listener;
  }

  get dialogCount(): number {
    return this.#dialogs.size;
  }

  // ---- answers of the user

  /** Sends a response; returns its wire text, or `undefined` when the transaction is answered or gone. */
  respond(request: IncomingRequest, parts: ResponseParts): string | undefined {
    const { transaction } = request;
    if (!transaction.isUnanswered) return undefined;
    if (!request.isTagged && parts.localTag !== undefined && transaction.core.toTag === undefined) transaction.localTag = parts.localTag;
    if (parts.status > 100) request.isTagged = true;
    const response = this.#completeResponse(request, parts);
    const isInvite = transaction.isInvite;
    if (isInvite && parts.status > 100 && parts.status < 300) this.#establish(request);
    const text = this.stack.respond(transaction, response);
    if (parts.status >= 200) this.#finished(request, parts.status, text);
    if (request.dialog !== null && setsSession(transaction.request.method, parts.status))
      this.#sessions.settled(request.dialog, response, false);
    return text;
  }

  /** Sends a request outside of any dialog. */
  send(uri: string, parts: RequestParts, routeUri: string | null): OutgoingRequest | SendProblem {
    const target = resolveTarget(routeUri ?? uri);
    if (target === undefined) return 'bad-uri';
    const flow = this.flows.open(target);
    if (flow === undefined) return 'no-transport';
    const own = contactOf(this.#own(flow), uriScheme(uri) === 'sips');
    const from = getHeader(parts, 'from') ?? own;
    const cseq = randomInt(1, 2 ** 30);
    const message = composeRequest(this.#own(flow), parts, {
      uri,
      from: `${withoutTag(from)};tag=${newTag()}`,
      to: getHeader(parts, 'to') ?? `<${uri}>`,
      callId: getHeader(parts, 'call-id') ?? newUuid(),
      cseq,
      contact: parts.method === 'INVITE' || parts.method === 'SUBSCRIBE' ? own : null,
      route: [],
    });
    return this.#start(message, flow, null);
  }

  /** Sends a request in a dialog; `ACK` goes without a transaction. */
  sendInDialog(dialog: DialogEntry, parts: RequestParts): OutgoingRequest | SendProblem {
    const isAck = parts.method === 'ACK';
    const routing = routingOf(dialog.state);
    const flow = this.#flowOf(dialog, routing.nextHop);
    if (typeof flow === 'string') return flow;
    if (!isAck) dialog.state = { ...dialog.state, localSeq: dialog.state.localSeq + 1 };
    const wantsContact = ['INVITE', 'SUBSCRIBE', 'REFER', 'UPDATE'].includes(parts.method);
    const message = composeRequest(this.#own(flow), parts, {
      uri: routing.requestUri,
      from: dialog.state.local,
      to: dialog.state.remote,
      callId: dialog.state.callId,
      cseq: dialog.state.localSeq,
      contact: wantsContact ? contactOf(this.#own(flow), uriScheme(dialog.state.remoteTarget) === 'sips') : null,
      route: routing.route,
    });
    if (isAck) {
      const sent = new OutgoingRequest(message, serialize(message), dialog, flow);
      dialog.acks.set(dialog.state.localSeq, sent.text);
      flow.send(sent.text);
      return sent;
    }
    if (parts.method === 'INVITE') dialog.hasOwnInvite = true;
    if (parts.method === 'BYE') dialog.isEnding = true;
    return this.#start(message, flow, dialog);
  }

  /** Cancels an INVITE of ours: at once when a provisional response came, else when it does (RFC 3261 §9.1). Returns the CANCEL. */
  cancel(request: OutgoingRequest, extra: readonly Header[] = []): OutgoingRequest | undefined {
    const transaction = request.transaction;
    if (transaction?.isInvite !== true || !transaction.isUnanswered) return undefined;
    const cancel = cancelOf(request.message, extra);
    const sent = new OutgoingRequest(cancel, serialize(cancel), null, request.flow);
    if (transaction.isProceeding) this.#launch(sent);
    else request.wantsCancel = true;
    return sent;
  }

  /** Ends a dialog with a BYE of our own and forgets it. Returns the BYE, or `undefined` when it cannot be sent any more. */
  hangUp(dialog: DialogEntry, reason: string): SipRequest | undefined {
    const sent = dialog.isConfirmed
      ? this.sendInDialog(dialog, { method: 'BYE', headers: [header('Reason', reason)], body: '' })
      : undefined;
    this.#forget(dialog);
    return typeof sent === 'object' ? sent.message : undefined;
  }

  // ---- TransactionUser

  onRequest(transaction: ServerTransaction): void {
    const { core, request } = transaction;
    const scheme = uriScheme(request.uri);
    if (scheme !== 'sip' && scheme !== 'sips' && scheme !== 'tel') return this.#refuse(transaction, 416, 'Unsupported URI Scheme');
    if (core.toTag !== undefined) return this.#onInDialog(transaction);
    if (request.method === 'BYE' || request.method === 'UPDATE' || request.method === 'PRACK') {
      return this.#refuse(transaction, 481, 'Call/Transaction Does Not Exist');
    }
    const merge = mergeKey(core);
    // RFC 3261 §8.2.2.2: the same request by another way.
    if (this.#merged.has(merge)) return this.#refuse(transaction, 482, 'Loop Detected');
    this.#merged.set(merge, transaction);
    this.#offer(transaction, null);
  }

  onCancel(invite: ServerTransaction, cancel: SipRequest): void {
    this.#endUnanswered(invite, cancel);
  }

  onAck(ack: SipRequest, core: CoreHeaders, flow: Flow): void {
    const dialog = this.#dialogs.get(dialogKey(core.callId, core.toTag ?? '', core.fromTag ?? ''));
    if (dialog === undefined) return;
    if (flow.isOpen) dialog.flow = flow;
    if (dialog.acknowledged(core.cseq.number)) this.#listener?.onAck(dialog, ack, flow);
  }

  onServerFailure(transaction: ServerTransaction, why: 'ack-timeout' | 'transport-error'): void {
    const request = this.#incoming.get(transaction);
    this.#settled(transaction);
    if (why === 'transport-error' && request !== undefined && transaction.isInvite) {
      if (request.dialog !== null && !request.dialog.isConfirmed) this.#forget(request.dialog);
      this.#listener?.onCancelled(request, null);
    }
  }

  onResponse(transaction: ClientTransaction, response: SipResponse): void {
    const request = this.#outgoing.get(transaction);
    if (request === undefined) return;
    if (request.wantsCancel && response.status < 200) {
      request.wantsCancel = false;
      this.cancel(request);
    }
    if (response.status > 100) this.#receive(request, response, false);
  }

  onClientFailure(transaction: ClientTransaction, why: 'timeout' | 'transport-error'): void {
    const request = this.#outgoing.get(transaction);
    if (request === undefined) return;
    const [status, reason] = why === 'timeout' ? ([408, 'Request Timeout'] as const) : ([503, 'Service Unavailable'] as const);
    this.#receive(request, makeResponse(request.message, status, reason, newTag()), true);
  }

  onStrayResponse(_response: SipResponse, core: CoreHeaders): void {
    const dialog = this.#dialogs.get(dialogKey(core.callId, core.fromTag ?? '', core.toTag ?? ''));
    const ack = dialog?.acks.get(core.cseq.number);
    if (dialog !== undefined && ack !== undefined) dialog.flow.send(ack);
  }

  // ---- requests

  #onInDialog(transaction: ServerTransaction): void {
    const { core, request, flow } = transaction;
    const dialog = this.#dialogs.get(dialogKey(core.callId, core.toTag ?? '', core.fromTag ?? ''));
    if (dialog === undefined) return this.#refuse(transaction, 481, 'Call/Transaction Does Not Exist');
    if (dialog.state.remoteSeq !== null && core.cseq.number <= dialog.state.remoteSeq) {
      return this.#refuse(transaction, 500, 'CSeq Out Of Order');
    }
    const retryLater = [header('Retry-After', String(randomInt(0, 11)))];
    if (request.method === 'INVITE') {
      if (dialog.hasPendingInvite) return this.#refuse(transaction, 500, 'Server Internal Error', retryLater);
      if (dialog.hasOwnInvite || dialog.awaitsAck) return this.#refuse(transaction, 491, 'Request Pending');
    }
    if (request.method === 'UPDATE' && dialog.hasPendingUpdate) return this.#refuse(transaction, 500, 'Server Internal Error', retryLater);
    dialog.state = { ...dialog.state, remoteSeq: core.cseq.number };
    if (flow.isOpen) dialog.flow = flow;
    if (request.method === 'INVITE') dialog.hasPendingInvite = true;
    if (request.method === 'UPDATE') dialog.hasPendingUpdate = true;
    if (request.method === 'INVITE' || request.method === 'UPDATE') dialog.state = refreshTarget(dialog.state, request);
    if (request.method === 'BYE') this.#onBye(dialog);
    this.#offer(transaction, dialog);
  }

  /** The dialog is over at receipt. On an early dialog the INVITE gets 487 (RFC 3261 §15.1.2). */
  #onBye(dialog: DialogEntry): void {
    this.#forget(dialog);
    if (dialog.isConfirmed) return;
    for (const request of this.#incoming.values()) {
      if (request.dialog === dialog && request.transaction.isInvite) return this.#endUnanswered(request.transaction, null);
    }
  }

  #offer(transaction: ServerTransaction, dialog: DialogEntry | null): void {
    const request = new IncomingRequest(transaction, dialog);
    this.#incoming.set(transaction, request);
    if (transaction.isInvite) this.stack.respond(transaction, makeResponse(transaction.request, 100, 'Trying', ''));
    this.#listener?.onRequest(request);
  }

  #refuse(transaction: ServerTransaction, status: number, reason: string, extra: readonly Header[] = []): void {
    this.stack.respond(transaction, makeResponse(transaction.request, status, reason, transaction.localTag, extra));
  }

  #endUnanswered(invite: ServerTransaction, cancel: SipRequest | null): void {
    const request = this.#incoming.get(invite);
    if (request === undefined) return;
    this.#refuse(invite, 487, 'Request Terminated');
    const { dialog } = request;
    this.#finished(request, 487, '');
    this.#listener?.onCancelled(request, cancel);
    if (dialog !== null && !dialog.isConfirmed) this.#forget(dialog);
  }

  // ---- responses of ours

  #completeResponse(request: IncomingRequest, parts: ResponseParts): SipResponse {
    const { transaction } = request;
    const { method } = transaction.request;
    const establishes = (method === 'INVITE' || method === 'SUBSCRIBE') && parts.status > 100 && parts.status < 300;
    const needsContact =
      !hasHeader(parts, 'contact') &&
      ((establishes && parts.status >= 200) || (request.dialog?.isConfirmed === true && method === 'INVITE'));
    const extra: Header[] = [];
    if (establishes && request.dialog?.isConfirmed !== true) {
      for (const value of getHeaders(transaction.request, 'record-route')) extra.push(header('Record-Route', value));
    }
    if (needsContact) extra.push(header('Contact', contactOf(this.#own(transaction.flow), transaction.flow.transport === 'TLS')));
    return makeResponse(transaction.request, parts.status, parts.reason, transaction.localTag, [...extra, ...parts.headers], parts.body);
  }

  /** The dialog exists before its response goes out, so that nothing that comes back can miss it. */
  #establish(request: IncomingRequest): void {
    if (request.dialog !== null) return;
    const { transaction } = request;
    request.dialog = this.#addDialog(
      uasDialog(transaction.request, transaction.core, transaction.localTag),
      transaction.flow,
      mergeKey(transaction.core),
    );
  }

  #finished(request: IncomingRequest, status: number, text: string): void {
    const { transaction, dialog } = request;
    const isSuccess = status >= 200 && status < 300;
    if (dialog !== null) {
      if (transaction.isInvite) dialog.hasPendingInvite = false;
      if (transaction.request.method === 'UPDATE') dialog.hasPendingUpdate = false;
      if (transaction.isInvite && isSuccess) {
        dialog.isConfirmed = true;
        dialog.answered(transaction.core.cseq.number, text, transaction.flow);
      } else if (transaction.isInvite && !dialog.isConfirmed) this.#forget(dialog);
    }
    this.#settled(transaction);
    if (transaction.isInvite && isSuccess && dialog?.mergeKey === mergeKey(transaction.core)) this.#merged.set(dialog.mergeKey, dialog);
  }

  #settled(transaction: ServerTransaction): void {
    this.#incoming.delete(transaction);
    const merge = mergeKey(transaction.core);
    if (this.#merged.get(merge) === transaction) this.#merged.delete(merge);
  }

  // ---- responses to us

  #receive(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void {
    const { transaction } = request;
    const isFinal = response.status >= 200;
    if (transaction?.isInvite === true && response.status < 300 && !synthesized) this.#onInviteProgress(request, response, isFinal);
    if (isFinal && transaction !== null) {
      if (transaction.isInvite && request.dialog !== null) request.dialog.hasOwnInvite = false;
      // A 2xx may be repeated in Accepted: the INVITE is kept until its transaction ends.
      if (!transaction.isInvite || response.status >= 300) this.#outgoing.delete(transaction);
    }
    const { dialog, message } = request;
    // RFC 3261 §15.1.1; 401 and 407 to our BYE are for the user to answer.
    if (isFinal && message.method === 'BYE' && dialog !== null && response.status !== 401 && response.status !== 407) this.#forget(dialog);
    if (dialog !== null && request.isRefresh) return this.#sessions.onRefreshAnswer(dialog, response);
    if (dialog !== null && setsSession(message.method, response.status)) this.#sessions.settled(dialog, response, true);
    this.#listener?.onResponse(request, response, synthesized);
    if (isFinal && dialog !== null && !dialog.isConfirmed) this.#forget(dialog);
  }

  #onInviteProgress(request: OutgoingRequest, response: SipResponse, isFinal: boolean): void {
    if (request.dialog?.isConfirmed === true) {
      if (isFinal) request.dialog.state = refreshTarget(request.dialog.state, response);
      return;
    }
    const state = uacDialog(request.message, response);
    if (state.remoteTag === '' && !isFinal) return;
    const known = this.#dialogs.get(dialogKey(state.callId, state.localTag, state.remoteTag));
    const entry = known ?? this.#addDialog(state, request.flow, null);
    entry.state = { ...state, localSeq: entry.state.localSeq };
    entry.isConfirmed = isFinal;
    request.dialog = entry;
  }

  // ---- common

  #addDialog(state: ReturnType<typeof uasDialog>, flow: Flow, merge: string | null): DialogEntry {
    const entry = new DialogEntry(state, flow, merge, this.stack.timers, this.stack.timerSettings, (late) =>
      this.#endByOurselves(late, 'SIP;cause=200;text="ACK timeout"'),
    );
    this.#dialogs.set(entry.key, entry);
    return entry;
  }

  /** The user hears of it by the BYE that went out. */
  #endByOurselves(dialog: DialogEntry, reason: string): void {
    const bye = this.hangUp(dialog, reason);
    if (bye !== undefined) this.#listener?.onDialogEnded(dialog, bye);
  }

  #forget(dialog: DialogEntry): void {
    dialog.end();
    if (this.#dialogs.get(dialog.key) === dialog) this.#dialogs.delete(dialog.key);
    if (dialog.mergeKey !== null && this.#merged.get(dialog.mergeKey) === dialog) this.#merged.delete(dialog.mergeKey);
  }

  #flowOf(dialog: DialogEntry, nextHop: string): Flow | SendProblem {
    // RFC 5923: the connection that the peer opened, as long as it lives.
    if (dialog.flow.isOpen && dialog.flow.reliable) return dialog.flow;
    // A Contact that names no transport means the one that the dialog came by: falling back to UDP would send it in clear.
    const target = resolveTarget(nextHop, dialog.flow.transport);
    if (target === undefined) return 'bad-uri';
    const flow = this.flows.open(target);
    if (flow === undefined) return 'no-transport';
    dialog.flow = flow;
    return flow;
  }

  #own(flow: Flow): OwnTransport {
    return { transport: flow.transport, ...this.flows.advertised(flow.transport) };
  }

  #start(message: SipRequest, flow: Flow, dialog: DialogEntry | null): OutgoingRequest {
    return this.#launch(new OutgoingRequest(message, serialize(message), dialog, flow));
  }

  #launch(request: OutgoingRequest): OutgoingRequest {
    const branch = branchOf(request.message);
    // In the next turn, so that the user knows the request before anything comes of it.
    process.nextTick(() => {
      const transaction = this.stack.sendRequest(request.message, branch, request.flow, (created) => {
        request.transaction = created;
        this.#outgoing.set(created, request);
      });
      if (request.wantsCancel && !transaction.isUnanswered) request.wantsCancel = false;
    });
    return request;
  }

  /** A client transaction of ours ended. */
  onClientEnded(transaction: ClientTransaction): void {
    this.#outgoing.delete(transaction);
  }
}

/** RFC 4028: a 2xx to INVITE or UPDATE settles the session timer. */
function setsSession(method: string, status: number): boolean {
  return (method === 'INVITE' || method === 'UPDATE') && status >= 200 && status < 300;
}
