import { randomInt } from 'node:crypto';
import { newUuid } from '../../lib/ids.js';
import {
  endsSubscription,
  ownTransport,
  settleSession,
  subscribed,
  type UserAgentContext,
  type SendProblem,
  OutgoingRequest,
  type OutgoingOwner,
  type RequestToSend,
} from './user-agent-context.js';
import { cancelOf, composeRequest, contactOf, viaOf, withoutTag } from './compose.js';
import { newTag } from '../../lib/ids.js';
import type { DialogEntry } from '../dialog/dialog-table.js';
import { dialogKey, refreshTarget, routingOf, uacDialog, type Dialog } from '../dialog/dialog.js';
import { cseqNumber, parseCSeq, type CoreHeaders } from '../message/core-headers.js';
import { changed, getHeader, getList, header, type Header, type SipRequest, type SipResponse, serialize } from '../message/message.js';
import { tagOf, uriScheme } from '../message/uri.js';
import { insteadOfUdp, resolveTarget } from '../transport/service-location.js';
import { RegisteredFlows } from './registered-flows.js';
import { makeResponse } from '../stack.js';
import type { ServerTransaction } from '../transaction/transaction-runner.js';
import type { Flow, PeerTls, Target } from '../transport/flow.js';

/** A 481 to them is the dialog's end; others may mean a subscription (RFC 5057 §5.1). */
const SHOWS_DIALOG = new Set(['INVITE', 'UPDATE', 'OPTIONS']);
/** No server is left alone for longer, whatever it asks for. */
const MAX_REST_MS = 300_000;
const WANTS_CONTACT = new Set(['INVITE', 'SUBSCRIBE', 'REFER', 'UPDATE']);

export interface ClientEnds {
  /** Sends BYE with this Reason and notifies the user. */
  endByOurselves(dialog: DialogEntry, reason: string): void;
  /** Processes a request that arrived too early. */
  takeAgain(transaction: ServerTransaction): void;
}

/** RFC 3261 §8.1: our requests, their dialogs, and the responses for the user. */
export class UserAgentClient implements OutgoingOwner {
  /** Connections that peers registered over, for requests to their Contact. */
  readonly registered: RegisteredFlows;

  constructor(
    private readonly context: UserAgentContext,
    private readonly ends: ClientEnds,
  ) {
    this.registered = new RegisteredFlows(context.stack.timers);
  }

  /** Sends a request outside dialogs. */
  send(uri: string, parts: RequestToSend, routeUri: string | null): OutgoingRequest | SendProblem {
    const registered = routeUri === null ? this.registered.find(uri) : undefined;
    const target = registered === undefined ? targetOf(routeUri ?? uri, parts) : null;
    if (target === undefined) return 'bad-uri';
    const flow = registered ?? (target === null ? undefined : this.context.flows.open(target));
    if (flow === undefined) return 'no-transport';
    const own = contactOf(this.#own(flow), uriScheme(uri) === 'sips');
    const from = getHeader(parts, 'from') ?? own;
    const callId = getHeader(parts, 'call-id');
    const again = callId === undefined ? undefined : sentBefore(parts);
    const message = composeRequest(this.#own(flow), parts, {
      uri,
      from: `${withoutTag(from)};tag=${again?.tag ?? newTag()}`,
      to: getHeader(parts, 'to') ?? `<${uri}>`,
      callId: callId ?? newUuid(),
      cseq: again?.cseq ?? randomInt(1, 2 ** 30),
      contact: parts.method === 'INVITE' || parts.method === 'SUBSCRIBE' ? own : null,
      route: [],
    });
    if (parts.method === 'SUBSCRIBE') this.context.earlyNotifies.set(earlyNotifyKey(message), []);
    const request = new OutgoingRequest(message, serialize(message), null, flow, this);
    request.target = target;
    // A peer that registered over UDP may be behind a NAT, unreachable by TCP.
    if (registered === undefined) this.#preferTcp(request, routeUri ?? uri);
    return this.#launch(request);
  }

  /** Sends a request in a dialog; `ACK` without a transaction, for the INVITE with this CSeq number. */
  sendInDialog(dialog: DialogEntry, parts: RequestToSend, ackSeq = dialog.ownInviteSeq): OutgoingRequest | SendProblem {
    const isAck = parts.method === 'ACK';
    const { isOwner, isAwake } = this.context.dialogs;
    if (!isAck && dialog.isWritten && (!isAwake || (parts.method !== 'BYE' && !isOwner))) return 'not-owner';
    if (parts.isPublicOnly === true) dialog.isPublicOnly = true;
    const routing = routingOf(dialog.state);
    const flow = this.#flowOf(dialog, routing.nextHop, parts.tls);
    if (typeof flow === 'string') return flow;
    if (!isAck) dialog.state = { ...dialog.state, localSeq: dialog.state.localSeq + 1 };
    if (parts.method === 'INVITE') {
      dialog.hasOwnInvite = true;
      dialog.beginsInvite(dialog.state.localSeq);
    }
    if (parts.method === 'BYE') dialog.isEnding = true;
    // Before it leaves, so that a later process uses no number twice and acknowledges this INVITE.
    if (!isAck) this.context.dialogs.save(dialog);
    const message = composeRequest(this.#own(flow), parts, {
      uri: routing.requestUri,
      from: dialog.state.local,
      to: dialog.state.remote,
      callId: dialog.state.callId,
      // RFC 3261 §13.2.2.4: the ACK has its INVITE's CSeq number.
      cseq: isAck ? ackSeq : dialog.state.localSeq,
      contact: WANTS_CONTACT.has(parts.method) ? contactOf(this.#own(flow), uriScheme(dialog.state.remoteTarget) === 'sips') : null,
      route: routing.route,
    });
    const sent = new OutgoingRequest(message, serialize(message), dialog, flow, this);
    if (isAck) return this.#acknowledge(dialog, sent, ackSeq);
    this.#preferTcp(sent, routing.nextHop);
    return this.#launch(sent);
  }

  /** Cancels our INVITE: immediately after a provisional response, otherwise on its arrival (RFC 3261 §9.1). Returns the CANCEL. */
  cancel(request: OutgoingRequest, extra: readonly Header[] = []): OutgoingRequest | undefined {
    const { transaction } = request;
    const isBetweenServers = transaction === null && request.refusal !== null;
    const isUnanswered = isBetweenServers
      ? request.message.method === 'INVITE'
      : transaction?.isInvite === true && transaction.isUnanswered;
    if (!isUnanswered || request.cancel !== null) return undefined;
    const message = cancelOf(request.message, extra);
    const cancel = new OutgoingRequest(message, serialize(message), null, request.flow, this);
    request.cancel = cancel;
    if (transaction?.isProceeding === true) this.#launchCancel(request, cancel);
    return cancel;
  }

  /** A 2xx to an INVITE without a transaction: the ACK was lost, or nobody waits for it any more. */
  onStrayResponse(response: SipResponse, core: CoreHeaders, flow: Flow): void {
    const dialog = this.context.dialogs.find(core.callId, core.fromTag ?? '', core.toTag ?? '');
    if (dialog === undefined) return this.#endUnknown(response, core, flow);
    if (!dialog.admits(flow)) return;
    const body = dialog.ackBodyFor(core.cseq.number);
    if (body === null) return dialog.repeatAck(core.cseq.number);
    dialog.heardBy(flow);
    const headers = body === '' ? [] : [header('Content-Type', 'application/sdp')];
    this.sendInDialog(dialog, { method: 'ACK', headers, body }, core.cseq.number);
  }

  onResponse(request: OutgoingRequest, response: SipResponse): void {
    const { cancel } = request;
    if (cancel !== null && cancel.transaction === null && response.status < 200) this.#launchCancel(request, cancel);
    if (response.status === 503 && this.#movesOn(request, { response, isOurs: false })) return;
    if (response.status > 100) this.#receive(request, response, false);
  }

  onFailure(request: OutgoingRequest, why: 'timeout' | 'transport-error'): void {
    // Only its ACK was lost: the user has the response.
    if (request.hasFinal || this.#fallBack(request)) return;
    const { flow, message } = request;
    const limitMs = 64 * this.context.stack.timerSettings.t1Ms;
    const cause = why === 'timeout' ? `no response within ${String(limitMs / 1_000)} s` : (flow.failure ?? 'the connection broke');
    const ours = (status: number, phrase: string): SipResponse => makeResponse(message, status, phrase, newTag(), [warningOf(cause)]);
    const unavailable = (): SipResponse => ours(503, 'Service Unavailable');
    // TLS 1.3: the first server may refuse our certificate after the handshake.
    const refusal = request.refusal ?? (flow.wasRefused === true ? { response: unavailable(), isOurs: true } : null);
    if (refusal !== null && flow.wasConnected === false) {
      if (!this.#movesOn(request, refusal)) this.#receive(request, refusal.response, refusal.isOurs);
      return;
    }
    // The peer may have taken an INVITE whose connection is lost, on either side's connection: it must not go elsewhere.
    const wasWritten = flow.reliable && flow.wasConnected !== false;
    const isInDoubt = why === 'timeout' || (wasWritten && message.method === 'INVITE' && !request.isInDialog);
    this.#receive(request, isInDoubt ? ours(408, 'Request Timeout') : unavailable(), true);
  }

  onEnded(request: OutgoingRequest): void {
    this.#forgetEarly(request);
  }

  #receive(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void {
    const { message } = request;
    const isFinal = response.status >= 200;
    request.hasProgress ||= !isFinal;
    if (!synthesized && response.status < 300 && !this.#onProgress(request, response, isFinal)) return;
    request.hasFinal ||= isFinal;
    const { dialog } = request;
    if (dialog !== null && isFinal) {
      if (message.method === 'INVITE') dialog.hasOwnInvite = false;
      const isLast = endsSubscription(dialog, message.method, getHeader(message, 'subscription-state'));
      const isBye = message.method === 'BYE';
      const isChallenged = isBye && (response.status === 401 || response.status === 407);
      if (isChallenged) this.#forgetUnlessEnded(dialog);
      // RFC 3261 §15.1.1, §12.2.1.2
      else if (isLast || isBye || (response.status === 481 && SHOWS_DIALOG.has(message.method) && !request.isRefresh))
        this.context.dialogs.forget(dialog);
    }
    if (dialog !== null && request.isRefresh) {
      this.context.sessions.onRefreshAnswer(dialog, message, response);
      return this.context.dialogs.save(dialog);
    }
    if (dialog !== null) settleSession(this.context, dialog, message.method, response, message);
    if (dialog !== null && isFinal) this.context.dialogs.save(dialog);
    this.context.listener?.onResponse(request, response, synthesized);
    if (response.status >= 300) this.#forgetEarly(request);
    if (isFinal && message.method === 'SUBSCRIBE' && !request.isInDialog) this.#takeEarlyNotifies(request);
  }

  /**
   * RFC 3263 §4.3: the next server gets the same request under a new branch, if this one certainly did not take it. Without another one
   * the user gets the refusal. False: it stays here.
   */
  #movesOn(request: OutgoingRequest, refusal: NonNullable<OutgoingRequest['refusal']>): boolean {
    const { target, flow, tried } = request;
    const { flows } = this.context;
    const isUntaken = !request.hasProgress && request.cancel === null;
    if (flows.openNext === undefined || target === null || target.transport === 'UDP' || !isUntaken) return false;
    const restMs = flow.wasConnected === false ? 0 : retryAfterMs(refusal.response);
    tried.push(flow.remote);
    request.refusal = refusal;
    request.transaction = null;
    const goOn = (next: Flow | undefined): void => {
      // The user gave up meanwhile.
      if (next === undefined || request.cancel !== null) return this.#receive(request, refusal.response, refusal.isOurs);
      request.flow = next;
      request.message = changed(request.message, { headers: [viaOf(this.#own(next)), ...request.message.headers.slice(1)] });
      request.text = serialize(request.message);
      this.#launch(request);
    };
    flows.openNext(target, tried, flow, restMs).then(goOn, () => goOn(undefined));
    return true;
  }

  /** Lets the user answer a 401 or 407 to BYE; without credentials it sends no other. */
  #forgetUnlessEnded(dialog: DialogEntry): void {
    const { timers, timerSettings } = this.context.stack;
    timers.start(64 * timerSettings.t1Ms, () => this.context.dialogs.forget(dialog));
  }

  /** In a later turn, so that the user gets the response to SUBSCRIBE first. */
  #takeEarlyNotifies(subscribe: OutgoingRequest): void {
    const key = earlyNotifyKey(subscribe.message);
    const early = this.context.earlyNotifies.get(key) ?? [];
    this.context.earlyNotifies.delete(key);
    for (const transaction of early) setImmediate(() => this.ends.takeAgain(transaction));
  }

  /** Updates dialogs after a provisional response or 2xx. False for a copy, which the user does not need. */
  #onProgress(request: OutgoingRequest, response: SipResponse, isFinal: boolean): boolean {
    const { method } = request.message;
    if (method !== 'INVITE' && method !== 'SUBSCRIBE') return true;
    if (request.isInDialog) return this.#onDialogProgress(request, response, isFinal);
    if (method === 'SUBSCRIBE' && !isFinal) return true;
    const state = uacDialog(request.message, response);
    if (state.remoteTag === '' && !isFinal) return true;
    const known = this.#knownDialog(request, state);
    const entry =
      known ?? this.context.dialogs.add(state, request.byUdp?.flow ?? request.flow, method === 'INVITE' ? 'invite' : 'subscribe', null);
    if (known === undefined) entry.ownInviteSeq = state.localSeq;
    request.forks.add(entry);
    if (isFinal && request.hasFinal) return this.#onOtherSuccess(request, entry);
    if (!isFinal && isCopy(entry, response)) return false;
    entry.state = { ...state, localSeq: entry.state.localSeq, remoteSeq: entry.state.remoteSeq };
    entry.isConfirmed ||= isFinal;
    entry.userData = request.userData;
    entry.isCancelled = isFinal && request.cancel !== null;
    entry.isPublicOnly ||= request.target?.isPublicOnly === true;
    request.dialog = entry;
    if (isFinal && method === 'SUBSCRIBE') subscribed(entry, request.message, response);
    return true;
  }

  /** Also the one that answered and has ended since: its 2xx may come again. */
  #knownDialog({ dialog, hasFinal }: OutgoingRequest, { callId, localTag, remoteTag }: Dialog): DialogEntry | undefined {
    if (hasFinal && dialog?.key === dialogKey(callId, localTag, remoteTag)) return dialog;
    return this.context.dialogs.find(callId, localTag, remoteTag);
  }

  #onDialogProgress(request: OutgoingRequest, response: SipResponse, isFinal: boolean): boolean {
    const { dialog, message } = request;
    if (dialog === null || !isFinal) return true;
    if (request.hasFinal) {
      dialog.repeatAck(cseqNumber(message));
      return false;
    }
    dialog.state = refreshTarget(dialog.state, response);
    if (message.method === 'SUBSCRIBE') subscribed(dialog, message, response);
    return true;
  }

  /** RFC 3261 §13.2.2.4: a retransmitted 2xx gets its ACK again; that of another fork gets ACK and BYE. */
  #onOtherSuccess(request: OutgoingRequest, entry: DialogEntry): false {
    if (entry === request.dialog) {
      entry.repeatAck(entry.ownInviteSeq);
      return false;
    }
    this.#endAnswered(entry, 'SIP;cause=200;text="Answered elsewhere"', credentialsOf(request.message));
    return false;
  }

  /** @param credentials of the INVITE, for its ACK (RFC 3261 §13.2.2.4, §22.3) */
  #endAnswered(entry: DialogEntry, reason: string, credentials: readonly Header[]): void {
    entry.isConfirmed = true;
    this.sendInDialog(entry, { method: 'ACK', headers: credentials, body: '' });
    this.sendInDialog(entry, { method: 'BYE', headers: [header('Reason', reason)], body: '' });
    this.context.dialogs.forget(entry);
  }

  /**
   * RFC 3261 §13.2.2.4: a 2xx to an INVITE of an earlier process, or one that was given up. Both answers go over the connection that it
   * came by, whatever its Contact: nobody is made to call others.
   */
  #endUnknown(response: SipResponse, core: CoreHeaders, flow: Flow): void {
    const { dialogs } = this.context;
    const { fromTag, toTag } = core;
    if (!dialogs.isComplete || !flow.reliable || fromTag === undefined || toTag === undefined) return;
    const { address, port } = this.#own(flow);
    const isOurs = core.topVia.host === address.toLowerCase() && core.topVia.port === port && getList(response, 'via').length === 1;
    if (!isOurs || getHeader(response, 'contact') === undefined) return;
    const end = (isElsewhere: boolean): void => {
      if (isElsewhere || !flow.isOpen) return;
      const state = uacDialog({ kind: 'request', method: 'INVITE', uri: '', headers: response.headers, body: '' }, response);
      const entry = dialogs.add(state, flow, 'invite', null);
      entry.ownInviteSeq = state.localSeq;
      this.#endAnswered(entry, 'SIP;cause=503;text="Nobody waits for this answer"', []);
    };
    const isElsewhere = dialogs.isElsewhere({ ...core, fromTag: toTag, toTag: fromTag });
    if (isElsewhere === false) return end(false);
    void isElsewhere.then(end);
  }

  #acknowledge(dialog: DialogEntry, ack: OutgoingRequest, cseq: number): OutgoingRequest {
    dialog.keepAck(cseq, ack.text, ack.message.body);
    this.context.dialogs.save(dialog);
    ack.flow.send(ack.text);
    if (dialog.isCancelled) {
      dialog.isCancelled = false;
      process.nextTick(() => this.ends.endByOurselves(dialog, 'SIP;cause=200;text="ACK-BYE due to cancel race condition"'));
    }
    return ack;
  }

  #forgetEarly(request: OutgoingRequest): void {
    for (const fork of request.forks) if (!fork.isConfirmed) this.context.dialogs.forget(fork);
  }

  /** RFC 3261 §18.1.1: sends a request too long for UDP over TCP, with a matching Via, if the peer accepts. */
  #preferTcp(request: OutgoingRequest, nextHop: string): void {
    if (request.flow.transport !== 'UDP') return;
    const target = insteadOfUdp(nextHop, request.text.length);
    const flow = target === undefined ? undefined : this.context.flows.open(target);
    if (flow === undefined) return;
    const { message, text } = request;
    request.byUdp = { message, text, flow: request.flow };
    request.message = changed(message, { headers: [viaOf(this.#own(flow)), ...message.headers.slice(1)] });
    request.text = serialize(request.message);
    request.flow = flow;
  }

  /** TCP failed: sends over UDP, with that message's own branch, unless cancelled. */
  #fallBack(request: OutgoingRequest): boolean {
    const { byUdp } = request;
    if (byUdp === null || request.flow.wasConnected !== false || request.cancel !== null) return false;
    Object.assign(request, byUdp);
    request.byUdp = null;
    this.#launch(request);
    return true;
  }

  #flowOf(dialog: DialogEntry, nextHop: string, given: PeerTls | undefined): Flow | SendProblem {
    // RFC 5923: reuses the peer's connection.
    if (dialog.flow.isOpen && dialog.flow.reliable) return dialog.flow;
    // A Contact without a transport means the dialog's: UDP would send it in clear.
    const target = resolveTarget(nextHop, dialog.flow.transport);
    if (target === undefined) return 'bad-uri';
    // An encrypted dialog never continues in clear, whatever the Contact: a re-INVITE holds the media keys.
    if (dialog.flow.transport === 'TLS' && target.transport !== 'TLS') return 'no-transport';
    const tls = given ?? dialog.flow.peerTls;
    const { isPublicOnly } = dialog;
    const flow = this.context.flows.open({ ...target, ...(tls === undefined ? {} : { tls }), ...(isPublicOnly ? { isPublicOnly } : {}) });
    if (flow === undefined) return 'no-transport';
    dialog.flow = flow;
    return flow;
  }

  #own(flow: Flow): ReturnType<typeof ownTransport> {
    return ownTransport(this.context.flows, flow);
  }

  #launchCancel(request: OutgoingRequest, cancel: OutgoingRequest): void {
    this.#launch(cancel);
    request.transaction?.cancelled();
  }

  #launch(request: OutgoingRequest): OutgoingRequest {
    request.transaction = this.context.stack.sendRequest(request.message, request.text, request.flow, request);
    // In the next turn, so that the user has the request before its events.
    process.nextTick(() => request.transaction?.start());
    return request;
  }
}

const MAX_WARNING = 600;

/** RFC 3261 §20.43, for the user: why there is no response. A peer's certificate may say anything. */
function warningOf(cause: string): Header {
  const text = cause
    .slice(0, MAX_WARNING)
    .replace(/["\\]/g, "'")
    .replace(/[^\x20-\x7e]/g, '?');
  return header('Warning', `399 sip-server "${text}"`);
}

function credentialsOf({ headers }: SipRequest): readonly Header[] {
  return headers.filter(({ id }) => id === 'authorization' || id === 'proxy-authorization');
}

/** A peer that is called again and again. */
function targetOf(nextHop: string, { tls, isPublicOnly }: RequestToSend): Target | undefined {
  const target = resolveTarget(nextHop);
  return target && { ...target, ...(tls === undefined ? {} : { tls }), ...(isPublicOnly === true ? { isPublicOnly } : {}), isKept: true };
}

/** RFC 3261 §21.5.4: how long a server wants no other requests; 0: it does not say. */
function retryAfterMs(response: SipResponse): number {
  const seconds = /^\s*(\d{1,9})/.exec(getHeader(response, 'retry-after') ?? '')?.[1];
  return Math.min(1_000 * Number(seconds ?? 0), MAX_REST_MS);
}

/** RFC 3261 §8.1.3.5: for a request sent again, as after a challenge, the user sets the same Call-ID and From tag, and the next CSeq. */
function sentBefore(parts: RequestToSend): { readonly tag: string; readonly cseq: number } | undefined {
  const tag = tagOf(getHeader(parts, 'from') ?? '');
  const cseq = parseCSeq(getHeader(parts, 'cseq'));
  return tag === undefined || cseq?.method !== parts.method ? undefined : { tag, cseq: cseq.number };
}

/** Whether a reliable provisional response is retransmitted or out of order (RFC 3262 §4). */
function isCopy(dialog: DialogEntry, response: SipResponse): boolean {
  const text = getHeader(response, 'rseq');
  if (text === undefined) return false;
  const rseq = Number(text);
  if (dialog.remoteRSeq !== null && rseq !== dialog.remoteRSeq + 1) return true;
  dialog.remoteRSeq = rseq;
  return false;
}

function earlyNotifyKey(subscribe: SipRequest): string {
  return `${getHeader(subscribe, 'call-id') ?? ''}|${tagOf(getHeader(subscribe, 'from') ?? '') ?? ''}`;
}
