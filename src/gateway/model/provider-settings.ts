import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { AgentSettings, PronunciationEntry } from './agent-record.js';
import type { AgentProvider, ProviderName, ProviderTuning } from './provider.js';
import type { SpeechServices, Voice } from './speech-service.js';
import type { ToolDefinition } from './tool-definition.js';

/** A tool without what only the gateway needs. */
export type SpokenTool = Pick<ToolDefinition, 'name' | 'description' | 'input_schema' | 'speech'>;

/** One thing that was said in the call so far. */
export interface Said {
  readonly speaker: 'agent' | 'caller';
  readonly text: string;
}

/** A call's agent at a provider. */
export interface ProviderSettings {
  readonly provider: ProviderName;
  /** `wss://`, or `ws://` towards an address of a private network; without a query. */
  readonly url: string;
  /** Secret. `null`: there is none, and no connection is made. */
  readonly apiKey: string | null;
  readonly model: string;
  readonly transcriptionModel: string;
  readonly prompt: string;
  readonly firstSentence: string | null;
  /** The caller speaks first. */
  readonly waitsForGreeting: boolean;
  readonly voice: string | null;
  /** A language code of the product (`ENG`). */
  readonly language: string;
  readonly pronunciationGuide: readonly PronunciationEntry[];
  /** The silence after which the caller has finished, in milliseconds; `null`: the provider's own default. */
  readonly endOfSpeechMs: number | null;
  /** Left out of calls of an earlier version. */
  readonly tuning?: ProviderTuning;
  /** Speaks word for word what the provider itself cannot; `null`: the model is asked for it, or it is left out. */
  readonly speech: { readonly services: SpeechServices; readonly voice: Voice } | null;
  readonly tools: readonly SpokenTool[];
  /** Whether it may transfer the caller and press keys: not with the model `turbo`. */
  readonly mayTransfer: boolean;
  /** Headers that it may set in the BYE, see `unlistedHeader`. Left out of calls of an earlier version: none. */
  readonly headersFromAgent?: readonly string[];
  readonly audio: AgentProvider['audio'];
  /** The leg's codec; for a call without an offer, µ-law. */
  readonly codec: AudioCodec;
  /** The agent's `metadata`, for a provider whose agents take variables. Left out of calls of an earlier version: none. */
  readonly metadata?: AgentSettings['metadata'];
  /** What another agent and the caller said before; empty: it begins. */
  readonly conversation: readonly Said[];
}
