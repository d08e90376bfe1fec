import { z } from 'zod';

// Providers of voice models that answer a call without a bot server.

export const PROVIDERS = ['openai-realtime', 'deepgram', 'gemini-live', 'elevenlabs'] as const;
export type ProviderName = (typeof PROVIDERS)[number];

/** An application that exchanges text with the call, in place of a voice model. */
export const CONVERSATION_RELAY = 'conversation-relay';
export const AGENT_PROVIDERS = [...PROVIDERS, CONVERSATION_RELAY] as const;
export type AgentProviderName = (typeof AGENT_PROVIDERS)[number];

/** How OpenAI listens and thinks, in its own words; `null`: its default. */
const tuning = {
  noise_reduction: z.enum(['near_field', 'far_field']).nullable().describe('openai-realtime; null: none'),
  semantic_vad: z.enum(['low', 'medium', 'high', 'auto']).nullable().describe('openai-realtime: its eagerness; null: server_vad'),
  reasoning_effort: z.enum(['minimal', 'low', 'medium', 'high', 'xhigh']).nullable().describe('openai-realtime, models that reason'),
};
export type ProviderTuning = Readonly<z.output<z.ZodObject<typeof tuning>>>;

/** What an agent's owner sets of its provider; `null`: the gateway's setting. The API never shows `api_key`. */
export const agentProvider = z.object({
  name: z.enum(AGENT_PROVIDERS),
  model: z.string().nullable(),
  url: z.string().nullable(),
  // For a server that speaks OpenAI's protocol without G.711.
  audio: z.enum(['g711', 'pcm-24000']),
  ...tuning,
});

export const NO_TUNING: ProviderTuning = { noise_reduction: null, semantic_vad: null, reasoning_effort: null };

export interface AgentProvider extends Readonly<z.output<typeof agentProvider>> {
  readonly api_key: string | null;
}

/** An organization's keys, sent only to the address in the gateway's settings. */
export type ProviderKeys = Readonly<Partial<Record<ProviderName, string>>>;

/** The operator's settings of one provider. */
export interface ProviderDefaults {
  /** `wss://`, without a query. */
  readonly url: string;
  readonly apiKey: string | null;
  /** The models that `base` and `turbo` stand for. */
  readonly model: string;
  readonly turboModel: string;
  /** The model that writes down what the caller says, where the provider has one of its own for that. */
  readonly transcriptionModel: string;
  /** Of agents without a voice; `null`: the provider chooses. */
  readonly voice: string | null;
}
