import type { CallRecord } from '../contracts/call-record.js';
import type { Route } from '../contracts/records.js';
import type { E164 } from '../contracts/e164.js';
import type { LegEvent, LegFigures, SrtpKeys } from '../contracts/media.js';
import type { CancelTimer, Clock } from '../lib/clock.js';
import { errorText } from '../lib/error-text.js';
import type { Log } from '../lib/log.js';
import { ok, type Result } from '../lib/result.js';
import { Scope } from '../lib/scope.js';
import { assertNever } from '../lib/assert-never.js';
import type { CallCounters } from './call-counters.js';
import { startCall, stepCall, type CallEffect, type CallEvent, type CallFacts, type CallState, type CallTimer } from './call/machine.js';
import { answerReoffer, readReoffer, type Session } from './policy/reoffer.js';
import { ALLOWED_METHODS, SUPPORTED_OPTIONS } from './policy/invite.js';
import { REASONS, reasonHeaderOf, type Reason } from './policy/reasons.js';
import { refusalHeaders } from './policy/refusal.js';
import { canonicalOffer, type RelaySide } from './policy/sdp.js';
import { MediaUnavailableError, StoreUnavailableError } from './ports.js';
import type { CallStore, MediaEndpoint, MediaRelay, RelayCall, RouteStore } from './ports.js';
import type { SrfApp, SrfDialog, SrfHeaders, SrfRequest, SrfResponse } from './srf-facade.js';

/** What every call of this process shares. */
export interface CallServices {
  readonly routes: RouteStore;
  readonly calls: CallStore;
  readonly relay: MediaRelay;
  readonly endpoint: MediaEndpoint;
  readonly srf: SrfApp;
  readonly counters: CallCounters;
  readonly clock: Clock;
  readonly log: Log;
  /** New keys for an inside leg with SRTP: 30 random bytes. */
  readonly newKey: () => Uint8Array;
  readonly insideSrtp: boolean;
  /** 1 to 10 s, jittered, so that refused callers do not come back together. */
  readonly retryAfterSeconds: () => number;
}

/** What is known of one INVITE before it is decided. */
export interface InviteContext {
  readonly callId: string;
  readonly request: SrfRequest;
  readonly response: SrfResponse;
  /** `null`: not a number. */
  readonly called: E164 | null;
  readonly facts: CallFacts;
  /** Headers of the 200 that settle the session timer. */
  readonly sessionTimer: SrfHeaders;
  /** Our Contact for this call. */
  readonly contact: string;
  readonly warningHost: string;
}

/** Longest wait for the answer to a BYE before the call counts as gone. */
const BYE_LIMIT_MS = 4_000;

/** Carries out what the call machine says, through the ports; owns everything the call opened. Decides nothing. */
export class CallRunner {
  readonly #services: CallServices;
  readonly #context: InviteContext;
  readonly #log: Log;
  readonly #scope: Scope;
  readonly #timers = new Map<CallTimer, CancelTimer>();
  readonly #startedAtMs: number;
  readonly #onEnded: (runner: CallRunner) => void;
  #state: CallState;
  #answeredAtMs: number | null = null;
  #dialog: SrfDialog | null = null;
  #session: Session | null = null;
  #figures: LegFigures | null = null;
  /** The relay command under way: `delete` must not overtake it. */
  #relayWork: Promise<unknown> = Promise.resolve();
  #byeAnswered: Promise<void> = Promise.resolve();
  readonly #queue: CallEvent[] = [];
  #isStepping = false;

  constructor(services: CallServices, context: InviteContext, onEnded: (runner: CallRunner) => void) {
    this.#services = services;
    this.#context = context;
    this.#onEnded = onEnded;
    this.#startedAtMs = services.clock.wallMs();
    this.#log = services.log.child({ callId: context.callId, sipCallId: context.request.get('Call-ID') });
    this.#scope = new Scope(services.clock, 30_000);
    this.#state = startCall(context.facts);
  }

  get callId(): string {
    return this.#context.callId;
  }

  get stateName(): CallState['name'] {
    return this.#state.name;
  }

  /** One event, then all its effects in order, then the next event. */
  dispatch(event: CallEvent): void {
    this.#queue.push(event);
    if (this.#isStepping) return;
    this.#isStepping = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#step(next);
    }
    this.#isStepping = false;
  }

  /** A bug of ours in one step ends this call as our fault, and no other. */
  #step(event: CallEvent): void {
    try {
      const { state, effects } = stepCall(this.#state, event);
      this.#state = state;
      for (const effect of effects) this.#perform(effect);
    } catch (error) {
      this.#log.error({ event: event.type, error: error instanceof Error ? error.stack : errorText(error) }, 'call.bug');
      // That `failed` itself throws must not go round for ever.
      if (event.type !== 'failed') this.#queue.push({ type: 'failed', reason: 'INTERNAL_ERROR' });
    }
  }

  #perform(effect: CallEffect): void {
    switch (effect.do) {
      case 'route':
        return this.#async('STORE_UNAVAILABLE', this.#route(), (route) => ({
          type: 'routed',
          route,
          load: this.#services.counters.load(route),
        }));
      case 'count':
        this.#scope.defer('call count', this.#services.counters.admit(effect.route));
        return;
      case 'offer-relay':
        return this.#async('MEDIA_UNAVAILABLE', this.#offerRelay(effect), asIs);
      case 'open-leg':
        return this.#async('MEDIA_UNAVAILABLE', this.#openLeg(effect), asIs);
      case 'answer-relay':
        return this.#async('MEDIA_UNAVAILABLE', this.#answerRelay(effect.sdp), asIs);
      case 'ring':
        return this.#context.response.send(180, 'Ringing', { headers: { Contact: this.#context.contact } });
      case 'answer':
        return this.#answer(effect.sdp);
      case 'refuse':
        return this.#refuse(this.#context.request, this.#context.response, effect.reason);
      case 'start-leg':
        return this.#services.endpoint.start(this.callId);
      case 'bye':
        return this.#bye(effect.reason);
      case 'start-timer':
        this.#timers.set(
          effect.timer,
          this.#services.clock.setTimer(effect.delayMs, () => this.dispatch({ type: 'timer', timer: effect.timer })),
        );
        return;
      case 'stop-timer':
        this.#timers.get(effect.timer)?.();
        this.#timers.delete(effect.timer);
        return;
      case 'finish':
        void this.#finish(effect.reason);
        return;
      default:
        assertNever(effect);
    }
  }

  #bye(reason: Reason): void {
    const dialog = this.#dialog;
    if (dialog === null) return;
    this.#byeAnswered = new Promise((resolve) => {
      dialog.destroy({ headers: { Reason: reasonHeaderOf(reason) } }, (error) => {
        if (error !== null && error !== undefined) this.#log.warn({ error: errorText(error) }, 'call.bye.failed');
        resolve();
      });
    });
  }

  /** The SIP server was lost and is back: it may still know the dialog (drachtio-server does), and the caller must not be left in it. */
  serverLost(): void {
    if (this.#dialog !== null && this.#state.name !== 'Ended') {
      this.#services.srf.byeByDialogId(this.#dialog.id, { Reason: reasonHeaderOf('INTERNAL_ERROR') });
    }
    this.dispatch({ type: 'server-lost' });
  }

  /** An effect that fails comes back as an event: the expected failure by its reason, anything else as our own fault. */
  #async<T>(reason: 'STORE_UNAVAILABLE' | 'MEDIA_UNAVAILABLE', work: Promise<T>, toEvent: (value: T) => CallEvent): void {
    work.then(
      (value) => this.dispatch(toEvent(value)),
      (error: unknown) => {
        const isExpected = error instanceof StoreUnavailableError || error instanceof MediaUnavailableError;
        this.#log.error({ reason: isExpected ? reason : 'INTERNAL_ERROR', error: errorText(error) }, 'call.step.failed');
        this.dispatch({ type: 'failed', reason: isExpected ? reason : 'INTERNAL_ERROR' });
      },
    );
  }

  async #route(): Promise<Route | null> {
    const { called } = this.#context;
    return called === null ? null : this.#services.routes.lookup(called);
  }

  get #relayCall(): RelayCall {
    return { relayId: this.callId, fromTag: 'carrier', insideSrtp: this.#services.insideSrtp && this.#state.offer?.crypto !== null };
  }

  async #offerRelay(effect: Extract<CallEffect, { do: 'offer-relay' }>): Promise<CallEvent> {
    this.#scope.defer('relay session', async () => {
      await this.#relayWork;
      await this.#services.relay.delete({ relayId: this.callId });
    });
    const { sdp } = await this.#relayed(this.#services.relay.offer(this.#relayCall, canonicalOffer(effect.offer)));
    return { type: 'relay-offered', sdp };
  }

  async #openLeg({ offer, inside, agent }: Extract<CallEffect, { do: 'open-leg' }>): Promise<CallEvent> {
    const keys = this.#insideKeys(inside);
    this.#scope.defer('media leg', async () => {
      this.#figures = await this.#services.endpoint.close(this.callId);
    });
    const local = await this.#services.endpoint.open(
      {
        callId: this.callId,
        remote: { address: inside.address, rtpPort: inside.rtpPort, rtcpPort: inside.rtcpPort },
        codec: offer.codec.name,
        telephoneEventPayloadType: offer.telephoneEvent,
        srtp: keys,
        agent,
      },
      (event) => this.#onLegEvent(event),
    );
    const insideKey = keys === null || inside.crypto === null ? null : { tag: inside.crypto.tag, inline: base64(keys.send) };
    return { type: 'leg-opened', local, insideKey };
  }

  async #answerRelay(sdp: string): Promise<CallEvent> {
    const { sdp: outside } = await this.#relayed(this.#services.relay.answer({ ...this.#relayCall, toTag: 'agent' }, sdp));
    const { offer, facts } = this.#state;
    if (offer !== null)
      this.#session = { offer, offerSdp: facts.sdp, insideAnswer: sdp, answerSdp: '', version: 1, sessionId: facts.sessionId };
    return { type: 'relay-answered', sdp: outside };
  }

  #relayed<T>(work: Promise<T>): Promise<T> {
    this.#relayWork = work.catch(() => undefined);
    return work;
  }

  #insideKeys(inside: RelaySide): SrtpKeys | null {
    if (inside.crypto === null) return null;
    return { receive: Buffer.from(inside.crypto.inline, 'base64'), send: this.#services.newKey() };
  }

  #onLegEvent(event: LegEvent): void {
    switch (event.type) {
      case 'media-started':
      case 'digit':
        this.#log.debug({ event: event.type }, 'call.media');
        return;
      case 'agent-hangup':
        return this.dispatch({ type: 'hangup', reason: 'AGENT_HANGUP' });
      case 'media-lost':
        return this.dispatch({ type: 'hangup', reason: 'MEDIA_LOST' });
      case 'media-timeout':
        return this.dispatch({ type: 'hangup', reason: 'MEDIA_TIMEOUT' });
      default:
        assertNever(event);
    }
  }

  #answer(sdp: string): void {
    const { request, response, sessionTimer } = this.#context;
    if (this.#session !== null) this.#session = { ...this.#session, answerSdp: sdp };
    const headers = { ...this.#answerHeaders(), ...sessionTimer };
    // The callback form: listeners are attached before an ACK and BYE that came in the same read are looked at.
    this.#services.srf.createUAS(request, response, { localSdp: sdp, headers }, (error, dialog) => {
      if (this.#dialog !== null) return;
      if (dialog === undefined) {
        const isCrossing = /unknown transaction|request terminated/i.test(errorText(error));
        if (!isCrossing) this.#log.error({ error: errorText(error) }, 'call.answer.failed');
        return this.dispatch({ type: 'answer-failed', reason: isCrossing ? 'CALLER_CANCELLED' : 'INTERNAL_ERROR' });
      }
      this.#answeredAtMs = this.#services.clock.wallMs();
      this.#dialog = dialog;
      this.#listen(dialog);
    });
  }

  #listen(dialog: SrfDialog): void {
    dialog.on('ack', () => this.dispatch({ type: 'acknowledged' }));
    dialog.on('destroy', (_request, reason) => this.dispatch({ type: 'bye', reason: byeReason(reason) }));
    // Only `modify`: with hold or refresh listeners drachtio-srf answers by itself, with an old SDP.
    dialog.on('modify', (request, response) => void this.#onReoffer(request, response));
    dialog.on('update', (request, response) => void this.#onReoffer(request, response));
    dialog.on('options', (_request, response) => response.send(200, 'OK', { headers: { Allow: ALLOWED_METHODS } }));
    dialog.on('info', (request, response) =>
      request.body === ''
        ? response.send(200, 'OK', {})
        : response.send(415, 'Unsupported Media Type', { headers: { Accept: 'application/sdp' } }),
    );
    dialog.on('refer', (_request, response) => response.send(603, 'Decline', {}));
    for (const method of ['message', 'notify', 'publish'] as const) {
      dialog.on(method, (_request, response) => response.send(405, 'Method Not Allowed', { headers: { Allow: ALLOWED_METHODS } }));
    }
  }

  /** A re-INVITE or UPDATE: the session is negotiated anew with rtpengine, or the same answer is given again. The call lives either way. */
  async #onReoffer(request: SrfRequest, response: SrfResponse): Promise<void> {
    const reoffer = readReoffer({
      require: request.get('Require'),
      supported: request.get('Supported'),
      sessionExpires: request.get('Session-Expires'),
      contentType: request.get('Content-Type'),
      body: request.body,
    });
    if (!reoffer.ok) {
      this.#refuse(request, response, reoffer.error);
      return;
    }
    if (this.#session === null || this.#state.name === 'Ended') {
      this.#refuse(request, response, 'NO_DIALOG');
      return;
    }
    const headers = { ...this.#answerHeaders(), ...reoffer.value.sessionTimer };
    if (reoffer.value.sdp === '' && request.method === 'UPDATE') {
      response.send(200, 'OK', { headers });
      return;
    }
    try {
      const answer = await this.#renegotiate(this.#session, reoffer.value.sdp);
      if (answer.ok) response.send(200, 'OK', { headers, body: answer.value });
      else this.#refuse(request, response, answer.error);
    } catch (error) {
      this.#log.error({ error: errorText(error) }, 'call.reoffer.failed');
      this.#refuse(request, response, 'INTERNAL_ERROR');
    }
  }

  /** The answer to a new offer, agreed with rtpengine; the session is left as it was when there is none. */
  async #renegotiate(session: Session, sdp: string): Promise<Result<string, Reason>> {
    const encryption = this.#state.route?.number.inbound?.options.media_encryption ?? 'required';
    const outcome = await answerReoffer(session, sdp, encryption, {
      offer: (offer) => this.#relayed(this.#services.relay.offer(this.#relayCall, offer)),
      answer: (answer) => this.#relayed(this.#services.relay.answer({ ...this.#relayCall, toTag: 'agent' }, answer)),
    });
    if (!outcome.ok) return outcome;
    this.#session = outcome.value;
    this.#services.endpoint.setHeld(this.callId, outcome.value.offer.isHeld);
    if (this.#dialog !== null) this.#dialog.local.sdp = outcome.value.answerSdp;
    return ok(outcome.value.answerSdp);
  }

  #answerHeaders(): SrfHeaders {
    return { Contact: this.#context.contact, Allow: ALLOWED_METHODS, Supported: SUPPORTED_OPTIONS.join(', ') };
  }

  #refuse(request: SrfRequest, response: SrfResponse, reason: Reason): void {
    const { sipStatus, sipPhrase } = REASONS[reason];
    const headers = refusalHeaders(reason, {
      host: this.#context.warningHost,
      require: request.get('Require'),
      retryAfterSeconds: this.#services.retryAfterSeconds,
    });
    response.send(sipStatus, sipPhrase, { headers });
  }

  async #finish(reason: Reason): Promise<void> {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    const endedAtMs = this.#services.clock.wallMs();
    for (const { name, error } of await this.#scope.close())
      this.#log.error({ resource: name, error: errorText(error) }, 'call.close.failed');
    const record = this.#record(reason, endedAtMs);
    this.#log.info(
      { reason, sipStatus: record.sip_status, from: record.from, to: record.to, source: record.source_ip, quality: record.quality },
      record.answered_at === null ? 'call.refused' : 'call.ended',
    );
    try {
      await this.#services.calls.write(record);
    } catch (error) {
      this.#log.error({ error: errorText(error) }, 'call.record.not_written');
    }
    // Whoever shuts down after us must not take the connection away before the BYE is through.
    await this.#byeIsThrough();
    this.#onEnded(this);
  }

  async #byeIsThrough(): Promise<void> {
    let cancel: CancelTimer | undefined;
    const limit = new Promise<void>((resolve) => {
      cancel = this.#services.clock.setTimer(BYE_LIMIT_MS, resolve);
    });
    await Promise.race([this.#byeAnswered, limit]);
    cancel?.();
  }

  #record(reason: Reason, endedAtMs: number): CallRecord {
    const { request, called } = this.#context;
    const { route, offer } = this.#state;
    return {
      call_id: this.callId,
      org_id: route?.org.org_id ?? null,
      agent_id: route?.agent?.agent_id ?? null,
      sip_call_id: request.get('Call-ID') ?? '',
      from: request.get('From') ?? '',
      to: called ?? request.uri,
      source_ip: request.source_address,
      reason,
      sip_status: this.#answeredAtMs === null ? REASONS[reason].sipStatus : 200,
      codec: offer?.codec.name ?? null,
      started_at: new Date(this.#startedAtMs).toISOString(),
      answered_at: this.#answeredAtMs === null ? null : new Date(this.#answeredAtMs).toISOString(),
      ended_at: new Date(endedAtMs).toISOString(),
      quality: this.#figures,
    };
  }
}

function asIs(event: CallEvent): CallEvent {
  return event;
}

/** drachtio-srf gives the text of the Reason header of a BYE that the SIP server sent by itself. */
function byeReason(text: string): 'ACK_TIMEOUT' | 'SESSION_EXPIRED' | 'CALLER_HANGUP' {
  if (/ack timeout/i.test(text)) return 'ACK_TIMEOUT';
  return /session timer expired/i.test(text) ? 'SESSION_EXPIRED' : 'CALLER_HANGUP';
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
