import type { CallCheck, CheckResult } from '../api/schemas/sip-check.js';
import { providerKey, streamOf, type OperatorAgent } from '../call/agent.js';
import { decide, type Refusal } from '../admission/admission.js';
import { REASONS, type Reason } from '../model/reasons.js';
import type { StandIn } from '../call/state.js';
import type { Route } from '../model/records.js';
import type { CarrierMedia } from '../sdp/sdp-read.js';
import { CONVERSATION_RELAY } from '../model/provider.js';
import { fieldsWithoutEffect } from '../model/provider-fields.js';
import { brokenProviderLimit } from '../model/provider-usage.js';
import type { ProviderSessions, RouteStore } from '../ports/ports.js';

/** What the gateway itself says to a call, before its number is looked up. */
export interface DryRunEdge {
  readonly notReady: Refusal | null;
  /** The media relay's address on the carrier side; `null`: not known. */
  readonly relayAddress: string | null;
  isSourceTrusted(source: { readonly address: string; readonly identities: readonly string[] }): boolean;
}

/** What is known of agents without asking them. */
export interface DryRunAgents {
  readonly operator: OperatorAgent;
  /** What stands in for an agent that cannot be reached; `null`: nothing. */
  readonly standIn: StandIn | null;
  /** What an organization uses of providers. */
  readonly usage: ProviderSessions['usage'];
  /** Why no agent is ever connected there; `null`: one may be. */
  readonly urlRefusal: (url: URL) => string | null;
}

/** The decision on an INVITE, for the asking: the same code as for a real one, and nothing is counted. */
export function callDryRun(routes: Pick<RouteStore, 'lookup'>, edge: DryRunEdge, agents: DryRunAgents): CallCheck {
  return async (orgId, { number, sourceIp, sdp }) => {
    // The trunk's list of certificate names cannot be judged without a connection.
    if (sourceIp !== null && !edge.isSourceTrusted({ address: sourceIp, identities: [] })) return rejected('SOURCE_NOT_ALLOWED');
    if (edge.notReady !== null) return rejected(edge.notReady.reason);
    const { route, load, staleMs } = await routes.lookup(number, null);
    const own = route?.org.org_id === orgId ? route : null;
    const { relayAddress } = edge;
    const decision = decide({
      route: own,
      sourceAddress: sourceIp,
      credentials: null,
      identity: null,
      refusedVerdicts: [],
      sdp: sdp ?? '',
      relayAddress,
      load,
    });
    if (!decision.ok) return rejected(decision.error);
    const limit = own === null || !hasProvider(own) ? null : brokenProviderLimit(own.org, await agents.usage(own.org.org_id));
    if (limit !== null) return rejected(limit);
    const refusal = agentRefusal(agents, own);
    if (refusal !== null && agents.standIn === null) return rejected('AGENT_UNAVAILABLE', `It is not connected: ${refusal}.`);
    const notJudged = [
      ...(sourceIp === null ? ['source_ip'] : []),
      ...(sdp === null ? ['sdp'] : []),
      ...(own?.number.inbound?.options.challenge == null ? [] : ['credentials']),
      ...(sdp !== null && relayAddress === null ? ['whether the media relay has the address family of the sdp'] : []),
    ];
    const notes =
      refusal === null || agents.standIn === null ? [] : [`${STAND_INS[agents.standIn]}, because the agent is not connected: ${refusal}.`];
    return accepted(decision.value, notJudged, [...notes, ...(hasWebhook(own) ? [NOT_REQUESTED] : withoutEffect(own))], staleMs);
  };
}

const STAND_INS: Readonly<Record<StandIn, string>> = {
  'test-line': 'The test line would answer',
  'second-provider': 'The second provider would answer, if it can be reached',
  sentence: 'A sentence would be said',
  transfer: 'The caller would be transferred',
};

/** Why the call's agent is never connected; `null`: it may be. */
function agentRefusal({ operator, urlRefusal }: DryRunAgents, route: Route | null): string | null {
  // It decides who answers.
  if (hasWebhook(route)) return null;
  const provider = route?.agent?.provider ?? null;
  if (route !== null && provider !== null) {
    if (providerKey(operator, route) === null) return `there is no key for ${provider.name}`;
    if (provider.name === CONVERSATION_RELAY) return urlRefusal(new URL(provider.url ?? ''));
    if ((provider.model ?? operator.providers[provider.name].model) === '') return `there is no agent for ${provider.name}`;
    return urlRefusal(new URL(provider.url ?? operator.providers[provider.name].url));
  }
  const stream = streamOf(operator, route);
  return stream === 'test-line' ? null : urlRefusal(new URL(stream.url));
}

function withoutEffect(route: Route | null): readonly string[] {
  if (route?.agent === undefined || route.agent === null) return [];
  const fields = fieldsWithoutEffect(route.agent, route.org.pathway_url !== null);
  return fields.length === 0 ? [] : [`Without effect: ${fields.map(({ field, how }) => `${field} (${how})`).join(', ')}.`];
}

const NOT_REQUESTED = 'The voice webhook was not requested.';

function hasWebhook(route: Route | null): boolean {
  return route?.number.inbound?.options.voice_url !== undefined;
}

function hasProvider(route: Route): boolean {
  return !hasWebhook(route) && (route.agent?.provider ?? null) !== null;
}

function rejected(reason: Reason, detail?: string): CheckResult {
  const { sipStatus, explanation } = REASONS[reason];
  const sentences = [explanation, ...(detail === undefined ? [] : [detail])].join(' ');
  return { outcome: 'reject', sip_status: sipStatus, reason, explanation: sentences, codec: null, crypto_tag: null };
}

function accepted(media: CarrierMedia | null, notJudged: readonly string[], notes: readonly string[], staleMs: number | null): CheckResult {
  const sentences = [
    'The call would be answered.',
    ...notes,
    ...(notJudged.length === 0 ? [] : [`Not checked, because unknown: ${notJudged.join(', ')}.`]),
    ...(media === null && notJudged.length === 0 ? ['The INVITE has no offer: the answer carries one.'] : []),
    ...(staleMs === null ? [] : [`The store is unavailable: decided with data from ${String(Math.round(staleMs / 1_000))} s ago.`]),
  ];
  return {
    outcome: 'accept',
    sip_status: 200,
    reason: null,
    explanation: sentences.join(' '),
    codec: media?.codec.name ?? null,
    crypto_tag: media === null || media.crypto === null ? null : Number(media.crypto.tag),
  };
}
