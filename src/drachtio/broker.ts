import { randomInt } from 'node:crypto';
import { formatHostPort } from '../lib/host-port.js';
import { newUuid } from '../lib/ids.js';
import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import type { QueuedTimer, TimerQueue } from '../lib/timer-queue.js';
import type { DialogEntry } from '../sip/dialog-entry.js';
import { getHeader, hasHeader, header, type Header, type SipRequest, type SipResponse } from '../sip/message/message.js';
import { tagOf } from '../sip/message/name-addr.js';
import { serialize } from '../sip/message/serialize.js';
import { parseSipUri } from '../sip/message/uri.js';
import type { Endpoint, Flow, TransportName } from '../sip/transport/flow.js';
import type { IncomingRequest, OutgoingRequest } from '../sip/exchanges.js';
import type { SendProblem, UserAgent, UserAgentListener } from '../sip/user-agent.js';
import type { AppConnection } from './app-connection.js';
import { arrangeHeaders, parseAppMessage, type AppMessage } from './app-message.js';
import { formatRequestSent, formatResponseSent, frameTime, type AppCommand } from './meta-line.js';
import { dialogIdOf, dialogIdOfEntry, outgoingDialogId, peerOf, sentTo, syntheticCancel } from './naming.js';
import { Router } from './router.js';

export interface BrokerOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly timers: TimerQueue;
  /** What Contact and `@localhost` name for a transport. */
  readonly advertised: (transport: TransportName) => Endpoint;
  /** Whether a host and port are our own. */
  readonly isSelf: (host: string, port: number | null) => boolean;
  /** How long an application may leave a request without any answer before the caller gets 500. */
  readonly silenceTimeoutMs: number;
}

interface Pending {
  readonly transactionId: string;
  readonly request: IncomingRequest;
  readonly app: AppConnection;
  silence: QueuedTimer | undefined;
}

interface Call {
  readonly id: string;
  readonly entry: DialogEntry;
  readonly app: AppConnection;
  /** The transaction id of the initial INVITE, which its ACK carries. */
  readonly inviteTransactionId: string;
}

const ROUTABLE = new Set(['INVITE', 'REGISTER', 'MESSAGE', 'OPTIONS', 'INFO', 'NOTIFY', 'SUBSCRIBE', 'PUBLISH', 'REFER']);
const FROM_REQUEST = new Set(['from', 'to', 'call-id', 'cseq', 'max-forwards']);
const NOTHING: ReadonlySet<string> = new Set();

/** Between the SIP user agent and the applications: who gets which request, and what an application's frames make happen. */
export class Broker implements UserAgentListener {
  readonly #router = new Router<AppConnection>();
  readonly #pending = new Map<string, Pending>();
  readonly #byRequest = new Map<IncomingRequest, Pending>();
  readonly #calls = new Map<string, Call>();
  readonly #byEntry = new Map<DialogEntry, Call>();
  readonly #outgoing = new Map<string, { readonly request: OutgoingRequest; readonly app: AppConnection }>();
  readonly #byOutgoing = new Map<OutgoingRequest, { readonly transactionId: string; readonly app: AppConnection }>();

  constructor(
    private readonly userAgent: UserAgent,
    private readonly options: BrokerOptions,
  ) {
    userAgent.attach(this);
  }

  /** What is kept, for tests and metrics: all zero when nothing is going on. */
  get counts(): { pending: number; calls: number; outgoing: number } {
    return { pending: this.#pending.size, calls: this.#calls.size, outgoing: this.#outgoing.size };
  }

  // ---- from the applications

  onCommand(app: AppConnection, command: AppCommand): void {
    switch (command.verb) {
      case 'ping':
        return app.answer(command.id, 'OK', 'pong');
      case 'route':
        this.#router.add(command.method, app);
        return app.answer(command.id, 'OK');
      case 'remove_route':
        this.#router.remove(command.method, app);
        return app.answer(command.id, 'OK');
      case 'sip':
        return this.#onSip(app, command);
      case 'proxy':
        return app.answer(command.id, 'NOK', 'proxy is not supported by this server');
      case 'invalid':
        return app.refuse(command.id, command.reason);
      case 'authenticate':
        return app.refuse(command.id, 'already authenticated');
    }
  }

  /** The application is gone: nobody is left to answer its requests or to end its calls, so both are ended here. */
  onAppGone(app: AppConnection): void {
    this.#router.removeAll(app);
    for (const pending of [...this.#pending.values()]) {
      if (pending.app !== app) continue;
      this.#settle(pending);
      const isInvite = pending.request.transaction.isInvite;
      this.userAgent.respond(pending.request, {
        status: isInvite ? 503 : 500,
        reason: isInvite ? 'Service Unavailable' : 'Server Internal Error',
        headers: isInvite ? [header('Retry-After', '1')] : [],
        body: '',
      });
    }
    for (const [id, { request, app: owner }] of [...this.#outgoing]) {
      if (owner !== app) continue;
      this.#outgoing.delete(id);
      this.#byOutgoing.delete(request);
      this.userAgent.cancel(request);
    }
    for (const call of [...this.#calls.values()]) {
      if (call.app !== app) continue;
      // A BYE of the application's that is under way ends the call as well.
      if (!call.entry.isEnding) this.userAgent.hangUp(call.entry, 'SIP;cause=503;text="application gone"');
      this.#dropCall(call);
    }
  }

  #onSip(app: AppConnection, command: Extract<AppCommand, { verb: 'sip' }>): void {
    const message = parseAppMessage(command.text);
    if (message === undefined) {
      const start = command.text.split('\r\n', 1)[0] ?? '';
      return app.answer(command.id, 'NOK', `invalid request-uri: ${start}`);
    }
    if (message.kind === 'response') return this.#onAppResponse(app, command.id, command.transactionId, message);
    if (message.body !== '' && !hasHeader(message, 'content-type') && !message.body.startsWith('v=0')) {
      return app.answer(command.id, 'NOK', 'missing content-type');
    }
    if (command.dialogId !== '') return this.#onAppInDialog(app, command.id, command.dialogId, message);
    if (message.method === 'CANCEL') return this.#onAppCancel(app, command.id, command.transactionId, message);
    if (message.method === 'ACK') {
      return app.answer(command.id, 'NOK', 'Server error: ACK for non-success final response is automatically generated by server');
    }
    const byCallId = this.#callByCallId(getHeader(message, 'call-id'));
    if (byCallId !== undefined) return this.#onAppInDialog(app, command.id, byCallId.id, message);
    this.#onAppRequest(app, command.id, command.routeUrl, message);
  }

  #onAppResponse(app: AppConnection, id: string, transactionId: string, message: Extract<AppMessage, { kind: 'response' }>): void {
    // The protocol closes here: the application has lost track of what it answers.
    if (transactionId === '') return app.refuse(id, 'transaction id missing');
    const pending = this.#pending.get(transactionId);
    if (pending?.app !== app) return app.answer(id, 'NOK', 'Response not sent due to unknown transaction');
    const { request } = pending;
    if (request.message.method === 'CANCEL') {
      return app.answer(id, 'NOK', '200 OK to incoming CANCEL is automatically generated by the stack');
    }
    const cseq = getHeader(message, 'cseq');
    if (cseq !== undefined && cseq !== getHeader(request.message, 'cseq')) return this.#badResponse(app, id, pending);
    const { flow } = request;
    const own = this.options.advertised(flow.transport);
    const text = this.userAgent.respond(request, {
      status: message.status,
      reason: message.reason,
      headers: arrangeHeaders(message.headers, message.body, formatHostPort(own.address, own.port), FROM_REQUEST),
      body: message.body,
      localTag: tagOf(getHeader(message, 'to') ?? ''),
    });
    if (text === undefined) return app.answer(id, 'NOK', 'Response not sent due to unknown transaction');
    const dialogId =
      request.message.method === 'BYE' || (!request.transaction.isInvite && request.dialog === null) ? '' : dialogIdOf(request);
    this.#afterResponse(pending, message.status);
    app.payload(formatResponseSent(newUuid(), id, { peer: peerOf(flow), time: this.#time(), transactionId, text }, dialogId));
  }

  /** A response that cannot be this transaction's: the caller is not left waiting. */
  #badResponse(app: AppConnection, id: string, pending: Pending): void {
    this.#settle(pending);
    this.userAgent.respond(pending.request, { status: 500, reason: 'Server Internal Error', headers: [], body: '' });
    app.answer(id, 'NOK', 'Unknown server error sending response');
  }

  #afterResponse(pending: Pending, status: number): void {
    const { request } = pending;
    this.#quiet(pending);
    if (status < 200) return;
    this.#settle(pending);
    const { dialog } = request;
    if (!request.transaction.isInvite || dialog === null || status >= 300 || this.#byEntry.has(dialog)) return;
    this.#addCall({ id: dialogIdOf(request), entry: dialog, app: pending.app, inviteTransactionId: pending.transactionId });
  }

  #onAppInDialog(app: AppConnection, id: string, dialogId: string, message: Extract<AppMessage, { kind: 'request' }>): void {
    const call = this.#calls.get(dialogId);
    if (call === undefined) {
      const why =
        message.method === 'ACK'
          ? 'Server error: ACK for non-success final response is automatically generated by server'
          : 'Server error: unable to find dialog for dialog id provided';
      return app.answer(id, 'NOK', why);
    }
    const own = this.options.advertised(call.entry.flow.transport);
    const sent = this.userAgent.sendInDialog(call.entry, {
      method: message.method,
      headers: arrangeHeaders(message.headers, message.body, formatHostPort(own.address, own.port), NOTHING),
      body: message.body,
    });
    this.#sent(app, id, sent, message);
  }

  #onAppCancel(app: AppConnection, id: string, transactionId: string, message: Extract<AppMessage, { kind: 'request' }>): void {
    const known = this.#outgoing.get(transactionId);
    const extra: Header[] = message.headers.filter(({ id: name }) => name === 'reason');
    const sent = known === undefined ? undefined : this.userAgent.cancel(known.request, extra);
    if (sent === undefined) return app.answer(id, 'NOK', `unable to cancel unknown transaction id: ${transactionId}`);
    app.payload(
      formatRequestSent(newUuid(), id, { peer: sentTo(sent.flow), time: this.#time(), transactionId: newUuid(), text: sent.text }),
    );
  }

  #onAppRequest(app: AppConnection, id: string, routeUrl: string, message: Extract<AppMessage, { kind: 'request' }>): void {
    const uri = parseSipUri(message.uri);
    if (uri !== undefined && routeUrl === '' && this.options.isSelf(uri.host, uri.port)) {
      return app.answer(id, 'NOK', 'can not send request to myself');
    }
    const own = this.options.advertised('TLS');
    const sent = this.userAgent.send(
      message.uri,
      {
        method: message.method,
        headers: arrangeHeaders(message.headers, message.body, formatHostPort(own.address, own.port), NOTHING),
        body: message.body,
      },
      routeUrl === '' ? null : routeUrl,
    );
    this.#sent(app, id, sent, message);
  }

  /** The answer to a request frame goes out before anything that comes of the request: the application learns the id from it. */
  #sent(app: AppConnection, id: string, sent: OutgoingRequest | SendProblem, message: Extract<AppMessage, { kind: 'request' }>): void {
    if (sent === 'bad-uri') return app.answer(id, 'NOK', `invalid request-uri: ${message.method} ${message.uri} SIP/2.0`);
    if (sent === 'no-transport') return app.answer(id, 'NOK', 'requested protocol/transport not available');
    const transactionId = newUuid();
    if (message.method !== 'ACK') {
      this.#outgoing.set(transactionId, { request: sent, app });
      this.#byOutgoing.set(sent, { transactionId, app });
    }
    app.payload(formatRequestSent(newUuid(), id, { peer: sentTo(sent.flow), time: this.#time(), transactionId, text: sent.text }));
  }

  // ---- from the user agent

  onRequest(request: IncomingRequest): void {
    const app = request.dialog === null ? this.#choose(request) : this.#byEntry.get(request.dialog)?.app;
    if (app === undefined) {
      // In a dialog whose application is gone, or for which none was found: `choose` has answered the latter.
      if (request.dialog !== null) this.#refuse(request, 481, 'Call/Transaction Does Not Exist');
      return;
    }
    const pending: Pending = { transactionId: newUuid(), request, app, silence: undefined };
    pending.silence = this.options.timers.start(this.options.silenceTimeoutMs, () => this.#onSilence(pending));
    this.#pending.set(pending.transactionId, pending);
    this.#byRequest.set(request, pending);
    const text = serialize(request.message);
    app.sip({
      source: 'network',
      sizeBytes: text.length,
      peer: peerOf(request.flow),
      time: this.#time(),
      transactionId: pending.transactionId,
      dialogId: request.dialog === null ? '' : dialogIdOfEntry(request.dialog),
      receivedOn: request.dialog === null ? request.flow.local : null,
      text,
    });
    if (request.message.method === 'BYE' && request.dialog !== null) {
      const call = this.#byEntry.get(request.dialog);
      if (call !== undefined) this.#dropCall(call);
    }
  }

  onCancelled(request: IncomingRequest, cancel: SipRequest | null): void {
    const pending = this.#byRequest.get(request);
    if (pending === undefined) return;
    this.#settle(pending);
    const text = serialize(cancel ?? syntheticCancel(request.message));
    pending.app.sip({
      source: 'network',
      sizeBytes: text.length,
      peer: peerOf(request.flow),
      time: this.#time(),
      transactionId: pending.transactionId,
      dialogId: request.isTagged && request.dialog !== null ? dialogIdOf(request) : '',
      receivedOn: null,
      text,
    });
  }

  onAck(dialog: DialogEntry, ack: SipRequest, flow: Flow): void {
    const call = this.#byEntry.get(dialog);
    if (call === undefined) return;
    const text = serialize(ack);
    const isInitial = dialog.state.role === 'uas' && !this.#acknowledged.has(dialog);
    this.#acknowledged.add(dialog);
    call.app.sip({
      source: 'network',
      sizeBytes: text.length,
      peer: peerOf(flow),
      time: this.#time(),
      transactionId: isInitial ? call.inviteTransactionId : newUuid(),
      dialogId: call.id,
      receivedOn: null,
      text,
    });
  }

  onResponse(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void {
    const known = this.#byOutgoing.get(request);
    if (known === undefined) return;
    const isInvite = request.message.method === 'INVITE';
    const { dialog } = request;
    if (isInvite && response.status < 300 && dialog !== null && dialog.isConfirmed && !this.#byEntry.has(dialog)) {
      this.#addCall({ id: dialogIdOfEntry(dialog), entry: dialog, app: known.app, inviteTransactionId: known.transactionId });
    }
    const text = serialize(response);
    known.app.sip({
      source: 'network',
      sizeBytes: synthesized ? 0 : text.length,
      peer: synthesized ? { protocol: request.flow.transport.toLowerCase(), address: '', port: 0 } : peerOf(request.flow),
      time: this.#time(),
      transactionId: known.transactionId,
      dialogId: dialog !== null ? dialogIdOfEntry(dialog) : isInvite ? outgoingDialogId(request.message) : '',
      receivedOn: null,
      text,
    });
    if (response.status < 200) return;
    this.#byOutgoing.delete(request);
    this.#outgoing.delete(known.transactionId);
    if (request.message.method === 'BYE' && dialog?.isEnded === true) {
      const call = this.#byEntry.get(dialog);
      if (call !== undefined) this.#dropCall(call);
    }
  }

  onDialogEnded(dialog: DialogEntry, bye: SipRequest): void {
    const call = this.#byEntry.get(dialog);
    if (call === undefined) return;
    this.#dropCall(call);
    const text = serialize(bye);
    const own = this.options.advertised(dialog.flow.transport);
    call.app.sip({
      source: 'application',
      sizeBytes: text.length,
      peer: { protocol: dialog.flow.transport.toLowerCase(), address: own.address, port: own.port },
      time: this.#time(),
      transactionId: 'unsolicited',
      dialogId: call.id,
      receivedOn: null,
      text,
    });
  }

  // ---- common

  readonly #acknowledged = new WeakSet<DialogEntry>();

  #choose(request: IncomingRequest): AppConnection | undefined {
    const { method } = request.message;
    const app = this.#router.next(method.toLowerCase());
    if (app !== undefined) return app;
    const routed = this.#router.methods();
    if (!ROUTABLE.has(method)) this.#refuse(request, 501, 'Not Implemented');
    else if (routed.length === 0 || this.#router.isServed(method.toLowerCase())) {
      // Nobody is connected, or all that served it have withdrawn: another server, or a later attempt, may do.
      this.#refuse(request, 503, 'Service Unavailable', [header('Retry-After', String(randomInt(1, 11)))]);
    } else {
      const allow = [...routed.map((name) => name.toUpperCase()), 'ACK', 'BYE', 'CANCEL'].join(', ');
      this.#refuse(request, 405, 'Method Not Allowed', [header('Allow', allow)]);
    }
    return undefined;
  }

  #refuse(request: IncomingRequest, status: number, reason: string, headers: readonly Header[] = []): void {
    this.userAgent.respond(request, { status, reason, headers, body: '' });
  }

  #onSilence(pending: Pending): void {
    pending.silence = undefined;
    this.#settle(pending);
    this.options.log.error(
      { sipCallId: pending.request.core.callId, method: pending.request.message.method, application: pending.app.peer },
      'drachtio.application.silent',
    );
    this.#refuse(pending.request, 500, 'Server Internal Error', [header('Reason', 'SIP;cause=500;text="application silent"')]);
  }

  #quiet(pending: Pending): void {
    if (pending.silence !== undefined) this.options.timers.stop(pending.silence);
    pending.silence = undefined;
  }

  #settle(pending: Pending): void {
    this.#quiet(pending);
    this.#pending.delete(pending.transactionId);
    this.#byRequest.delete(pending.request);
  }

  #addCall(call: Call): void {
    this.#calls.set(call.id, call);
    this.#byEntry.set(call.entry, call);
  }

  #dropCall(call: Call): void {
    this.#byEntry.delete(call.entry);
    if (this.#calls.get(call.id) === call) this.#calls.delete(call.id);
  }

  #callByCallId(callId: string | undefined): Call | undefined {
    if (callId === undefined) return undefined;
    for (const call of this.#calls.values()) if (call.entry.state.callId === callId) return call;
    return undefined;
  }

  #time(): string {
    return frameTime(this.options.clock.wallMs());
  }
}
