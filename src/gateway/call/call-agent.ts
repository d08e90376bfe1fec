import type { AnswererEvent } from '../../rtp/answerer/answerer-detector.js';
import type { VoiceApplication } from '../model/voice-application.js';
import { DETECTION_TIMEOUT_MS, detected, type AnsweredBy } from '../twilio/answered-by.js';
import type { CallerIdentity, CallRecord } from '../model/call-record.js';
import { callerForAgent } from '../model/passed-headers.js';
import type { Route, StatusCallbackEvent } from '../model/records.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Scope } from '../../lib/scope.js';
import type { AgentAnswer, AgentDescription } from '../model/agent.js';
import { voiceOf } from '../model/speech-service.js';
import { errorText } from '../../lib/result.js';
import type { CallTarget } from '../model/live-calls.js';
import type { LegEvent } from '../model/media.js';
import { AgentUnavailableError, ProviderLimitError, type ProviderSessions, type VoiceServer } from '../ports/ports.js';
import { briefingAgent, describeAgent, speechOf, type OperatorAgent, voiceApplicationOf } from './agent.js';
import type { AgentRequests } from './agent-requests.js';
import { secondLegRules } from './call-legs.js';
import { statusCallback } from './status-callbacks.js';
import type { VoiceFacts } from '../twilio/call-parameters.js';
import type { CallMedia } from './call-media.js';
import { withPromptData } from './prompt-data.js';
import { isSettled, type CallData, type CallOrigin } from './call.js';
import { connectSummary, type CallTrace } from './call-trace.js';
import type { AgentChoice, CallEvent, CallState } from './state.js';
import { DIAL_REQUEST, VoiceCall, type VoiceHost } from './voice-call.js';

export interface AgentServices {
  readonly sessions: ProviderSessions;
  readonly operatorAgent: OperatorAgent;
  readonly voiceServer: VoiceServer;
  readonly clock: Clock;
  /** The W3C header of requests that are made for a call; left out: they have none. */
  readonly traceparent?: (callId: string) => string;
}

interface CallParts {
  readonly data: CallData;
  readonly media: Pick<CallMedia, 'connectAgent' | 'startFork' | 'send'>;
  /** The agent that is connected now begins to talk with the caller. */
  readonly startAgent: () => void;
  readonly requests: AgentRequests;
  readonly scope: Scope;
  readonly trace: CallTrace;
  readonly log: Log;
  /** Wall time at which the earlier process died that had the call; `null`: this one has it from the start. */
  readonly unheardSinceMs: () => number | null;
  readonly dispatch: (event: CallEvent) => void;
  /** Stores a snapshot. */
  readonly keep: () => void;
}

/** Until it is known who answered: longer than that takes. */
const WAITING = '<Response><Pause length="120"/></Response>';

/** Makes ready and connects the agent of one call, or one after the other as its voice webhook says. */
export class CallAgent {
  #hasSession = false;
  /** Set once a voice webhook, or the API, decides what the caller gets to hear. */
  #voice: VoiceCall | null = null;
  #answeredBy: AnsweredBy | null = null;
  /** The end of its greeting is awaited. */
  #isMachine = false;

  constructor(
    private readonly services: AgentServices,
    private readonly call: CallParts,
  ) {}

  /** Who answered, in Twilio's words, once its application got to know it. */
  get answeredBy(): AnsweredBy | null {
    return this.#answeredBy;
  }

  /** A status callback, where the call's application wants one of this moment. Does not wait for the answer. */
  report(event: StatusCallbackEvent, record: CallRecord | null = null): void {
    const { token = '', statusCallback: callback = null } = this.#application ?? {};
    const facts = this.#voiceFacts();
    if (facts === null || callback?.events.includes(event) !== true) return;
    const { reports } = this.call.data.now.progress;
    const moment = { event, atMs: this.services.clock.wallMs(), sequence: reports, record };
    this.call.data.note({ reports: reports + 1 });
    void this.services.voiceServer.notify(statusCallback(token, callback, facts, moment)).then((sent) => {
      if (!sent.ok) this.call.log.warn({ error: sent.error }, 'call.status_callback.failed');
    });
  }

  get #state(): CallState {
    return this.call.data.now.state;
  }

  get #origin(): CallOrigin {
    return this.call.data.now.origin;
  }

  /**
   * Rejects with `AgentUnavailableError`, `ProviderLimitError`, or `MediaUnavailableError`. `null`: the call has ended meanwhile.
   * @param isResumed the call goes on after a restart
   */
  async connect(choice: AgentChoice, isResumed = false): Promise<CallEvent | null> {
    const { first = null } = this.#application ?? {};
    const script = choice === 'own' ? this.call.data.now.script : null;
    if (script !== null) {
      await this.#voiceCall().resume(script);
      return { type: 'agent-connected' };
    }
    if (first === null || choice !== 'own') {
      // It stands in for a webhook that failed.
      this.#voice?.leave();
      this.#voice = null;
      this.call.data.change({ script: null });
      return this.#connect(choice, isResumed);
    }
    const { machineDetection, machineDetectionTimeoutMs = DETECTION_TIMEOUT_MS } = this.#application ?? {};
    const begins = machineDetection === undefined ? first : { twiml: WAITING };
    const refusal = await this.call.trace.timeline.step('agent connect', this.#voiceCall().begin(begins));
    if (refusal === null && machineDetection !== undefined)
      this.call.scope.defer(
        'timer',
        this.services.clock.setTimer(machineDetectionTimeoutMs, () => this.#begin(this.#isMachine ? 'machine_end_other' : 'unknown')),
      );
    if (refusal === null) return { type: 'agent-connected' };
    return { type: 'agent-refused', reason: refusal === 'busy' ? 'AGENT_BUSY' : 'AGENT_DECLINED' };
  }

  /** The call goes on at this URL or in this document. */
  redirect(target: CallTarget): void {
    this.#voiceCall().redirect(target);
  }

  /** The agent has ended or failed, or one of its streams began or ended. */
  take(
    event: Extract<
      LegEvent,
      | { type: 'agent-finished' | 'agent-hangup' | 'agent-away' | 'agent-lost' | 'agent-note' }
      | { type: 'conversation-ended' | 'stream-started' | 'fork-ended' }
    >,
  ): void {
    if (event.type === 'agent-note') return event.isFailure ? this.#onError(event.text) : undefined;
    if (event.type === 'stream-started' || event.type === 'fork-ended') this.#voice?.takeStream(event);
    else if (event.type === 'agent-away') this.#onAway();
    else if (this.#voice !== null) this.#voice.take(event);
    else {
      const isLost = event.type === 'conversation-ended' ? event.error !== null : event.type === 'agent-lost';
      const { sipHeaders } = event.type === 'agent-hangup' ? event : {};
      const headers = sipHeaders === undefined ? {} : { sipHeaders };
      this.call.dispatch({ type: 'hangup', reason: isLost ? 'AGENT_LOST' : 'AGENT_HANGUP', ...headers });
    }
  }

  /** Where documents decide, the next one need not wait for the agent before the 200. */
  #onAway(): void {
    if (this.#voice === null) this.call.dispatch({ type: 'agent-away' });
    else if (!isSettled(this.call.data.now)) this.#voice.take({ type: 'agent-lost' });
  }

  /** What is found out of who answered: the first document may have waited for it. */
  onAnswerer(event: AnswererEvent): void {
    const { machineDetection } = this.#application ?? {};
    if (machineDetection === undefined) return;
    this.#isMachine ||= event.type === 'verdict' && event.answerer === 'machine';
    const answeredBy = detected(machineDetection, event);
    if (answeredBy !== null) this.#begin(answeredBy);
  }

  /** The first document, which has waited. */
  #begin(answeredBy: AnsweredBy): void {
    const { first = null } = this.#application ?? {};
    if (first === null || this.#answeredBy !== null) return;
    this.#answeredBy = answeredBy;
    this.redirect(first);
  }

  get #application(): VoiceApplication | null {
    return voiceApplicationOf(this.#origin, this.#state.route);
  }

  /** The answer to a request of the agent. */
  notify(answer: AgentAnswer): void {
    if (this.#voice !== null && answer.requestId === DIAL_REQUEST) return this.#voice.answered(answer);
    this.call.media.send({ do: 'notify-agent', answer });
  }

  /** The media of the call ends, and the call goes on without. */
  leave(): void {
    this.#voice?.leaveMedia();
    if (this.#hasSession) this.services.sessions.end(this.#origin.callId);
    this.#hasSession = false;
  }

  /** A call of an earlier process whose document, if there is one, waits for the end of a `<Dial>`. */
  restore(): void {
    if (this.call.data.now.script !== null) this.#voiceCall();
  }

  close(): void {
    this.#voice?.close();
  }

  #voiceCall(): VoiceCall {
    const { route } = this.#state;
    const facts = this.#voiceFacts();
    if (route === null || facts === null) throw new Error('a call without a route has no script');
    const application = this.#application ?? { token: route.org.twilio_token, sendDigits: null, fallback: null };
    this.#voice ??= new VoiceCall(this.services.voiceServer, { facts, application }, this.#voiceHost());
    return this.#voice;
  }

  get #knownCaller(): CallerIdentity {
    const { route, namedHeaders = {} } = this.#state;
    return callerForAgent(this.#origin.caller, namedHeaders, route?.number.inbound?.options.headers_to_agent);
  }

  /** `null`: it is not known whose call it is. */
  #voiceFacts(): VoiceFacts | null {
    const { callId, direction, to, orgId: placedBy } = this.#origin;
    const { route, identity } = this.#state;
    const orgId = route?.org.org_id ?? placedBy;
    return orgId === undefined ? null : { callId, orgId, direction, to, caller: this.#knownCaller, identity, answeredBy: this.#answeredBy };
  }

  #voiceHost(): VoiceHost {
    const { call, services } = this;
    const answeredBy = (): AnsweredBy | null => this.#answeredBy;
    const speech = speechOf(services.operatorAgent, this.#state.route);
    return {
      speech,
      call: call.data,
      get answeredBy() {
        return answeredBy();
      },
      connect: async (agent) => {
        const permitted = await this.#permitted(agent);
        if (this.#isOver()) return;
        call.trace.add('agent', 'out', connectSummary(permitted));
        await call.media.connectAgent(this.#owned(permitted));
        if (this.#state.name === 'Talking') call.startAgent();
      },
      startFork: (fork) => call.media.startFork(fork),
      stopFork: (streamSid) => call.media.send({ do: 'stop-fork', streamSid }),
      transfer: (to, requestId, { callerId: from, ringTimeoutMs, timeLimitMs, sipHeaders = {} }) => {
        const leg = secondLegRules({ from, ringTimeoutMs, timeLimitMs, afterwards: 'go-on' });
        call.dispatch({ type: 'transfer-asked', requestId, to, leg, sipHeaders });
      },
      leaveLeg: () => {
        const { second, transfer } = this.#state;
        if (second !== null || transfer !== null) call.dispatch({ type: 'leg-left' });
      },
      hangUp: (reason) => call.dispatch({ type: 'hangup', reason }),
      note: (text, isFailure) => {
        call.trace.add('agent', 'in', text);
        if (isFailure) this.#onError(text);
      },
      keep: call.keep,
      wallMs: () => services.clock.wallMs(),
    };
  }

  /** Providers are used within the organization's limits. Rejects with `AgentUnavailableError`; a text is spoken without them instead. */
  async #permitted(agent: AgentDescription): Promise<AgentDescription> {
    if (agent.kind === 'conversation') await this.#takeSession(false);
    if (agent.kind !== 'player' || !agent.clips.some((clip) => clip.kind === 'say' && clip.voice !== null && voiceOf(clip.voice) !== null))
      return agent;
    try {
      await this.#takeSession(false);
      return agent;
    } catch (error) {
      this.#onError(errorText(error));
      return { ...agent, speech: null };
    }
  }

  #onError(text: string): void {
    this.call.data.note({ agentError: text });
    this.call.keep();
  }

  async #connect(choice: AgentChoice, isResumed: boolean): Promise<CallEvent | null> {
    const { data, media, requests, trace, log } = this.call;
    const { identity, media: carrier, facts: callFacts } = this.#state;
    const origin = this.#origin;
    const { briefing = null, callId: joined = '' } = callFacts.joins ?? {};
    if (choice === 'early-media') return media.connectAgent({ kind: 'early-media', callId: joined });
    if (choice === 'briefing' && briefing === null) throw new AgentUnavailableError('nobody talks to the other party');
    if (choice === 'briefing' && briefing !== null)
      return media.connectAgent(briefing === 'by-agent' ? { kind: 'party', callId: joined } : briefingAgent(briefing, this.#state));
    const [tools, route] = await Promise.all([requests.tools(), this.#routeFor(choice)]);
    if (this.#isOver()) return null;
    const { progress, notes } = data.now;
    const { said, marks } = notes;
    const conversation = said.transcript.map(({ speaker, text }) => ({ speaker, text }));
    const before = { resumed: progress.resumed, unheardSinceMs: isResumed ? this.call.unheardSinceMs() : null, marks, conversation };
    const facts = { ...origin, caller: this.#knownCaller, route, identity, tools, codec: carrier?.codec.name ?? null, ...before };
    const { agent, dropped } = describeAgent(this.services.operatorAgent, facts, choice);
    if (agent.kind === 'provider' || agent.kind === 'conversation') await this.#takeSession(isResumed, choice === 'own');
    // Nobody would let the agent go.
    if (this.#isOver()) return null;
    if (dropped.length > 0) log.warn({ dropped }, 'call.agent.parameters_too_long');
    trace.add('agent', 'out', connectSummary(agent));
    const { traceparent } = this.services;
    const described =
      (agent.kind === 'stream' || agent.kind === 'conversation') && traceparent !== undefined
        ? { ...agent, traceparent: traceparent(origin.callId) }
        : agent;
    return trace.timeline.step('agent connect', media.connectAgent(this.#owned(described)));
  }

  /** With what is fetched for this call put into the agent's texts. */
  async #routeFor(choice: AgentChoice): Promise<Route | null> {
    const { requests, trace, log } = this.call;
    const { route } = this.#state;
    const origin = this.#origin;
    const agent = route?.agent ?? null;
    const isPrompted = choice === 'second-provider' || (choice === 'own' && agent !== null && agent.provider !== null);
    if (route === null || agent === null || !isPrompted) return route;
    const facts = { from: origin.caller.number, to: origin.to, call_id: origin.callId };
    const data = await withPromptData(route, agent, facts, requests.toolRunner, this.services.clock);
    for (const warning of data.warnings) {
      log.warn({ warning }, 'call.prompt.incomplete');
      trace.add('gateway', null, warning);
    }
    return data.route;
  }

  /** With whose it is. */
  #owned(agent: AgentDescription): AgentDescription {
    const { route } = this.#state;
    if (route === null) return agent;
    const agentId = route.agent?.agent_id ?? '';
    const isFromDocument = this.#voice !== null;
    return { ...agent, owner: { org_id: route.org.org_id, ...(agentId === '' || isFromDocument ? {} : { agent_id: agentId }) } };
  }

  #isOver(): boolean {
    return this.call.scope.isClosed || this.#state.name === 'Ended';
  }

  /** @param isRefused without a session the call is refused for that reason; else its agent just cannot be reached */
  async #takeSession(isResumed: boolean, isRefused = false): Promise<void> {
    const { route } = this.#state;
    const { callId } = this.#origin;
    if (this.#hasSession || route === null) return;
    const broken = await this.services.sessions.begin(route.org, callId, isResumed);
    this.#hasSession = broken === null;
    if (broken === null) this.call.scope.defer('provider session', () => this.services.sessions.end(callId));
    else throw isRefused ? new ProviderLimitError(broken) : new AgentUnavailableError(`no session at a provider: ${broken}`);
  }
}
