import type { ProviderName } from './provider.js';
import { PROVIDER_VOICES } from './provider-voices.js';

// Text to speech and speech to text at providers, for agents that exchange text with an application.

export const SPEECH_PROVIDERS = ['deepgram', 'elevenlabs', 'openai'] as const;
export type SpeechProvider = (typeof SPEECH_PROVIDERS)[number];

/** Text to speech at one provider. */
export interface SpeechService {
  /** `https://`, or `http://` towards an address of a private network. */
  readonly url: string;
  /** Secret; `null`: there is none. */
  readonly apiKey: string | null;
  /** '': the voice says it. */
  readonly model: string;
  /** Where none is named. */
  readonly voice: string;
}

export type SpeechServices = Readonly<Record<SpeechProvider, SpeechService>>;

/** Who says what a provider of voice models cannot say word for word: the first of these that there is a key for. */
export const SPOKEN_BY: Readonly<Record<ProviderName, readonly SpeechProvider[]>> = {
  'openai-realtime': ['openai'],
  deepgram: [],
  'gemini-live': SPEECH_PROVIDERS,
  elevenlabs: ['elevenlabs'],
};

/** Speech to text: Deepgram's Flux. */
export interface ListenService {
  /** `wss://`, without a query. */
  readonly url: string;
  /** Secret; `null`: there is none, and no connection is made. */
  readonly apiKey: string | null;
}

/** Who speaks; `voice` null: the provider's default. */
export interface Voice {
  readonly provider: SpeechProvider;
  readonly voice: string | null;
}

const NAMES: Readonly<Record<string, SpeechProvider>> = { elevenlabs: 'elevenlabs', deepgram: 'deepgram', openai: 'openai' };
const ELEVENLABS_ID = /^[A-Za-z0-9]{20}(?:-|$)/;

/** `undefined`: no provider that there is here. */
export function speechProviderOf(name: string): SpeechProvider | undefined {
  return NAMES[name.toLowerCase()];
}

/** A voice by `ElevenLabs.<voice>` and the like, by its form, or by the provider beside it; `null`: of no provider that there is here. */
export function voiceOf(name: string, provider?: SpeechProvider): Voice | null {
  const [prefix = '', ...rest] = name.split('.');
  const named = speechProviderOf(prefix);
  if (named !== undefined && rest.length > 0 && rest.join('.') !== '') return { provider: named, voice: rest.join('.') };
  if (provider !== undefined) return { provider, voice: name };
  if (name.startsWith('aura-')) return { provider: 'deepgram', voice: name };
  return ELEVENLABS_ID.test(name) ? { provider: 'elevenlabs', voice: name } : null;
}

/** ISO 639-1 of a language tag, such as `en` of `en-US`. */
export function isoOf(language: string): string {
  return language.toLowerCase().split('-')[0] ?? '';
}

/** The voice at Deepgram of a language; `undefined`: it has none. */
export function deepgramVoiceOf(language: string): string | undefined {
  const end = `-${isoOf(language)}`;
  return PROVIDER_VOICES.find(({ name, provider }) => provider === 'deepgram' && name.endsWith(end))?.name;
}
