import type { ProviderLimit } from '../model/provider-usage.js';
import type { Route } from '../model/records.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Scope } from '../../lib/scope.js';
import { AgentUnavailableError, type MediaEndpoint, type ProviderSessions } from '../ports/ports.js';
import { describeAgent, type OperatorAgent } from './agent.js';
import type { AgentRequests } from './agent-requests.js';
import type { CallMedia } from './call-media.js';
import { withPromptData } from './prompt-data.js';
import type { CallOrigin } from './call-record.js';
import { connectSummary, type CallTrace } from './call-trace.js';
import type { AgentChoice, CallEvent, CallState } from './state.js';

export interface AgentServices {
  readonly endpoint: MediaEndpoint;
  readonly sessions: ProviderSessions;
  readonly operatorAgent: OperatorAgent;
  readonly clock: Clock;
  /** The W3C header of requests that are made for a call; left out: they have none. */
  readonly traceparent?: (callId: string) => string;
}

interface CallParts {
  readonly origin: CallOrigin;
  readonly state: () => CallState;
  readonly media: CallMedia;
  readonly requests: AgentRequests;
  readonly scope: Scope;
  readonly trace: CallTrace;
  readonly log: Log;
}

/** The organization has no session at providers left. */
export class ProviderLimitError extends Error {
  override readonly name = 'ProviderLimitError';

  constructor(readonly limit: ProviderLimit) {
    super(`the organization is at its limit: ${limit}`);
  }
}

/** Makes ready and connects the agent of one call. */
export class CallAgent {
  #hasSession = false;

  constructor(
    private readonly services: AgentServices,
    private readonly call: CallParts,
  ) {}

  /**
   * Rejects with `AgentUnavailableError`, `ProviderLimitError`, or `MediaUnavailableError`. `null`: the call has ended meanwhile.
   * @param isResumed the call goes on after a restart
   */
  async connect(choice: AgentChoice, isResumed = false): Promise<CallEvent | null> {
    const { origin, state, media, requests, trace, log } = this.call;
    const { identity, media: carrier } = state();
    const [tools, route] = await Promise.all([requests.tools(), this.#routeFor(choice)]);
    if (this.#isOver()) return null;
    const conversation = requests.notes.said.transcript.map(({ speaker, text }) => ({ speaker, text }));
    const facts = { ...origin, route, identity, tools, codec: carrier?.codec.name ?? null, conversation };
    const { agent, dropped } = describeAgent(this.services.operatorAgent, facts, choice);
    if (agent.kind === 'provider') await this.#takeSession(choice, isResumed);
    // Nobody would let the agent go.
    if (this.#isOver()) return null;
    if (dropped.length > 0) log.warn({ dropped }, 'call.agent.parameters_too_long');
    trace.add('agent', 'out', connectSummary(agent));
    const { traceparent } = this.services;
    const described = agent.kind === 'stream' && traceparent !== undefined ? { ...agent, traceparent: traceparent(origin.callId) } : agent;
    return trace.timeline.step('agent connect', media.connectAgent(described));
  }

  /** With what is fetched for this call put into the agent's texts. */
  async #routeFor(choice: AgentChoice): Promise<Route | null> {
    const { origin, state, requests, trace, log } = this.call;
    const { route } = state();
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

  #isOver(): boolean {
    return this.call.scope.isClosed || this.call.state().name === 'Ended';
  }

  async #takeSession(choice: AgentChoice, isResumed: boolean): Promise<void> {
    const { origin, state, scope } = this.call;
    const { route } = state();
    if (this.#hasSession || route === null) return;
    this.#hasSession = true;
    const broken = await this.services.sessions.begin(route.org, origin.callId, isResumed);
    if (broken === null) scope.defer('provider session', () => this.services.sessions.end(origin.callId));
    else throw choice === 'own' ? new ProviderLimitError(broken) : new AgentUnavailableError(`no second provider: ${broken}`);
  }
}
