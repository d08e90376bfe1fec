import { DEFAULT_AGENT_SETTINGS, type AgentSettings } from './agent-record.js';
import { dynamicRequests } from './dynamic-data.js';
import type { AgentProviderName } from './provider.js';

// What each setting of an agent does at each provider: docs/agents.md has it as a table, and a setting without effect gets a warning.

/** `provider`: takes effect there. `gateway`: the gateway does it. `none`: it has no effect. */
export interface FieldEffect {
  readonly by: 'provider' | 'gateway' | 'none';
  readonly how: string;
}

export type ProviderField = Exclude<keyof AgentSettings, 'stream' | 'provider'>;

const provider = (how: string): FieldEffect => ({ by: 'provider', how });
const gateway = (how: string): FieldEffect => ({ by: 'gateway', how });
const none = (how: string): FieldEffect => ({ by: 'none', how });

const EVERYWHERE = {
  webhook: gateway('as with a bot'),
  metadata: gateway('in the webhook; the model does not get it'),
  max_duration: gateway('as with a bot'),
  transfer_list: gateway('limits the tool `transfer_call`'),
  analysis_schema: gateway('a text model reads the transcript after the call (`analysis.url`)'),
  dynamic_data: gateway('fetched before the 200; `{{name}}` in `prompt` and `first_sentence`'),
  pathway_id: gateway('its text, from the organization’s `pathway-url`, is the prompt'),
} as const;

export const PROVIDER_FIELDS: Readonly<Record<AgentProviderName, Readonly<Record<ProviderField, FieldEffect>>>> = {
  'openai-realtime': {
    ...EVERYWHERE,
    prompt: provider('`instructions`'),
    voice: provider('`audio.output.voice`; a custom voice by its id, `voice_…`'),
    language: provider('`audio.input.transcription.language`, and in `instructions`'),
    model: provider('`openai.model` or `openai.turbo_model`'),
    first_sentence: gateway(
      'word for word by OpenAI’s speech (`openai.speech_url`), if there is a key for it; else the model is asked, not word for word',
    ),
    wait_for_greeting: gateway('no first response is requested'),
    interruption_threshold: provider(
      '`silence_duration_ms` of `server_vad` by `agents.end_of_speech_ms`; 100 leaves the default, and `semantic_vad` replaces it',
    ),
    pronunciation_guide: provider('in `instructions`'),
    tools: provider('functions; the gateway runs them'),
  },
  deepgram: {
    ...EVERYWHERE,
    prompt: provider('`think.prompt`'),
    voice: provider('`speak.provider.model`; default `deepgram.voice`'),
    language: provider('`listen.provider.language`, and in the prompt; the voice has its own'),
    model: provider('`deepgram.model` or `deepgram.turbo_model`'),
    first_sentence: provider('`greeting`, word for word'),
    wait_for_greeting: gateway('no `greeting` is sent'),
    interruption_threshold: none('the provider decides'),
    pronunciation_guide: provider('in the prompt'),
    tools: provider('functions; the gateway runs them'),
  },
  'gemini-live': {
    ...EVERYWHERE,
    prompt: provider('`systemInstruction`'),
    voice: provider('`speechConfig.voiceConfig`'),
    language: provider('`inputAudioTranscription.languageCodes`, and in `systemInstruction`'),
    model: provider('`gemini.model` or `gemini.turbo_model`'),
    first_sentence: provider('the model is asked for it: not word for word'),
    wait_for_greeting: gateway('the model is not asked to begin'),
    interruption_threshold: provider('`silenceDurationMs` by `agents.end_of_speech_ms`; 100 leaves the default'),
    pronunciation_guide: provider('in `systemInstruction`'),
    tools: provider(
      'functions; the gateway runs them; `speech` by the first speech service with a key (Deepgram, ElevenLabs, OpenAI), in its own voice',
    ),
  },
  elevenlabs: {
    ...EVERYWHERE,
    metadata: provider('texts, numbers and truth values as `dynamic_variables`; one called `user_id` as `user_id`'),
    prompt: provider('`agent.prompt`; without it the agent’s own'),
    voice: provider('`tts.voice_id`'),
    language: provider('`agent.language`'),
    model: none('`provider.model` is the id of the agent, which has its model'),
    first_sentence: provider('`agent.first_message`, word for word'),
    wait_for_greeting: provider('`agent.first_message` is empty'),
    interruption_threshold: none('the agent has its own'),
    pronunciation_guide: provider('in the prompt'),
    tools: provider(
      'client tools of the same names, set up there; the gateway runs them; `speech` by `elevenlabs.speech_url`, if there is a key for it',
    ),
    transfer_list: provider('limits a client tool `transfer_call`, set up there'),
  },
  'conversation-relay': {
    ...EVERYWHERE,
    metadata: provider('`customParameters`'),
    prompt: provider('`customParameters`'),
    voice: gateway('`Deepgram.<voice>`, `ElevenLabs.<voice>` or `OpenAI.<voice>`; default `deepgram.voice`'),
    language: gateway('recognized and spoken'),
    model: provider('`customParameters`'),
    first_sentence: gateway('`welcomeGreeting`, word for word'),
    wait_for_greeting: gateway('there is no greeting'),
    interruption_threshold: none('100 ms of voice interrupt'),
    pronunciation_guide: provider('`customParameters`'),
    tools: none('the application has its own'),
    transfer_list: none('it ends the conversation instead'),
  },
};

/** Settings that are set and have no effect. @param hasPathways the organization has a place for the texts of pathways */
export function fieldsWithoutEffect(
  settings: AgentSettings,
  hasPathways: boolean,
): { readonly field: ProviderField; readonly how: string }[] {
  const { provider: chosen, dynamic_data: dynamicData, pathway_id: pathway } = settings;
  if (chosen === null) return [];
  const effects = Object.entries(PROVIDER_FIELDS[chosen.name]) as [ProviderField, FieldEffect][];
  const isSet = (field: ProviderField): boolean => JSON.stringify(settings[field]) !== JSON.stringify(DEFAULT_AGENT_SETTINGS[field]);
  const fields = effects.filter(([field, { by }]) => by === 'none' && isSet(field)).map(([field, { how }]) => ({ field, how }));
  if (dynamicData !== null && dynamicRequests(dynamicData) === null)
    fields.push({ field: 'dynamic_data', how: 'it is not in the form of requests' });
  if (pathway !== null && !hasPathways) fields.push({ field: 'pathway_id', how: 'the organization has no pathway-url' });
  return fields;
}
