import type { AgentDescription, ConversationSettings, StreamSettings } from '../model/agent.js';
import type { StreamFormat } from '../../agent-protocol/stream-format.js';
import { DEFAULT_AGENT_SETTINGS, type AgentSettings, type AgentStream } from '../model/agent-record.js';
import type { ToolDefinition } from '../model/tool-definition.js';
import { CONVERSATION_RELAY, NO_TUNING, type ProviderDefaults, type ProviderName } from '../model/provider.js';
import { DEFAULT_CONVERSATION } from '../model/conversation.js';
import { shownDynamicData } from '../model/dynamic-data.js';
import { endOfSpeechMs, type EndOfSpeechTable } from '../model/end-of-speech.js';
import { SPOKEN_BY, voiceOf } from '../model/speech-service.js';
import type { ProviderSettings, Said } from '../model/provider-settings.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { CallerIdentity, CallRecord } from '../model/call-record.js';
import type { Route } from '../model/records.js';
import { headersFromAgent } from '../model/passed-headers.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';
import { accountSidOf, callSidOf, newSessionId } from '../model/twilio-ids.js';
import { twilioDirection } from '../twilio/call-status.js';
import type { VoiceApplication } from '../model/voice-application.js';
import type { AgentChoice, Briefing } from './state.js';

/** The agent of numbers that set no other; `url: null`: the built-in test line. */
export interface OperatorAgent {
  readonly url: string | null;
  readonly format: StreamFormat;
  readonly bearerToken: string | null;
  /** The operator's settings of each provider. */
  readonly providers: Readonly<Record<ProviderName, ProviderDefaults>>;
  readonly standIns: StandInSettings;
  readonly endOfSpeech: EndOfSpeechTable;
  /** Text to speech and speech to text, with the operator's keys. */
  readonly speech: Pick<ConversationSettings, 'listen' | 'speech'>;
}

/** What stands in for an agent that cannot be reached, or is gone in the call. */
export interface StandInSettings {
  readonly secondProvider: ProviderName | null;
  /** '': nothing is said. */
  readonly sentence: string;
  /** A language code of the product (`ENG`). */
  readonly language: string;
  readonly transferTo: string | null;
}

/** What an agent receives about its call. */
export interface CallFactsForAgent {
  /** UUID. */
  readonly callId: string;
  readonly direction: CallRecord['direction'];
  readonly to: string;
  readonly caller: CallerIdentity;
  /** `null`: not verified. */
  readonly identity: VerifiedIdentity | null;
  readonly route: Route | null;
  /** The agent's tools in full. */
  readonly tools: readonly ToolDefinition[];
  /** `null`: the carrier made no offer, and may take either. */
  readonly codec: AudioCodec | null;
  /** How often the gateway was killed and resumed the call. */
  readonly resumed: number;
  /** What was said so far, to an agent that stands in. */
  readonly conversation: readonly Said[];
  /** See `StreamSettings`. */
  readonly marks: readonly string[];
  readonly unheardSinceMs: number | null;
}

export interface DescribedAgent {
  readonly agent: AgentDescription;
  /** Names of parameters left out because all together were too long. */
  readonly dropped: readonly string[];
}

const FAREWELL_MS = 200;
const MAX_PARAMETERS_BYTES = 65_536;
/** Metadata texts sent as parameters of their own: how many, and the bytes of all names and texts together. */
const MAX_OWN_PARAMETERS = 50;
const MAX_OWN_PARAMETER_BYTES = 500;
/** Our own parameter, set on a reconnection, and in a call that was resumed. */
const RECONNECTS = 'reconnects';
/** Reserved for our own parameters. */
const ALWAYS_TOLD: readonly string[] = ['from', 'to', 'from_number', 'to_number', 'call_id', 'org_id', 'agent_id'];

/** Chooses the agent of a call, and its parameters. */
export function describeAgent(operator: OperatorAgent, call: CallFactsForAgent, choice: AgentChoice): DescribedAgent {
  const settings = call.route?.agent ?? DEFAULT_AGENT_SETTINGS;
  if (choice === 'sentence' || choice === 'transfer') return { agent: announcement(operator.standIns, choice, call), dropped: [] };
  const route = call.route === null || choice !== 'second-provider' ? call.route : onSecondProvider(operator.standIns, call.route);
  const provider = choice === 'test-line' || route === null ? null : providerSettings(operator, route, call);
  if (provider !== null) return { agent: { kind: 'provider', ...provider }, dropped: [] };
  const conversation = choice === 'test-line' || route === null ? null : conversationOf(operator, route, call);
  if (conversation !== null) return conversation;
  const stream = choice === 'test-line' ? 'test-line' : streamOf(operator, call.route);
  if (stream !== 'test-line' && call.route !== null) {
    const { kept, dropped } = fitting(parametersOf(call));
    const customParameters = call.resumed === 0 ? kept : { ...kept, [RECONNECTS]: String(call.resumed) };
    return { agent: { kind: 'stream', ...streamSettings(stream, call, call.route), customParameters }, dropped };
  }
  const { first_sentence: firstSentence, language, voice, pronunciation_guide: pronunciationGuide } = settings;
  // With an empty first sentence, the test line uses its built-in greeting.
  return {
    agent: { kind: 'test-line', accountSid: accountOf(call), firstSentence: firstSentence ?? '', language, voice, pronunciationGuide },
    dropped: [],
  };
}

/** What a second leg's answerer is told before the caller joins. */
export function briefingAgent({ text, language }: Exclude<Briefing, string>, call: Pick<CallFactsForAgent, 'route'>): AgentDescription {
  const clips = [{ kind: 'say', text, language, voice: null, loop: 1 }] as const;
  return { kind: 'player', accountSid: accountOf(call), clips, gather: null, transferTo: null, speech: null };
}

function announcement(
  { sentence, language, transferTo }: StandInSettings,
  choice: 'sentence' | 'transfer',
  call: Pick<CallFactsForAgent, 'route'>,
): AgentDescription {
  const clips = [
    { kind: 'say', text: sentence, language, voice: null, loop: 1 },
    // What is still in jitter buffers on the way is heard too.
    { kind: 'pause', ms: FAREWELL_MS },
  ] as const;
  return {
    kind: 'player',
    accountSid: accountOf(call),
    clips,
    gather: null,
    transferTo: choice === 'transfer' ? transferTo : null,
    speech: null,
  };
}

function accountOf({ route }: Pick<CallFactsForAgent, 'route'>): string {
  return route === null ? '' : accountSidOf(route.org.org_id);
}

/** As if the agent had the second provider: with that one's defaults, for models and voices are the first one's. */
function onSecondProvider({ secondProvider }: StandInSettings, route: Route): Route {
  if (secondProvider === null) return route;
  const none = { ...DEFAULT_AGENT_SETTINGS, agent_id: '', org_id: route.org.org_id, name: '', created_at: '', updated_at: '' };
  const provider = { name: secondProvider, model: null, url: null, audio: 'g711', api_key: null, ...NO_TUNING } as const;
  return { ...route, agent: { ...(route.agent ?? none), provider, voice: null } };
}

/** The agent URL for a number's calls. */
export function streamOf(operator: OperatorAgent, route: Route | null): AgentStream | 'test-line' {
  return (route?.agent ?? DEFAULT_AGENT_SETTINGS).stream ?? operatorStream(operator);
}

/** `null`: the agent is no application that exchanges text. */
function conversationOf(operator: OperatorAgent, route: Route, call: CallFactsForAgent): DescribedAgent | null {
  const { org, agent } = route;
  if (agent?.provider?.name !== CONVERSATION_RELAY) return null;
  const { first_sentence: text, wait_for_greeting: isSilent, language, voice, provider } = agent;
  const { kept, dropped } = fitting(parametersOf({ ...call, route }));
  const { caller, callId, direction, to } = call;
  const { interruptible } = DEFAULT_CONVERSATION;
  return {
    agent: {
      kind: 'conversation',
      url: provider.url ?? '',
      bearerToken: provider.api_key,
      signatureKey: org.twilio_token,
      accountSid: accountSidOf(org.org_id),
      callSid: callSidOf(callId),
      customParameters: kept,
      sessionId: newSessionId(),
      direction: twilioDirection(direction),
      from: caller.number,
      to,
      callerName: caller.display_name,
      forwardedFrom: caller.diversions[0]?.uri ?? null,
      rules: {
        ...DEFAULT_CONVERSATION,
        greeting: text === null || isSilent ? null : { text, interruptible },
        reportsDigits: true,
        ttsLanguage: language,
        transcriptionLanguage: language,
        voice: voice === null ? null : voiceOf(voice),
      },
      ...speechOf(operator, route),
    },
    dropped,
  };
}

/** `null`: the agent has no provider of voice models. */
function providerSettings(
  operator: OperatorAgent,
  { org, agent, number }: Route,
  { tools, codec, conversation, direction }: Pick<CallFactsForAgent, 'tools' | 'codec' | 'conversation' | 'direction'>,
): ProviderSettings | null {
  const chosen = agent?.provider ?? null;
  if (agent === null || chosen === null || chosen.name === CONVERSATION_RELAY) return null;
  const defaults = operator.providers[chosen.name];
  const hasAll = !isTurbo(agent);
  return {
    provider: chosen.name,
    url: chosen.url ?? defaults.url,
    apiKey: providerKey(operator, { org, agent }),
    model: chosen.model ?? (hasAll ? defaults.model : defaults.turboModel),
    transcriptionModel: defaults.transcriptionModel,
    prompt: agent.prompt ?? '',
    firstSentence: agent.first_sentence,
    waitsForGreeting: agent.wait_for_greeting,
    voice: agent.voice ?? defaults.voice,
    language: agent.language,
    pronunciationGuide: agent.pronunciation_guide,
    tuning: { noise_reduction: chosen.noise_reduction, semantic_vad: chosen.semantic_vad, reasoning_effort: chosen.reasoning_effort },
    endOfSpeechMs: endOfSpeechMs(operator.endOfSpeech, agent.interruption_threshold),
    speech: ownSpeech(operator, { org, agent }),
    tools: hasAll ? tools.map(({ name, description, input_schema, speech }) => ({ name, description, input_schema, speech })) : [],
    mayTransfer: hasAll,
    headersFromAgent: headersFromAgent(number, direction === 'outbound'),
    audio: chosen.audio,
    codec: codec ?? 'PCMU',
    ...(chosen.name === 'elevenlabs' ? { metadata: agent.metadata } : {}),
    conversation,
  };
}

/**
 * What OpenAI and ElevenLabs speak has the voices of their models; what is spoken for Gemini has another voice. An agent with an address of
 * its own has none: its texts go nowhere else.
 */
function ownSpeech(operator: OperatorAgent, route: Pick<Route, 'org' | 'agent'>): ProviderSettings['speech'] {
  const { provider = null, voice = null } = route.agent ?? {};
  if (provider === null || provider.name === CONVERSATION_RELAY || provider.url !== null) return null;
  const services = speechOf(operator, route).speech;
  const speaker = SPOKEN_BY[provider.name].find((name) => services[name].apiKey !== null);
  return speaker === undefined ? null : { services, voice: { provider: speaker, voice: provider.name === 'gemini-live' ? null : voice } };
}

/**
 * The agent's own key goes to the address that it was stored with; the organization's and the operator's go to the operator's address only.
 * An application's own key is sent to it; speech takes the others. `null`: there is none.
 */
export function providerKey(operator: OperatorAgent, { org, agent }: Pick<Route, 'org' | 'agent'>): string | null {
  const chosen = agent?.provider ?? null;
  if (chosen === null) return null;
  if (chosen.name === CONVERSATION_RELAY) return speechOf(operator, { org }).listen.apiKey;
  if (chosen.api_key !== null) return chosen.api_key;
  const { url, apiKey } = operator.providers[chosen.name];
  if (chosen.url !== null && chosen.url !== url) return null;
  return org.provider_keys[chosen.name] ?? (org.operator_keys ? apiKey : null);
}

/** The speech services of a call: the organization's keys go to the operator's addresses, as its keys of providers do. */
export function speechOf({ speech: { listen, speech } }: OperatorAgent, route: Pick<Route, 'org'> | null): OperatorAgent['speech'] {
  const keyOf = (name: ProviderName, operators: string | null): string | null =>
    route === null ? null : (route.org.provider_keys[name] ?? (route.org.operator_keys ? operators : null));
  const { deepgram, elevenlabs, openai } = speech;
  return {
    listen: { ...listen, apiKey: keyOf('deepgram', listen.apiKey) },
    speech: {
      deepgram: { ...deepgram, apiKey: keyOf('deepgram', deepgram.apiKey) },
      elevenlabs: { ...elevenlabs, apiKey: keyOf('elevenlabs', elevenlabs.apiKey) },
      openai: { ...openai, apiKey: keyOf('openai-realtime', openai.apiKey) },
    },
  };
}

/** The operator's token goes only to the operator's own URL: a customer's agent has its own token, or none. */
function operatorStream({ url, format, bearerToken }: OperatorAgent): AgentStream | 'test-line' {
  return url === null ? 'test-line' : { url, format, bearer_token: bearerToken };
}

function streamSettings(
  { url, format, bearer_token: bearerToken }: AgentStream,
  { callId, direction, marks, unheardSinceMs }: CallFactsForAgent,
  { org, agent, number }: Route,
): Omit<StreamSettings, 'customParameters'> {
  return {
    url,
    format,
    bearerToken,
    signatureKey: org.twilio_token,
    accountSid: accountSidOf(org.org_id),
    callSid: callSidOf(callId),
    endOfSpeechMs: (agent ?? DEFAULT_AGENT_SETTINGS).interruption_threshold,
    mayPress: !isTurbo(agent ?? DEFAULT_AGENT_SETTINGS),
    headersFromAgent: headersFromAgent(number, direction === 'outbound'),
    marks,
    ...(unheardSinceMs === null ? {} : { unheardSinceMs }),
  };
}

/** `turbo` has the lowest latency, but no transfers, IVR navigation or custom tools. */
export function isTurbo({ model }: Pick<AgentSettings, 'model'>): boolean {
  return model === 'turbo';
}

/** The `customParameters` of a call's bot. */
export function agentParameters(call: CallFactsForAgent): Readonly<Record<string, string>> {
  return fitting(parametersOf(call)).kept;
}

/** Texts and numbers as they are, everything else as JSON. Leaves out what is not set or empty. */
function parametersOf({ callId, to, caller, identity, route, tools }: CallFactsForAgent): Record<string, string> {
  const settings = route?.agent ?? DEFAULT_AGENT_SETTINGS;
  const told: Readonly<Record<string, string | number | object | null>> = {
    caller_name: caller.display_name,
    stir_verdict: identity?.verdict ?? null,
    stir_attestation: identity?.attestation ?? null,
    prompt: settings.prompt,
    voice: settings.voice,
    language: settings.language,
    model: settings.model,
    first_sentence: settings.first_sentence,
    max_duration: settings.max_duration,
    interruption_threshold: settings.interruption_threshold,
    metadata: settings.metadata,
    // Without the keys in its headers: the gateway makes its requests, not the agent.
    dynamic_data: shownDynamicData(settings.dynamic_data) as AgentSettings['dynamic_data'],
    analysis_schema: settings.analysis_schema,
    transfer_list: isTurbo(settings) ? null : settings.transfer_list,
    // Without the tool's URL and keys: the gateway calls it, not the agent.
    tools: (isTurbo(settings) ? [] : tools).map(({ name, description, input_schema }) => ({ name, description, input_schema })),
    pronunciation_guide: settings.pronunciation_guide,
    sip_headers: {
      headers: caller.headers,
      user_to_user: caller.user_to_user,
      asserted: caller.asserted,
      diversions: caller.diversions,
      history: caller.history,
    },
  };
  const parameters: Record<string, string> = {
    from: caller.number,
    to,
    // As Pipecat's runner looks for them.
    from_number: caller.number,
    to_number: to,
    call_id: callId,
    org_id: route?.org.org_id ?? '',
    agent_id: route?.agent?.agent_id ?? '',
  };
  for (const [name, value] of Object.entries(told)) {
    if (value === null || (Array.isArray(value) && value.length === 0)) continue;
    parameters[name] = typeof value === 'object' ? JSON.stringify(value) : String(value);
  }
  const ours = new Set([...Object.keys(parameters), ...Object.keys(told), RECONNECTS]);
  return { ...ownParameters(settings.metadata, ours), ...parameters };
}

/** For bots written for Twilio: `customParameters.FirstName`. Our own names win over the customer's. */
function ownParameters(metadata: AgentSettings['metadata'], ours: ReadonlySet<string>): Record<string, string> {
  const texts = Object.entries(metadata ?? {}).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === 'string' &&
      !ours.has(entry[0]) &&
      Buffer.byteLength(entry[0]) + Buffer.byteLength(entry[1]) <= MAX_OWN_PARAMETER_BYTES,
  );
  return Object.fromEntries(texts.slice(0, MAX_OWN_PARAMETERS));
}

/** Drops the largest first, until the rest fits. */
function fitting(parameters: Readonly<Record<string, string>>): {
  readonly kept: Readonly<Record<string, string>>;
  readonly dropped: readonly string[];
} {
  const bytes = new Map(Object.entries(parameters).map(([name, value]) => [name, Buffer.byteLength(name) + Buffer.byteLength(value)]));
  const largestFirst = [...bytes].filter(([name]) => !ALWAYS_TOLD.includes(name)).sort(([, one], [, other]) => other - one);
  let total = [...bytes.values()].reduce((sum, size) => sum + size, 0);
  const dropped: string[] = [];
  for (const [name, size] of largestFirst) {
    if (total <= MAX_PARAMETERS_BYTES) break;
    dropped.push(name);
    total -= size;
  }
  const kept = Object.fromEntries(Object.entries(parameters).filter(([name]) => !dropped.includes(name)));
  return { kept, dropped };
}

/** The application of a call: a placed one brings its own, any other has that of the called number. `null`: it has none. */
export function voiceApplicationOf(
  { direction, voice }: { readonly direction: CallRecord['direction']; readonly voice?: VoiceApplication },
  route: Route | null,
): VoiceApplication | null {
  if (direction === 'outbound') return voice ?? null;
  if (route === null) return null;
  const { org, number } = route;
  const {
    voice_url: url,
    voice_fallback_url: fallback,
    status_callback: callback,
    status_callback_events: events,
  } = number.inbound?.options ?? {};
  return {
    token: org.twilio_token,
    first: url === undefined ? null : { url, method: 'POST' },
    sendDigits: null,
    fallback: fallback === undefined ? null : { url: fallback, method: 'POST' },
    statusCallback: callback === undefined ? null : { url: callback, method: 'POST', events: events ?? ['completed'] },
  };
}
