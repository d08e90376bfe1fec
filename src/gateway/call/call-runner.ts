import type { AnswererEvent } from '../../rtp/answerer/answerer-detector.js';
import type { AgentAnswer } from '../model/agent.js';
import type { CallRecord } from '../model/call-record.js';
import type { TraceEntry } from '../model/call-trace.js';
import type { CallTarget, LiveCall } from '../model/live-calls.js';
import type { LegEvent } from '../model/media.js';
import { assertNever, errorText } from '../../lib/result.js';
import { within } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { Scope } from '../../lib/scope.js';
import { NamedTimers } from '../../lib/timers.js';
import { challengesOf, judgeCredentials, type CredentialsVerdict, type NonceScope } from '../admission/challenge.js';
import { pii } from '../../lib/pii.js';
import { namedHeaders } from '../model/passed-headers.js';
import type { Route } from '../model/records.js';
import { CallAgent } from './call-agent.js';
import { AgentRequests, tracedTools } from './agent-requests.js';
import { beginningCall, beginningOf, CallData, isAnswered, isSettled, type Call, type CallOrigin, type CallProgress } from './call.js';
import { CallDialog, q850CauseOf, type OpenInvite } from './call-dialog.js';
import { CallMedia, relayLost } from './call-media.js';
import { resumedCall, snapshotOf } from './call-snapshot.js';
import { failureOf } from './step-failure.js';
import { CallTrace, answerSummary, eventSummary, legSummary, sipWatch } from './call-trace.js';
import { HELD_PING_MS, isUnwatched } from './agent-side.js';
import { CallLegs, isTransfer, transferEvent } from './call-legs.js';
import { remainingMs, startCall, stepCall } from './machine.js';
import { callerCredentials, headerValues, trunkCredentials } from './trunk-authorization.js';
import { trunkHeaders } from './trunk-tls.js';
import { isJoined, isPlacing, type CallEffect, type CallEvent, type CallState, type CallTimer } from './state.js';
import type { InfoDigit } from './info-digit.js';
import { permission, type PlaceContext } from './place-context.js';
import { writeEnd } from './call-end.js';
import { REASONS, type Reason } from '../model/reasons.js';
import { publish } from '../ports/events.js';
import { AgentUnavailableError, type RelayPort } from '../ports/ports.js';
import type { RelaySide } from '../sdp/sdp-read.js';
import type { CallServices, InviteContext } from './call-services.js';

/** Longest wait for the answer to a BYE before the call counts as gone. */
const BYE_LIMIT_MS = 4_000;
/** Longest wait for what goes out at the end of a call, so that it stands in the trace. */
const TRACE_LIMIT_MS = 500;
/** 64·T1, and a second. */
const ACK_LIMIT_MS = 33_000;
const CLOSE_LIMIT_MS = 30_000;

/** Carries out what the call machine says, through the ports; owns everything the call opened. Decides nothing. */
export class CallRunner {
  readonly #log: Log;
  readonly #scope: Scope;
  readonly #timers: NamedTimers<CallTimer>;
  readonly #dialog: CallDialog;
  readonly #media: CallMedia;
  readonly #requests: AgentRequests;
  readonly #agent: CallAgent;
  readonly #trace: CallTrace;
  /** Made for the first transfer. */
  #legs: CallLegs | null = null;
  /** Wall time at the zero of monotonic time, as the call began: setting the clock during a call does not change its duration. */
  readonly #zeroMs: number;
  readonly #data: CallData;
  #wasRefused = false;
  /** Another host has the call. */
  #hasKept = false;
  /** Told once Redis has the call, or its record is written. */
  readonly #awaitingKept: (() => void)[] = [];
  #isTaken = false;
  #unheardSinceMs: number | null = null;
  readonly #queue: CallEvent[] = [];
  /** It steps, or is a kept call that is not resumed yet: events wait. */
  #isBusy = false;

  private constructor(
    private readonly services: CallServices,
    call: Call,
    /** Until it is answered. */
    private invite: Pick<InviteContext, 'open' | 'called' | 'claim' | 'authorization'> | null,
    private readonly onEnded: (runner: CallRunner) => void,
    private readonly placed: PlaceContext | null = null,
  ) {
    const data = new CallData(call);
    this.#data = data;
    const { origin, own } = call;
    this.#zeroMs = services.clock.wallMs() - services.clock.nowMs();
    this.#log = services.log.child({ call_id: origin.callId, sip_call_id: origin.sipCallId });
    this.#scope = new Scope(services.clock, CLOSE_LIMIT_MS);
    this.#timers = new NamedTimers(services.timers, (timer) => this.dispatch({ type: 'timer', timer }));
    const onSip = services.onSipMessage && sipWatch(services.onSipMessage, origin, own.contact);
    this.#trace = new CallTrace(services.clock, services.isTraced, { isTimed: services.isTimed === true, onSip });
    const owner = {
      dispatch: (event: CallEvent) => {
        this.#noteDial(event);
        this.dispatch(event);
      },
      onDigit: (digit: InfoDigit) => this.#media.send({ do: 'take-digit', ...digit }),
      isPlaced: origin.direction === 'outbound',
      credentials: () => {
        const { route } = this.#state;
        if (route === null) return null;
        return origin.direction === 'inbound' ? callerCredentials(route) : trunkCredentials(route.number.outbound ?? {});
      },
      trunkHeaders: () =>
        origin.direction === 'inbound' ? {} : trunkHeaders(this.#state.route?.number.outbound, services.trunksArePublic),
      noReinvite: () => {
        const { inbound, outbound } = this.#state.route?.number ?? {};
        return (origin.direction === 'inbound' ? inbound?.options : outbound)?.no_reinvite === true;
      },
      onSignallingError: (signallingError: string) => {
        data.note({ signallingError });
        this.#keep();
      },
      onCause: (q850Cause: number) => data.note({ q850Cause }),
      onDialled: () => this.#keep(),
      onTaken: () => this.#drop(),
    };
    this.#dialog = new CallDialog(services, data, owner, this.#trace, this.#log);
    this.#requests = new AgentRequests(
      { tools: services.tools, toolRunner: tracedTools(services, origin.callId), doNotCall: services.doNotCall },
      data,
      (answer) => this.#notifyAgent(answer),
      () => this.#keep(true),
      this.#log,
    );
    this.#media = new CallMedia(origin.callId, origin.sipCallId, origin.parentCallId ?? null, services, this.#scope, this.#trace, (event) =>
      this.#onLegEvent(event),
    );
    const parts = { media: this.#media, requests: this.#requests, scope: this.#scope, trace: this.#trace, log: this.#log };
    this.#agent = new CallAgent(services, {
      ...parts,
      data,
      startAgent: () => this.#startAgent(),
      unheardSinceMs: () => this.#unheardSinceMs,
      dispatch: (event) => this.dispatch(event),
      keep: () => this.#keep(),
    });
  }

  static invited(services: CallServices, context: InviteContext, onEnded: (runner: CallRunner) => void): CallRunner {
    const { origin, open, facts, own } = context;
    const runner = new CallRunner(services, beginningCall(origin, own, startCall(facts), null), context, onEnded);
    runner.#trace.received(open.request, open.response);
    open.request.on('cancel', (cancel) => {
      runner.#trace.sip('in', cancel?.raw, 'CANCEL');
      runner.#noteCancelled(cancel?.raw);
      // The SIP server answers both (RFC 3261 §9.2) and reports neither.
      runner.#trace.sip('out', undefined, 'SIP/2.0 200 OK, to the CANCEL');
      runner.#trace.sip('out', undefined, 'SIP/2.0 487 Request Terminated');
    });
    return runner;
  }

  /** A call that we place: `{ type: 'placed' }` begins it. */
  static placed(services: CallServices, context: PlaceContext, onEnded: (runner: CallRunner) => void): CallRunner {
    const { origin, own, facts, ringTimeoutMs, target } = context;
    const call = beginningCall(origin, own, startCall(facts, ringTimeoutMs), target.dialogId ?? null);
    return new CallRunner(services, call, null, onEnded, context);
  }

  /** A call that an earlier process had, which died at this wall time. Throws when what was kept cannot be used. */
  static orphaned(services: CallServices, kept: Call, unheardSinceMs: number, onEnded: (runner: CallRunner) => void): CallRunner {
    const { dialog, node, progress } = kept;
    const runner = new CallRunner(services, resumedCall(kept), null, onEnded);
    runner.#isBusy = true;
    runner.#unheardSinceMs = unheardSinceMs;
    if (dialog !== null) runner.#dialog.adopt(dialog);
    runner.#scope.defer('call count', () => runner.#uncount());
    runner.#media.inherit(node);
    runner.#requests.restore((progress.answeredAtMs ?? 0) - runner.#zeroMs);
    return runner;
  }

  get origin(): CallOrigin {
    return this.#data.now.origin;
  }

  get #state(): CallState {
    return this.#data.now.state;
  }

  get #progress(): CallProgress {
    return this.#data.now.progress;
  }

  get callId(): string {
    return this.origin.callId;
  }

  get stateName(): CallState['name'] {
    return this.#state.name;
  }

  #timeMs(): number {
    return Math.round(this.#zeroMs + this.services.clock.nowMs());
  }

  /** The ports of its media relay, while it is answered. */
  get relayPorts(): readonly RelayPort[] {
    const { name, session, agentFacing } = this.#state;
    if ((name !== 'Talking' && name !== 'AwaitingAck') || session === null) return [];
    const portOf = (side: RelayPort['side'], { address, rtpPort: port }: RelaySide): RelayPort => ({
      relayId: this.callId,
      side,
      address,
      port,
    });
    return [portOf('carrier', session.carrierFacing), ...(agentFacing === null ? [] : [portOf('agent', agentFacing)])];
  }

  /** `null`: it has ended. */
  get live(): LiveCall | null {
    if (this.stateName === 'Ended') return null;
    const { callId, direction, caller, to, startedAtMs, parentCallId } = this.origin;
    const orgId = this.#state.route?.org.org_id ?? this.origin.orgId ?? null;
    const parent = parentCallId === undefined ? {} : { parentCallId };
    return { callId, orgId, direction, from: caller.number, to, startedAtMs, answeredAtMs: this.#progress.answeredAtMs, ...parent };
  }

  get transcript(): CallRecord['transcript'] {
    return this.#state.route?.org.transcript_days === 0 ? [] : [...this.#data.now.notes.said.transcript];
  }

  get trace(): readonly TraceEntry[] {
    return this.#trace.read();
  }

  /** One event, then all its effects in order, then the next event. */
  dispatch(event: CallEvent): void {
    this.#queue.push(event);
    this.#goOn();
  }

  readonly #goOn = (): void => {
    if (!this.#isBusy && this.services.gate?.holds(this.#goOn) !== true) this.#work();
  };

  #work(): void {
    this.#isBusy = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) this.#step(next);
    this.#isBusy = false;
  }

  /** Opens the media of a kept call again: the caller gets silence until `resume`. @param node the media relay that has its session */
  reopen(node: string | null): void {
    this.#media.reopen(node, this.#state).catch(() => undefined);
  }

  /**
   * Lets a kept call go on, with its media and agent; ends it when that is not possible.
   * @param node the media relay that has its session; `null`, or one that is not ours: another one gets the call
   */
  async resume(node: string | null): Promise<void> {
    const reopened = this.#media.reopen(node, this.#state);
    let moved: CallEvent | null = null;
    this.#work();
    try {
      const hasRelay = await reopened;
      if (hasRelay === null) this.abandon();
      if (this.#state.name === 'Ended') return;
      const hasLeg = !isJoined(this.#state);
      if (!hasLeg) this.#agent.restore();
      if (!hasRelay) moved = hasLeg ? await this.#media.reserve(this.#media.isEncrypted) : relayLost(this.services, true);
      // The leg first: only one media worker has its port, and the agent has to be on the same.
      if (hasLeg) await this.#agent.connect(this.#state.agent.choice, true);
    } catch (error) {
      this.#log.warn({ error: errorText(error) }, 'call.resume.failed');
      this.dispatch({ type: 'hangup', reason: error instanceof AgentUnavailableError ? 'AGENT_LOST' : 'GATEWAY_RESTARTED' });
      return;
    }
    // Connecting takes its time: the caller may be gone.
    if (this.stateName === 'Ended') return;
    this.#timers.start('max-duration', this.#remainingMs());
    this.#keep();
    if (isUnwatched(this.#state)) this.#timers.start('held', HELD_PING_MS);
    if (moved === null) {
      if (!isJoined(this.#state)) this.#startAgent();
      this.#dialog.ping('GATEWAY_RESTARTED');
    } else this.dispatch(moved);
    this.#ownLegs.resume();
    // Who answered is not found out any more.
    if (this.#progress.answeredBy === null) this.#agent.onAnswerer({ type: 'verdict', answerer: 'unknown' });
    const silentMs = this.#timeMs() - (this.#unheardSinceMs ?? this.#timeMs());
    this.#trace.add('gateway', null, `resumed after a restart of the gateway, ${String(silentMs)} ms without an agent`);
    this.#log.info({ resumed: this.#progress.resumed, silent_ms: silentMs }, 'call.resumed');
  }

  #remainingMs(): number {
    return remainingMs(this.#state, this.#timeMs() - (this.#progress.answeredAtMs ?? this.origin.startedAtMs));
  }

  /** Ends a kept call that cannot go on. Whether one was answered that we dialled is not known: it gets a BYE, too. */
  abandon(): void {
    this.#work();
    this.dispatch({ type: 'hangup', reason: isSettled(this.#data.now) ? 'GATEWAY_RESTARTED' : 'DIAL_AMBIGUOUS' });
  }

  /**
   * The SIP server was away and hands its calls back: whether this one is among them shows when it is asked about it.
   * @param askAfterMs when it is asked
   */
  serverBack(askAfterMs: number): void {
    // INVITEs that had no answer were answered, and ours cancelled, by the SIP server when the connection was lost.
    if (!isAnswered(this.#data.now) || isPlacing(this.#state)) return this.serverLost();
    // It shows an ACK that came meanwhile, and tells when it gives up waiting for one. Only one with an answer is waited for.
    if (this.stateName === 'AwaitingAck' && this.#state.lateOffer !== null) this.#after(ACK_LIMIT_MS, () => this.#assumeAck());
    else this.#assumeAck();
    if (askAfterMs === 0) return this.#dialog.ping('INTERNAL_ERROR');
    this.#after(askAfterMs, () => this.#dialog.ping('INTERNAL_ERROR'));
  }

  #assumeAck(): void {
    if (this.stateName === 'AwaitingAck' || this.stateName === 'HangingUp') this.dispatch({ type: 'acknowledged', sdp: '' });
  }

  /** Unless the call ends before. */
  #after(delayMs: number, act: () => void): void {
    this.#scope.defer('timer', this.services.clock.setTimer(delayMs, act));
  }

  /** The SIP server was lost and is back: it may still know the dialog (drachtio-server does), and the caller must not be left in it. */
  serverLost(): void {
    if (this.#state.name !== 'Ended') this.#dialog.bye('INTERNAL_ERROR');
    this.dispatch({ type: 'server-lost', reason: 'INTERNAL_ERROR' });
  }

  /** A bug of ours in one step ends this call as our fault, and no other. */
  #step(event: CallEvent): void {
    try {
      const { state, effects } = stepCall(this.#state, event);
      const summary = eventSummary(event, this.#state, state);
      if (summary !== null) this.#trace.add('gateway', null, summary);
      this.#data.change({ state });
      this.#legs?.note(event);
      for (const effect of effects) this.#perform(effect);
    } catch (error) {
      this.#log.error({ event: event.type, error: error instanceof Error ? error.stack : errorText(error) }, 'call.bug');
      // Prevents endless repetition if handling `failed` throws.
      if (event.type !== 'failed') this.#queue.push({ type: 'failed', reason: 'INTERNAL_ERROR', attempt: null });
    }
  }

  #perform(effect: CallEffect): void {
    switch (effect.do) {
      case 'route':
        return this.#async(null, this.#route());
      case 'permit':
        return this.#async(null, this.#permit());
      case 'connect-agent':
        if (effect.choice === 'own' && this.origin.direction === 'inbound' && this.#progress.reports === 0) this.#agent.report('initiated');
        return this.#async(null, this.#agent.connect(effect.choice));
      case 'offer-relay':
        return this.#async(effect.attempt, this.#media.offer(effect));
      case 'answer-relay':
        return this.#async(effect.attempt, this.#media.answer(effect.sdp, effect.attempt));
      case 'offer-to-carrier':
        return this.#async(effect.attempt, this.#media.offerToCarrier(effect));
      case 'answer-from-carrier':
        return this.#async(effect.attempt, this.#media.answerFromCarrier(effect));
      case 'reserve-leg':
        return this.#async(null, this.#media.reserve());
      case 'open-leg':
        return this.#async(null, this.#media.open(effect, this.placed?.detectAnswerer === true && this.stateName === 'Connecting'));
      case 'leave-relay':
        return this.#media.leaveRelay();
      case 'start-leg':
        this.#trace.add('agent', 'out', 'start');
        return this.#startAgent();
      case 'close-leg':
        this.#agent.leave();
        return this.#media.closeLeg();
      case 'need-packets':
      case 'ring-back':
      case 'three-way':
        return this.#media.send(effect);
      case 'dial-leg':
      case 'notify-call':
        return this.#ownLegs.perform(effect);
      case 'direct-leg':
        if (effect.isHeld !== null) this.#trace.timeline.moment(effect.isHeld ? 'hold' : 'resume');
        return this.#media.send({ do: 'direct', direction: effect.direction });
      case 'change-leg':
        return this.#async(null, this.#media.change(effect));
      case 'notify-agent':
        return this.#notifyAgent(effect.answer);
      case 'start-timer':
        return this.#timers.start(effect.timer, effect.delayMs);
      case 'stop-timer':
        return this.#timers.stop(effect.timer);
      case 'keep':
        return this.#keep(effect.mayWait);
      case 'finish':
        return void this.#finish(effect.reason);
      default:
        return this.#send(effect);
    }
  }

  /** What goes to the carrier. */
  #send(
    effect: Extract<
      CallEffect,
      {
        do:
          | ('ring' | 'answer' | 'refuse' | 'challenge' | 'accept' | 'reject' | 'reinvite' | 'refer' | 'ping' | 'bye')
          | ('dial' | 'cancel-dial' | 'acknowledge');
      }
    >,
  ): void {
    const open = this.invite?.open;
    switch (effect.do) {
      case 'ring':
        this.#moment('ringing');
        return open && this.#dialog.ring(open);
      case 'answer':
        return open && this.#answer(open, effect.sdp);
      case 'refuse':
        this.#wasRefused = true;
        this.#data.note({ refusalStatus: REASONS[effect.reason].sipStatus, reasonDetail: effect.detail });
        return open && this.#dialog.refuse(open.request, open.response, effect.reason, { detail: effect.detail });
      case 'challenge':
        this.#wasRefused = true;
        return open && this.#challenge(open, effect.isStale);
      case 'accept':
        return this.#dialog.accept(effect.requestId, effect.sdp);
      case 'reject':
        return this.#dialog.reject(effect.requestId, effect.reason);
      case 'reinvite':
        return this.#dialog.reinvite(effect.sdp, effect.attempt);
      case 'refer':
        return this.#ownLegs.refer(effect, () => this.#dialog.refer(effect.target, effect.referId, effect.sipHeaders ?? {}));
      case 'ping':
        return effect.isHeld ? this.#dialog.pingHeld() : this.#dialog.ping('INTERNAL_ERROR');
      case 'bye':
        return this.#dialog.bye(effect.reason, this.#state.byeHeaders);
      case 'dial':
        this.#agent.report('initiated');
        return this.placed === null ? undefined : this.#dialog.dial(this.placed.target, effect.sdp);
      case 'cancel-dial':
        return this.#dialog.cancelDial(effect.reason);
      case 'acknowledge':
        this.#data.change({ dialog: this.#dialog.keepDialled() });
        this.#data.note({ acknowledgedAtMs: this.#timeMs() });
        return this.#dialog.acknowledge();
      default:
        assertNever(effect);
    }
  }

  #challenge({ request, response }: OpenInvite, isStale: boolean): void {
    const { route } = this.#state;
    if (route === null) throw new Error('a number that is not known challenges nobody');
    const challenges = challengesOf(nonceScope(route), this.#data.now.own.warningHost, this.services.clock.wallMs(), isStale);
    // Header fields of their own, never joined by commas (RFC 3261 §7.3.1): drachtio-srf writes a value as it is, line breaks included.
    const headers = { 'WWW-Authenticate': challenges.join('\r\nWWW-Authenticate: ') };
    this.#dialog.refuse(request, response, 'CREDENTIALS_REQUIRED', { headers });
  }

  /** `null`: the number has no challenge. */
  #judge(route: Route | null, { open, authorization }: Pick<InviteContext, 'open' | 'authorization'>): CredentialsVerdict | null {
    const challenge = route?.number.inbound?.options.challenge;
    if (route === null || challenge == null) return null;
    const verdict = judgeCredentials(authorization, open.request.uri, challenge, nonceScope(route), this.services.clock.wallMs());
    publish('call.challenged', { verdict });
    const { org_id } = route.org;
    if (verdict === 'wrong') this.#log.info({ org_id, to: pii(this.origin.to), source: this.origin.source.ip }, 'call.credentials.wrong');
    return verdict;
  }

  /** The snapshot leaves before the 200: a gateway that is killed has every call that it answered. */
  #answer(open: OpenInvite, sdp: string): void {
    this.#data.change({ dialog: this.#dialog.keepAnswer(open) });
    this.#keep(false, this.#timeMs());
    this.#dialog.answer(open, sdp, () => this.#onAnswered(open));
  }

  #onAnswered({ request }: OpenInvite): void {
    // Written with the ACK.
    this.#data.change({ dialog: this.#dialog.keep(request.msg.raw ?? '') });
    this.invite = null;
    this.#moment('answered');
  }

  #moment(event: 'ringing' | 'answered'): void {
    const atMs = this.#timeMs();
    const { direction, startedAtMs } = this.origin;
    this.#data.note(event === 'ringing' ? { ringingAtMs: atMs } : { answeredAtMs: atMs });
    if (event === 'answered') publish('call.answered', { direction, tookMs: atMs - startedAtMs });
    this.#agent.report(event);
  }

  /** An effect that fails comes back as an event: the expected failure by its reason, anything else as our own fault. */
  #async(attempt: number | null, work: Promise<CallEvent | null>): void {
    work.then(
      (event) => {
        if (event !== null) this.dispatch(event);
      },
      (error: unknown) => {
        const reason = failureOf(error);
        // The end of a call stops what it waits for.
        const isStopped = this.#state.name === 'Ended' && reason !== 'INTERNAL_ERROR';
        if (!isStopped) this.#log.error({ reason, error: errorText(error) }, 'call.step.failed');
        this.dispatch({ type: 'failed', reason, attempt });
      },
    );
  }

  /** The call goes on at this URL or in this document; false: it cannot, because it is not answered. */
  redirect(target: CallTarget): boolean {
    if (!isAnswered(this.#data.now) || this.#state.route === null || this.stateName === 'Ended') return false;
    this.#agent.redirect(target);
    return true;
  }

  async #route(): Promise<CallEvent> {
    const { invite } = this;
    if (invite === null || invite.called === null) throw new Error('a call without a number is looked up');
    const { called, claim } = invite;
    this.#scope.defer('call count', () => this.#uncount());
    const [{ route, load, staleMs }, identity] = await Promise.all([
      this.#trace.timeline.step('look-up', this.services.routes.lookup(called, beginningOf(this.origin))),
      this.services.identities.verify({ ...claim, called }),
    ]);
    if (staleMs !== null) this.#log.warn({ stale_ms: staleMs }, 'call.route.stale');
    const { raw = '' } = invite.open.request.msg;
    const named = namedHeaders((name) => headerValues(raw, name), route?.number.inbound?.options.headers_to_agent);
    const credentials = this.#judge(route, invite);
    return { type: 'routed', route, load, isStale: staleMs !== null, identity, credentials, namedHeaders: named };
  }

  async #permit(): Promise<CallEvent> {
    if (this.placed === null) throw new Error('only a call that we place needs permission');
    this.#scope.defer('dial', () => this.#uncount());
    return permission(this.placed, this.services, this.#log);
  }

  #noteCancelled(cancel: string | undefined): void {
    const q850Cause = q850CauseOf(headerValues(cancel ?? '', 'reason').join(','));
    if (q850Cause !== null) this.#data.note({ q850Cause });
  }

  /** When a call that we place rang, and was answered. */
  #noteDial(event: CallEvent): void {
    if (event.type === 'dial-proceeding' && event.status >= 180 && this.#progress.ringingAtMs === null) this.#moment('ringing');
    if (event.type === 'dial-answered' && this.#state.placing?.givenUp === null && this.stateName === 'Dialling') this.#moment('answered');
  }

  #notifyAgent(answer: AgentAnswer): void {
    this.#trace.add('agent', 'out', ...answerSummary(answer));
    this.#agent.notify(answer);
  }

  #onLegEvent(event: LegEvent): void {
    if (event.type === 'agent-marks') return this.#requests.keepMarks(event.names);
    this.#trace.add('agent', 'in', legSummary(event));
    switch (event.type) {
      case 'media-started':
      case 'digit':
        this.#trace.timeline.moment(event.type);
        this.#log.debug({ event: event.type }, 'call.media');
        return;
      case 'agent-hangup':
      case 'agent-away':
      case 'agent-lost':
      case 'agent-finished':
      case 'agent-note':
      case 'stream-started':
      case 'fork-ended':
      case 'conversation-ended':
        return this.#agent.take(event);
      case 'answered-by':
        return this.#onAnswerer(event.event);
      case 'provider-tokens':
        return this.services.sessions.used(this.callId, event.tokens);
      case 'agent-request':
        if (!isTransfer(event.request)) return this.#requests.take(event.request);
        return this.dispatch(transferEvent(event.request, this.#state.route));
      case 'media-lost':
        return this.dispatch({ type: 'leg-lost' });
      case 'media-dead':
        // Where it may not move, the watchdog of the leg ends it: such reports are no sign of life.
        if (this.services.mayMoveMedia()) this.dispatch(relayLost(this.services, true, 'sender-reports'));
        return;
      case 'media-timeout':
        return this.dispatch({ type: 'hangup', reason: 'MEDIA_TIMEOUT' });
      default:
        assertNever(event);
    }
  }

  #onAnswerer(event: AnswererEvent): void {
    if (event.type === 'verdict') this.#data.note({ answeredBy: event.answerer });
    this.#notifyAgent({ type: 'answered-by', requestId: null, event });
    this.#agent.onAnswerer(event);
  }

  #startAgent(): void {
    this.#requests.begin(this.services.clock.nowMs());
    this.#media.send({ do: 'start' });
  }

  get #ownLegs(): CallLegs {
    return (this.#legs ??= new CallLegs(this.services, {
      call: this.#data,
      dispatch: (event) => this.dispatch(event),
      remainingMs: () => this.#remainingMs(),
      wallMs: () => this.#timeMs(),
      note: (text) => this.#trace.add('gateway', null, text),
      log: this.#log,
    }));
  }

  #keep(mayWait = false, answeredAtMs = this.#progress.answeredAtMs): void {
    // A 200 that was on its way when the call ended.
    if (this.#state.name === 'Ended') return;
    this.#data.change({ node: this.#media.node });
    const snapshot = snapshotOf({ ...this.#data.now, progress: { ...this.#progress, answeredAtMs } });
    if (snapshot === null) return;
    this.services.snapshots.persist(snapshot, mayWait);
    this.#hasKept = true;
    if (this.#awaitingKept.length > 0) void this.services.snapshots.written().then(() => this.#tellKept());
  }

  /** Resolves once Redis has the call, or its record is written. */
  whenKept(): Promise<void> {
    if (this.#hasKept && this.#state.name !== 'Ended') return this.services.snapshots.written();
    return new Promise((resolve) => this.#awaitingKept.push(resolve));
  }

  #tellKept(): void {
    for (const tell of this.#awaitingKept.splice(0)) tell();
  }

  /** Another host has the call, and writes its record. */
  #drop(): void {
    if (this.#state.name === 'Ended') return;
    this.#isTaken = true;
    this.#data.change({ state: { ...this.#state, name: 'Ended' } });
    this.#log.warn({}, 'call.taken_over');
    void this.#close().then(() => {
      this.#tellKept();
      this.services.snapshots.delete(this.callId);
      this.onEnded(this);
    });
  }

  #uncount(): void {
    const { answeredAtMs } = this.#progress;
    if (this.origin.direction === 'outbound') {
      if (this.#isTaken) this.services.dials.disown(this.callId);
      else this.services.dials.settle(this.callId, answeredAtMs === null ? 0 : this.#timeMs() - answeredAtMs);
    } else if (this.#isTaken) this.services.routes.disown(this.callId);
    else this.services.routes.release(this.callId, this.#wasRefused);
  }

  /** Frees everything. */
  async #close(): Promise<void> {
    for (const part of [this.#timers, this.#requests, this.#agent, this.#dialog, this.#legs]) part?.close();
    for (const { name, error } of await this.#scope.close())
      this.#log.error({ resource: name, error: errorText(error) }, 'call.close.failed');
  }

  async #writeEnd(reason: Reason, atMs: number): Promise<void> {
    const call = { data: this.#data.now, quality: this.#media.quality, trace: this.#trace, log: this.#log };
    this.#agent.report('completed', await writeEnd(this.services, call, { reason, atMs }));
  }

  async #finish(reason: Reason): Promise<void> {
    const atMs = this.#timeMs();
    await this.#close();
    await within(this.services.clock, TRACE_LIMIT_MS, this.#trace.settled());
    // The INVITE that follows a challenge is the call.
    if (reason !== 'CREDENTIALS_REQUIRED') await this.#writeEnd(reason, atMs);
    this.#tellKept();
    // Not before the record: killed between the two, the call would leave nothing.
    this.services.snapshots.delete(this.callId);
    // Wait for the BYE: a later shutdown closes its connection.
    await within(this.services.clock, BYE_LIMIT_MS, this.#dialog.byeAnswered);
    this.onEnded(this);
  }
}

function nonceScope({ org, number }: Route): NonceScope {
  return { secret: org.webhook_secret, number: number.phone_number };
}
