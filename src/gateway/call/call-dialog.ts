import type { SipHeaders } from '../../agent-protocol/sip-headers.js';
import { ALLOWED_METHODS } from '../../lib/sip-methods.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { CallData, OwnSide } from './call.js';
import type { CallTrace } from './call-trace.js';
import { PlacedInvite, type DialTarget } from './placed-invite.js';
import { isUnknownDialog, requestFailure } from './request-failure.js';
import { SessionRefresh, type RefreshRequests } from './session-refresh.js';
import { headerValues, TrunkAuthorization, type TrunkCredentials } from './trunk-authorization.js';
import type { CallEvent } from './state.js';
import { readInfoDigit, type InfoDigit } from './info-digit.js';
import { passiveSessionTimer, readReoffer, refusalHeaders, sessionExpiresOf, supportedHeader } from './invite.js';
import { REASONS, reasonHeaderOf, type Reason } from '../model/reasons.js';
import type { Target } from '../admission/target.js';
import { readReferProgress } from './refer-progress.js';
import {
  ConnectionLostError,
  type DialogSnapshot,
  type InviteResponse,
  type SrfApp,
  type SrfAnswer,
  type SrfDialog,
  type OnMessage,
  type RequestInDialog,
  type SrfHandler,
  type SrfHeaders,
  type SrfRequest,
  type SrfResponse,
} from '../ports/signalling.js';

export interface DialogServices {
  readonly clock: Clock;
  readonly srf: SrfApp;
  /** 1 to 10 s, jittered, so that refused callers do not come back together. */
  readonly retryAfterSeconds: () => number;
  /** RFC 3261 §14.1: the wait after a 491, of the side that made the Call-ID or of the other. */
  readonly glareDelayMs: (madeCallId: boolean) => number;
  /** What a REFER gets. */
  readonly referReason: Extract<Reason, 'DECLINED' | 'METHOD_NOT_ALLOWED'>;
}

/** What the SIP side tells the call that it belongs to. */
export interface DialogOwner {
  dispatch(event: CallEvent): void;
  onDigit(digit: InfoDigit): void;
  /** We placed the call, and made its Call-ID. */
  readonly isPlaced: boolean;
  /** The trunk's account; `null`: challenges are not answered. */
  credentials(): TrunkCredentials | null;
  /** Each request to that trunk has them. */
  trunkHeaders(): SrfHeaders;
  /** The peer gets no re-INVITE, UPDATE or session timer of ours. */
  noReinvite(): boolean;
  /** Our INVITE went out: the id of its dialog has to survive us. */
  onDialled(): void;
  /** The peer said why it refused or ended the call. */
  onCause(q850: number): void;
  /** A request of ours failed: one within the dialog, or an INVITE that nobody answered. */
  onSignallingError(text: string): void;
  /** Another host has the call. */
  onTaken(): void;
}

/** An INVITE that is not answered yet. */
export interface OpenInvite {
  readonly request: SrfRequest;
  readonly response: SrfResponse;
  /** Headers of the 200 that settle the session timer. */
  readonly sessionTimer: SrfHeaders;
}

interface WaitingRequest {
  readonly request: SrfRequest;
  readonly response: SrfResponse;
  readonly sessionTimer: SrfHeaders;
}

const NO_AUTHORIZATION = new TrunkAuthorization(null);
/** Doubled each time. */
const PING_AGAIN_MS = 1_000;
const MAX_PING_AGAIN_MS = 32_000;
const NOT_ACCEPTABLE_HERE = 488;
const UNKNOWN_TAG = 'unknown';
const DIGIT_TYPES = 'application/dtmf-relay, application/dtmf';

/** The SIP side of one call: says what the call machine decided, and turns what the carrier says into its events. Decides nothing. */
export class CallDialog {
  /** The carrier's requests that are not answered yet. */
  #waiting: Map<number, WaitingRequest> | null = null;
  #nextRequestId = 1;
  #dialog: SrfDialog | null = null;
  #placed: PlacedInvite | null = null;
  #byeAnswered: Promise<void> | null = null;
  /** Only our REFER creates a subscription in a call. */
  #hasReferred = false;
  /** `null`: the SIP server does it alone. */
  #refresh: SessionRefresh | null = null;
  /** A re-INVITE that is to refresh the session: the next one does. */
  #dueRefresh: { readonly headers: SrfHeaders; readonly begin: Parameters<RefreshRequests['reinvite']>[1] } | null = null;
  #cancelPing: CancelTimer | undefined;
  #isClosed = false;
  /** An earlier process had the dialog. */
  #isAdopted = false;

  constructor(
    private readonly services: DialogServices,
    private readonly call: CallData,
    private readonly owner: DialogOwner,
    private readonly trace: CallTrace,
    private readonly log: Log,
  ) {}

  get #own(): OwnSide {
    return this.call.now.own;
  }

  /** Resolves when our last BYE was answered; `null`: we sent none. */
  get byeAnswered(): Promise<void> | null {
    return this.#byeAnswered;
  }

  /** Takes over a dialog of an earlier process. */
  adopt(kept: DialogSnapshot): void {
    this.#isAdopted = true;
    this.#dialog = this.services.srf.restore(kept);
    this.#listen(this.#dialog);
    const { answer } = kept;
    if (answer === undefined || !this.#refreshesItself()) return;
    const first = (name: string): string | undefined => headerValues(answer, name.toLowerCase())[0];
    this.#refresh = this.#sessionRefresh(this.#dialog);
    this.#refresh.settled(sessionExpiresOf({ get: first }), first('allow'), true, this.services.glareDelayMs(this.owner.isPlaced));
  }

  /** @param invite as it came, or as we sent it */
  keep(invite: string): DialogSnapshot | null {
    return this.#dialog === null ? null : this.services.srf.snapshot(this.#dialog, invite);
  }

  /** The same before the 200 is out, whose tag the SIP server makes: it knows the dialog by the INVITE's. */
  keepAnswer({ request }: OpenInvite): DialogSnapshot {
    const from = request.get('From') ?? '';
    const tag = /;\s*tag\s*=\s*([^\s;]+)/i.exec(from.slice(from.lastIndexOf('>') + 1))?.[1] ?? '';
    const id = `${request.get('Call-ID') ?? ''};from-tag=${tag}`;
    return { id, invite: request.msg.raw ?? '', localTag: UNKNOWN_TAG, contact: this.#own.contact };
  }

  keepDialled(): DialogSnapshot | null {
    return this.keep(this.#placed?.text ?? '');
  }

  /** INVITE of a call that we place. */
  dial(target: DialTarget, sdp: string): void {
    const onUpdate = this.#traced((request, response) => this.#onEarlyUpdate(request, response));
    const owner = {
      onSent: (dialogId: string) => {
        if (this.call.now.dialledId === dialogId) return;
        this.call.change({ dialledId: dialogId });
        this.owner.onDialled();
      },
      onWithdrawn: (error: string | null) =>
        this.owner.dispatch({
          type: 'not-permitted',
          reason: error === null ? 'DIAL_NOT_ALLOWED' : 'STORE_UNAVAILABLE',
          detail: error ?? 'it came too late',
        }),
      onProceeding: (status: number, sdp: string) => this.owner.dispatch({ type: 'dial-proceeding', status, sdp }),
      onAnswered: (dialog: SrfDialog, answer: string, response: InviteResponse) => {
        this.#dialog = dialog;
        this.#listen(dialog);
        if (this.#refreshesItself()) this.#refresh = this.#sessionRefresh(dialog);
        this.#refresh?.settled(sessionExpiresOf(response), response.get('Allow'), true);
        this.owner.dispatch({ type: 'dial-answered', sdp: answer });
      },
      onRefused: (status: number, unanswered: string | null, reason?: string) => {
        this.#noteCause(reason);
        if (unanswered !== null) this.owner.onSignallingError(`INVITE: ${unanswered}`);
        this.owner.dispatch({ type: 'dial-refused', status, isLocal: unanswered !== null });
      },
      request: (dialogId: string, request: RequestInDialog, onAnswer: Parameters<SrfApp['request']>[2]) =>
        this.#request(dialogId, request, onAnswer, onUpdate),
      onUpdate,
    };
    this.#placed = new PlacedInvite(this.services.srf, target, sdp, this.#authorization(), owner, this.trace, this.log);
    this.#placed.send();
  }

  /** The SIP server cannot answer a challenge. */
  #refreshesItself(): boolean {
    return this.owner.credentials() !== null && !this.owner.noReinvite();
  }

  #sessionRefresh({ id }: SrfDialog): SessionRefresh {
    return new SessionRefresh(this.services.clock, {
      update: (headers, onAnswer) =>
        this.#request(id, { method: 'UPDATE', headers: { ...this.#answerHeaders(), ...headers } }, (error, answer) => {
          this.#noteRefresh(error, answer);
          onAnswer(answer);
        }),
      reinvite: (headers, begin) => {
        this.#dueRefresh = { headers, begin };
        this.owner.dispatch({ type: 'refresh-due' });
      },
      glareDelayMs: () => this.services.glareDelayMs(this.owner.isPlaced),
    });
  }

  #noteRefresh(error: unknown, answer: SrfAnswer | undefined): void {
    if (answer === undefined || answer.status >= 300)
      this.log.warn({ error: answer?.status ?? errorText(error) }, 'call.session.not_refreshed');
  }

  /** The call is over: nothing more is sent by itself. */
  close(): void {
    this.#isClosed = true;
    this.#cancelPing?.();
    this.#refresh?.stop();
    this.#placed?.close();
  }

  cancelDial(reason: Reason): void {
    this.#placed?.cancel(reason);
  }

  acknowledge(): void {
    this.#placed?.acknowledge();
  }

  ring({ response }: OpenInvite): void {
    response.send(180, 'Ringing', { headers: { Contact: this.#own.contact } });
  }

  /** @param onAnswered the SIP server has sent the 200 */
  answer({ request, response, sessionTimer }: OpenInvite, sdp: string, onAnswered: () => void): void {
    const headers = { ...this.#answerHeaders(), ...this.#agreed(sessionTimer, request) };
    // The callback form: listeners are attached before an ACK and BYE that came in the same read are looked at.
    this.services.srf.createUAS(request, response, { localSdp: sdp, headers }, (error, dialog) => {
      if (this.#dialog !== null) return;
      if (dialog === undefined) {
        const isCrossing = /unknown transaction|request terminated/i.test(errorText(error));
        if (!isCrossing) this.log.error({ error: errorText(error) }, 'call.answer.failed');
        return this.owner.dispatch({ type: 'answer-failed', reason: isCrossing ? 'CALLER_CANCELLED' : 'INTERNAL_ERROR' });
      }
      this.#dialog = dialog;
      onAnswered();
      this.#listen(dialog);
    });
  }

  /**
   * @param detail what the reason's sentence does not say
   * @param accepted content types that a 415 names
   */
  /** @param more what the answer says besides: types of bodies that are accepted, and headers */
  refuse(
    request: SrfRequest,
    response: SrfResponse,
    reason: Reason,
    more: { readonly detail?: string | null; readonly accepted?: string; readonly headers?: SrfHeaders } = {},
  ): void {
    const { sipStatus, sipPhrase } = REASONS[reason];
    const headers = refusalHeaders(reason, {
      host: this.#own.warningHost,
      require: request.get('Require'),
      accepted: more.accepted ?? 'application/sdp',
      retryAfterSeconds: this.services.retryAfterSeconds,
      detail: more.detail ?? null,
    });
    response.send(sipStatus, sipPhrase, { headers: { ...headers, ...more.headers } });
  }

  /** 200 to a re-INVITE, UPDATE or NOTIFY. */
  accept(requestId: number, sdp: string | null): void {
    const waiting = this.#take(requestId);
    if (waiting === undefined) return;
    const { request } = waiting;
    const headers: SrfHeaders = { ...this.#answerHeaders(), ...this.#agreed(waiting.sessionTimer, request) };
    if (request.method !== 'NOTIFY') this.#refresh?.settled(headers['Session-Expires'], request.get('Allow'), false);
    waiting.response.send(200, 'OK', sdp === null ? { headers } : { headers, body: sdp });
  }

  reject(requestId: number, reason: Reason): void {
    const waiting = this.#take(requestId);
    if (waiting !== undefined) this.refuse(waiting.request, waiting.response, reason);
  }

  /** A re-INVITE of ours. */
  reinvite(sdp: string, attempt: number): void {
    const dialog = this.#dialog;
    if (dialog === null) return;
    const refresh = this.#dueRefresh;
    this.#dueRefresh = null;
    if (this.owner.noReinvite()) return this.#refuseReinvite(attempt);
    const onRefreshed = refresh?.begin();
    const request = { method: 'INVITE', headers: { ...this.#answerHeaders(), ...refresh?.headers }, body: sdp } as const;
    this.#request(
      dialog.id,
      request,
      (error, answer) => {
        if (answer === undefined) this.log.warn({ error: errorText(error) }, 'call.reinvite.failed');
        if (this.#isAdopted && answer === undefined && isUnknownDialog(error))
          return this.owner.dispatch({ type: 'server-lost', reason: 'GATEWAY_RESTARTED' });
        // Without Session-Expires the peer decides whether there still is a timer (RFC 4028 §9).
        if (answer !== undefined && answer.status < 300)
          this.#refresh?.settled(sessionExpiresOf({ get: (name) => headerValues(answer.raw, name.toLowerCase())[0] }), undefined, true);
        if (onRefreshed !== undefined) this.#noteRefresh(error, answer);
        onRefreshed?.(answer);
        // Without a connection to the SIP server it is tried again later, as after a glare.
        const { status, body } = answer ?? { status: error instanceof ConnectionLostError ? 491 : 408, body: '' };
        this.owner.dispatch({
          type: 'reinvite-answered',
          status,
          sdp: body,
          retryAfterMs: this.services.glareDelayMs(this.owner.isPlaced),
          attempt,
        });
      },
      this.#traced((update, response) => this.#onReoffer(update, response)),
    );
  }

  /** As if the peer had refused it, which it would. */
  #refuseReinvite(attempt: number): void {
    const refusal = 'the number has no_reinvite';
    this.owner.onSignallingError(`INVITE: not sent, as ${refusal}`);
    this.owner.dispatch({ type: 'reinvite-answered', status: NOT_ACCEPTABLE_HERE, sdp: '', retryAfterMs: 0, attempt, refusal });
  }

  /** REFER (RFC 3515, RFC 3892): the carrier is to call the target, and to say how that goes. */
  refer(target: Target, referId: number, sipHeaders: SipHeaders): void {
    const dialog = this.#dialog;
    if (dialog === null) return;
    this.#hasReferred = true;
    const { contact, peerHost } = this.#own;
    const uri = target.kind === 'uri' ? target.uri : `sip:${target.number}@${peerHost};user=phone`;
    const referTo = `<${uri}${uriHeaders(sipHeaders)}>`;
    const headers = { ...sipHeaders, 'Refer-To': referTo, 'Referred-By': contact, Contact: contact, Allow: ALLOWED_METHODS };
    this.#request(dialog.id, { method: 'REFER', headers }, (error, answer) => {
      if (answer === undefined) this.log.warn({ error: errorText(error) }, 'call.refer.failed');
      this.owner.dispatch({ type: 'refer-answered', status: answer?.status ?? null, referId });
    });
  }

  /** Also of a call that we dialled and whose 2xx we have not seen: an earlier process may have. The SIP server may not know it either. */
  bye(reason: Reason, sipHeaders: SipHeaders = {}): void {
    const dialog = this.#dialog;
    const dialogId = dialog?.id ?? this.call.now.dialledId;
    if (dialogId === null) return;
    this.#byeAnswered = new Promise((resolve) => {
      this.#request(dialogId, { method: 'BYE', headers: { ...sipHeaders, Reason: reasonHeaderOf(reason) } }, (error) => {
        // Whatever the answer: a 401 or 407 ends our side too.
        if (dialog !== null) this.services.srf.forget(dialog);
        if (dialog !== null && error !== null && error !== undefined) this.log.warn({ error: errorText(error) }, 'call.bye.failed');
        resolve();
      });
    });
  }

  /**
   * Asks the carrier whether the call is still there, after a time without the SIP server: OPTIONS within the dialog. Asks again while the
   * SIP server does not send it, or cannot reach the carrier: that one may still have the call, which goes on as long as its media does.
   * @param lost why the call ends when it is not
   */
  ping(lost: 'INTERNAL_ERROR' | 'GATEWAY_RESTARTED', againMs = PING_AGAIN_MS): void {
    const dialog = this.#dialog;
    if (dialog === null) return;
    this.#request(dialog.id, { method: 'OPTIONS', headers: { Contact: this.#own.contact } }, (error, answer) => {
      const isUnsent = answer === undefined && !isUnknownDialog(error);
      // The SIP server does not know the dialog, or the carrier does not (RFC 3261 §12.2.1.2).
      const isLost = answer === undefined ? !isUnsent : answer.status === 481 || answer.status === 408;
      if (!isLost && !isUnsent && answer?.status !== 503) return;
      if (isLost || (againMs === PING_AGAIN_MS && !(error instanceof ConnectionLostError)))
        this.log.warn({ error: answer === undefined ? errorText(error) : answer.status, is_lost: isLost }, 'call.ping.failed');
      if (!isLost) return this.#pingAgain(lost, againMs);
      // RFC 3261 §12.2.1.2: also towards one who may have missed the question alone.
      if (answer?.status === 408) this.bye(lost);
      this.owner.dispatch({ type: 'server-lost', reason: lost });
    });
  }

  #pingAgain(lost: 'INTERNAL_ERROR' | 'GATEWAY_RESTARTED', delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancelPing?.();
    this.#cancelPing = this.services.clock.setTimer(delayMs, () => this.ping(lost, Math.min(2 * delayMs, MAX_PING_AGAIN_MS)));
  }

  /** Pings a carrier that holds the call. If it no longer knows the dialog, the call is lost. */
  pingHeld(): void {
    const dialog = this.#dialog;
    if (dialog === null) return;
    this.#request(dialog.id, { method: 'OPTIONS', headers: { Contact: this.#own.contact } }, (error, answer) => {
      if (answer?.status === 481) return this.owner.dispatch({ type: 'server-lost', reason: 'INTERNAL_ERROR' });
      // 408 is the SIP server's own: nobody answered. Without a connection to it nobody was asked.
      const isAnswered = error instanceof ConnectionLostError || (answer !== undefined && answer.status !== 408);
      if (!isAnswered) this.log.warn({ error: answer === undefined ? errorText(error) : answer.status }, 'call.ping.failed');
      this.owner.dispatch({ type: 'pinged', isAnswered });
    });
  }

  /**
   * Takes the carrier's requests as they arrive. drachtio-srf emits an ACK only after a BYE that came right behind it, and answers by itself
   * what it has no listener for.
   */
  #listen(dialog: SrfDialog): void {
    const handle = dialog.handle.bind(dialog);
    dialog.handle = (request, response, ...rest) => {
      if (!this.#onRequest(request, response)) handle(request, response, ...rest);
    };
    dialog.on('destroy', (request, reason) => {
      if (/taken over/i.test(reason)) return this.owner.onTaken();
      if (request.source === 'application') {
        this.trace.sip('out', request.msg.raw, 'BYE');
        this.trace.add('gateway', null, `the SIP server sent BYE: ${reason}`);
      }
      if (request.source !== 'application') this.#noteCause(request.get('Reason'));
      this.owner.dispatch({ type: 'bye', reason: byeReason(reason) });
    });
  }

  #noteCause(reason: string | undefined): void {
    const cause = q850CauseOf(reason);
    if (cause !== null) this.owner.onCause(cause);
  }

  /** False: drachtio-srf answers it. */
  #onRequest(request: SrfRequest, response: SrfResponse): boolean {
    const { method, source } = request;
    if (method === 'ACK') {
      this.trace.received(request);
      this.owner.dispatch({ type: 'acknowledged', sdp: request.body });
      // Its own listener goes then, with what belongs to the INVITE.
      return false;
    }
    if (source === 'application') return false;
    this.trace.received(request, response);
    if (method === 'INVITE' || method === 'UPDATE') this.#onReoffer(request, response);
    else if (method === 'OPTIONS') response.send(200, 'OK', { headers: this.#capabilities() });
    else if (method === 'INFO') this.#onInfo(request, response);
    else if (method === 'REFER') this.refuse(request, response, this.services.referReason);
    else if (method === 'NOTIFY') this.#onNotify(request, response);
    else if (method === 'MESSAGE' || method === 'PUBLISH') this.refuse(request, response, 'METHOD_NOT_ALLOWED');
    else return false;
    return true;
  }

  #traced(handler: SrfHandler): SrfHandler {
    return (request, response) => {
      this.trace.received(request, response);
      handler(request, response);
    };
  }

  #request(dialogId: string, request: RequestInDialog, onAnswer: Parameters<SrfApp['request']>[2], onUpdate?: SrfHandler): void {
    const done = this.trace.expect();
    const authorization = this.#authorization();
    const { method } = request;
    let uri = '';
    const onMessage: OnMessage = (direction, text, summary) => {
      if (direction === 'out') uri = text?.split(' ', 2)[1] ?? '';
      this.trace.sip(direction, text, summary);
    };
    const settle: typeof onAnswer = (error, answer) => {
      if (answer !== undefined && authorization.answers({ method, uri }, answer.status, answer.raw)) return send();
      const failure = requestFailure(method, error, answer);
      if (failure !== null) this.owner.onSignallingError(failure);
      done();
      onAnswer(error, answer);
    };
    const send = (): void => {
      const headers = { ...request.headers, ...this.owner.trunkHeaders(), ...authorization.headers };
      this.services.srf.request(dialogId, { ...request, headers }, settle, onUpdate, onMessage);
    };
    send();
  }

  /** For one request. */
  #authorization(): TrunkAuthorization {
    const credentials = this.owner.credentials();
    return credentials === null ? NO_AUTHORIZATION : new TrunkAuthorization(credentials);
  }

  /** UPDATE before the 2xx. RFC 3311 §5.2: our offer may not be answered yet; without an offer, only target and session timer change. */
  #onEarlyUpdate(request: SrfRequest, response: SrfResponse): void {
    const reoffer = reofferOf(request);
    if (!reoffer.ok) return this.refuse(request, response, reoffer.error);
    if (reoffer.value.sdp !== '') return this.refuse(request, response, 'REQUEST_PENDING');
    response.send(200, 'OK', { headers: { ...this.#answerHeaders(), ...this.#agreed(reoffer.value.sessionTimer, request) } });
  }

  #onReoffer(request: SrfRequest, response: SrfResponse): void {
    const reoffer = reofferOf(request);
    if (!reoffer.ok) return this.refuse(request, response, reoffer.error);
    const { sdp, sessionTimer } = reoffer.value;
    const requestId = this.#wait({ request, response, sessionTimer });
    this.owner.dispatch({ type: 'reoffered', requestId, method: request.method === 'UPDATE' ? 'UPDATE' : 'INVITE', sdp });
  }

  /** RFC 6086 has no package for digits; these are what phones and gateways send. */
  #onInfo(request: SrfRequest, response: SrfResponse): void {
    if (request.body === '') return response.send(200, 'OK', {});
    const digit = readInfoDigit(request.get('Content-Type'), request.body);
    if (!digit.ok) return this.refuse(request, response, digit.error, { accepted: DIGIT_TYPES });
    this.owner.onDigit(digit.value);
    response.send(200, 'OK', {});
  }

  #onNotify(request: SrfRequest, response: SrfResponse): void {
    const [event = ''] = (request.get('Event') ?? request.get('o') ?? '').split(';');
    // RFC 6665 §4.1.3: no subscription of ours, whatever it carries.
    if (!this.#hasReferred || event.trim().toLowerCase() !== 'refer') return this.refuse(request, response, 'NO_DIALOG');
    const progress = readReferProgress({
      contentType: request.get('Content-Type'),
      subscriptionState: request.get('Subscription-State'),
      body: request.body,
    });
    if (!progress.ok) return this.refuse(request, response, progress.error, { accepted: 'message/sipfrag' });
    const requestId = this.#wait({ request, response, sessionTimer: {} });
    this.owner.dispatch({ type: 'notified', requestId, ...progress.value });
  }

  #wait(waiting: WaitingRequest): number {
    const requestId = this.#nextRequestId;
    this.#nextRequestId += 1;
    (this.#waiting ??= new Map()).set(requestId, waiting);
    return requestId;
  }

  #take(requestId: number): WaitingRequest | undefined {
    const waiting = this.#waiting?.get(requestId);
    this.#waiting?.delete(requestId);
    return waiting;
  }

  #answerHeaders(): SrfHeaders {
    return { Contact: this.#own.contact, Allow: ALLOWED_METHODS, Supported: supportedHeader(this.owner.noReinvite()) };
  }

  #agreed(sessionTimer: SrfHeaders, request: SrfRequest): SrfHeaders {
    return this.owner.noReinvite() ? passiveSessionTimer(sessionTimer, request.get('Require')) : sessionTimer;
  }

  #capabilities(): SrfHeaders {
    return { Allow: ALLOWED_METHODS, Accept: 'application/sdp', Supported: supportedHeader(this.owner.noReinvite()) };
  }
}

/** RFC 3261 §19.1.1: the target's INVITE gets them, too. */
function uriHeaders(headers: SipHeaders): string {
  const pairs = Object.entries(headers).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

function reofferOf(request: SrfRequest): ReturnType<typeof readReoffer> {
  return readReoffer({
    require: request.get('Require'),
    supported: request.get('Supported'),
    sessionExpires: sessionExpiresOf(request),
    contentType: request.get('Content-Type'),
    contentDisposition: request.get('Content-Disposition'),
    contentEncoding: request.get('Content-Encoding') ?? request.get('e'),
    body: request.body,
  });
}

/** @param reason a Reason header, of several protocols perhaps (RFC 3326) */
export function q850CauseOf(reason: string | undefined): number | null {
  const cause = /(?:^|,)\s*Q\.850\s*;(?:[^,"]|"[^"]*")*?\bcause\s*=\s*(\d{1,3})(?!\d)/i.exec(reason ?? '')?.[1];
  return cause === undefined ? null : Number(cause);
}

/** drachtio-srf gives the text of the Reason header of a BYE that the SIP server sent by itself. */
function byeReason(text: string): 'ACK_TIMEOUT' | 'SESSION_EXPIRED' | 'CALLER_HANGUP' {
  if (/ack timeout/i.test(text)) return 'ACK_TIMEOUT';
  return /session timer expired/i.test(text) ? 'SESSION_EXPIRED' : 'CALLER_HANGUP';
}
