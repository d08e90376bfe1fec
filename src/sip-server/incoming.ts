import { nextSerialId } from '../lib/ids.js';
import { PassingMap } from '../lib/passing-map.js';
import type { QueuedTimer } from '../lib/timers.js';
import type { IncomingRequest, RespondProblem } from '../sip/user-agent/user-agent-context.js';
import { getHeader, header, type Header, type SipRequest, serializeUnfolded } from '../sip/message/message.js';
import { tagOf } from '../sip/message/uri.js';
import type { UserAgent } from '../sip/user-agent.js';
import type { AppConnection, CdrReporter } from './applications.js';
import { arrangeHeaders, parseAppMessage, type AppMessage } from './app-message.js';
import { type AppDialogs, dialogIdOf, dialogIdOfEntry, peerOf, syntheticCancel, userDataOf } from './app-dialogs.js';
import type { BrokerOptions } from './broker-options.js';
import { formatProxied, formatResponseSent, type ProxyCommand } from './control-protocol.js';

type AppResponse = Extract<AppMessage, { kind: 'response' }>;

interface Pending {
  readonly transactionId: string;
  readonly request: IncomingRequest;
  readonly app: AppConnection;
  silence: QueuedTimer | undefined;
}

const FROM_REQUEST = new Set(['from', 'to', 'call-id', 'cseq', 'max-forwards']);
/** Headers that a proxied request keeps as received. */
const NOT_ADDED = new Set([...FROM_REQUEST, 'contact', 'content-type', 'content-length']);
const UNKNOWN_TRANSACTION = 'Response not sent due to unknown transaction';

const PROBLEMS: Readonly<Record<RespondProblem, string>> = {
  'unknown-transaction': UNKNOWN_TRANSACTION,
  'no-100rel': 'Remote endpoint does not support 100rel',
  'not-allowed': 'a non-INVITE request gets neither 408 nor a provisional response but 100 (RFC 4320)',
};

/** Requests from the network that await an application's response. */
export class IncomingRequests {
  readonly #byId = new PassingMap<string, Pending>();

  constructor(
    private readonly userAgent: UserAgent,
    private readonly calls: AppDialogs,
    private readonly cdr: CdrReporter,
    private readonly options: BrokerOptions,
  ) {}

  get size(): number {
    return this.#byId.size;
  }

  /** Sends the request to the application that is to answer it. */
  offer(request: IncomingRequest, app: AppConnection): void {
    const pending: Pending = { transactionId: nextSerialId(), request, app, silence: undefined };
    this.#watch(pending);
    this.#byId.add(pending.transactionId, pending);
    if (!request.isInDialog) request.userData = userDataOf(app, pending.transactionId);
    request.onCancelled = (cancel) => this.#onCancelled(pending, cancel);
    request.onUnreachable = () => this.#settle(pending);
    const { dialog, message } = request;
    if (message.method === 'INVITE' && dialog === null) this.cdr.attempt('network', message);
    const text = serializeUnfolded(message);
    app.sip({
      source: 'network',
      sizeBytes: text.length,
      peer: peerOf(request.flow),
      time: this.options.time(),
      transactionId: pending.transactionId,
      dialogId: dialog === null ? '' : dialogIdOfEntry(dialog),
      receivedOn: dialog === null ? request.flow.local : null,
      text,
    });
  }

  /** The caller gave up; it has its 487. */
  #onCancelled(pending: Pending, cancel: SipRequest | null): void {
    const { request } = pending;
    this.#settle(pending);
    const call = request.dialog === null || request.dialog.isConfirmed ? undefined : this.calls.of(request.dialog);
    if (call !== undefined) this.calls.drop(call);
    if (!request.isInDialog) this.cdr.stop('network', 'call-canceled', request.message);
    const text = serializeUnfolded(cancel ?? syntheticCancel(request.message));
    pending.app.sip({
      source: 'network',
      sizeBytes: text.length,
      peer: peerOf(request.flow),
      time: this.options.time(),
      transactionId: pending.transactionId,
      dialogId: request.isTagged && request.dialog !== null ? dialogIdOf(request) : '',
      receivedOn: null,
      text,
    });
  }

  onResponse(app: AppConnection, id: string, transactionId: string, message: AppResponse): void {
    const pending = this.#byId.get(transactionId);
    if (pending?.app !== app) return app.answer(id, 'NOK', UNKNOWN_TRANSACTION);
    const { request } = pending;
    const cseq = getHeader(message, 'cseq');
    if (cseq !== undefined && cseq !== getHeader(request.message, 'cseq')) return this.#badResponse(app, id, pending);
    const { flow } = request;
    const own = this.options.advertised(flow.transport);
    const problem = this.userAgent.respond(
      request,
      {
        status: message.status,
        reason: message.reason,
        headers: arrangeHeaders(message.headers, message.body, own, FROM_REQUEST),
        body: message.body,
        localTag: tagOf(getHeader(message, 'to') ?? ''),
      },
      (text) => this.#sent(app, id, pending, message, text),
    );
    if (problem !== null) app.answer(id, 'NOK', PROBLEMS[problem]);
  }

  onProxy(app: AppConnection, command: ProxyCommand): void {
    const pending = this.#byId.get(command.transactionId);
    if (pending?.app !== app || pending.request.dialog !== null) {
      return app.answer(command.id, 'NOK', `Unknown transaction id: ${command.transactionId}`);
    }
    const { request } = pending;
    this.#settle(pending);
    if (command.targets.length === 0) {
      this.refuse(request, 500, 'Server Internal Error');
      return app.answer(command.id, 'NOK', 'error proxying request to ');
    }
    const extra = parseAppMessage(command.text)?.headers ?? [];
    const problem = this.userAgent.proxy(
      request,
      {
        targets: command.targets,
        isSerial: command.isSerial,
        recordRoute: command.remainInDialog,
        followsRedirects: command.followRedirects,
        provisionalTimeoutMs: command.provisionalTimeoutMs,
        finalTimeoutMs: command.finalTimeoutMs,
        headers: extra.filter(({ id }) => !NOT_ADDED.has(id)),
      },
      {
        onFinal: (response, flow) => {
          if (response.status < 300 && request.transaction.isInvite) this.cdr.start('network', 'proxy-uas', response);
          if (!command.fullResponse) return;
          app.payload(
            formatProxied(nextSerialId(), command.id, { peer: peerOf(flow), time: this.options.time(), text: serializeUnfolded(response) }),
          );
        },
        onDone: () => {
          if (command.fullResponse) app.answer(command.id, 'OK', 'done');
        },
      },
    );
    if (problem !== null) return app.answer(command.id, 'NOK', 'Rejected with 483 Too Many Hops due to Max-Forwards value of 0');
    if (!command.fullResponse) app.answer(command.id, 'OK', 'done');
  }

  /** The application disconnected: answers its requests here. */
  onAppGone(app: AppConnection): void {
    for (const pending of [...this.#byId.values()]) {
      if (pending.app !== app) continue;
      this.#settle(pending);
      this.#answerFor(pending.request);
    }
  }

  #answerFor(request: IncomingRequest): void {
    const { transaction, isInDialog, message } = request;
    // Its call has ended.
    if (message.method === 'BYE' && isInDialog) return this.refuse(request, 200, 'OK');
    // A 503 within a call would divert the caller from the only server with the call.
    if (!transaction.isInvite || isInDialog) return this.refuse(request, 500, 'Server Internal Error');
    this.refuse(request, 503, 'Service Unavailable', [header('Retry-After', '1')]);
  }

  refuse(request: IncomingRequest, status: number, reason: string, headers: readonly Header[] = []): void {
    this.userAgent.respond(request, { status, reason, headers, body: '' });
  }

  #sent(app: AppConnection, id: string, pending: Pending, message: AppResponse, text: string | undefined): void {
    if (text === undefined) return app.answer(id, 'NOK', UNKNOWN_TRANSACTION);
    const { request } = pending;
    const { dialog } = request;
    const { isInvite } = request.transaction;
    const dialogId = request.message.method === 'BYE' || (!isInvite && dialog === null) ? '' : dialogIdOf(request);
    this.#quiet(pending);
    if (message.status >= 200) this.#onFinal(pending, message, text);
    else if (dialog !== null && request.reliable !== undefined) this.#own(pending);
    app.payload(
      formatResponseSent(
        nextSerialId(),
        id,
        { peer: peerOf(request.flow), time: this.options.time(), transactionId: pending.transactionId, text },
        dialogId,
      ),
    );
  }

  #onFinal(pending: Pending, message: AppResponse, text: string): void {
    const { request } = pending;
    this.#settle(pending);
    const { dialog, transaction } = request;
    const isSuccess = message.status < 300;
    if (isSuccess && (request.message.method === 'REGISTER' || request.message.method === 'SUBSCRIBE')) {
      this.userAgent.registered(request.message, message, request.flow);
    }
    if (transaction.isInvite && !request.isInDialog) {
      if (isSuccess) this.cdr.start('application', 'uas', text);
      else this.cdr.stop('application', 'call-rejected', text);
    }
    if (dialog === null) return;
    const call = this.calls.of(dialog);
    if (call !== undefined && request.isInDialog && message.status !== 481) this.calls.claim(call);
    if (dialog.isEnded && call !== undefined) this.calls.drop(call);
    else if (isSuccess && !dialog.isEnded) this.#own(pending);
  }

  #own(pending: Pending): void {
    const { request } = pending;
    const { dialog } = request;
    if (dialog === null || this.calls.of(dialog) !== undefined) return;
    this.calls.add({ id: dialogIdOf(request), entry: dialog, app: pending.app, inviteTransactionId: pending.transactionId });
  }

  /** An invalid response: answers the caller anyway. */
  #badResponse(app: AppConnection, id: string, pending: Pending): void {
    this.#settle(pending);
    this.refuse(pending.request, 500, 'Server Internal Error');
    app.answer(id, 'NOK', 'Unknown server error sending response');
  }

  #watch(pending: Pending): void {
    const { timers, silenceTimeoutMs } = this.options;
    const { request } = pending;
    // RFC 4320 §4.1: a non-INVITE request without a final response when the sender's timer E reaches T2 gets 100.
    const trying = this.options.tryingAfterMs;
    if (request.transaction.isInvite || trying >= silenceTimeoutMs) {
      pending.silence = timers.start(silenceTimeoutMs, () => this.#onSilence(pending));
      return;
    }
    pending.silence = timers.start(trying, () => {
      this.userAgent.respond(request, { status: 100, reason: 'Trying', headers: [], body: '' });
      pending.silence = timers.start(silenceTimeoutMs - trying, () => this.#onSilence(pending));
    });
  }

  #onSilence(pending: Pending): void {
    pending.silence = undefined;
    this.#settle(pending);
    const { request } = pending;
    this.options.log.error(
      { sip_call_id: request.core.callId, method: request.message.method, application: pending.app.peer },
      'sip_server.application.silent',
    );
    this.refuse(request, 500, 'Server Internal Error', [header('Reason', 'SIP;cause=500;text="application silent"')]);
  }

  #quiet(pending: Pending): void {
    if (pending.silence !== undefined) this.options.timers.stop(pending.silence);
    pending.silence = undefined;
  }

  #settle(pending: Pending): void {
    this.#quiet(pending);
    this.#byId.delete(pending.transactionId);
    pending.request.onCancelled = () => undefined;
    pending.request.onUnreachable = () => undefined;
  }
}
