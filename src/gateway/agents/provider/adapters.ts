import type { ProviderName } from '../../model/provider.js';
import type { ProviderSettings } from '../../model/provider-settings.js';
import type { ProviderAdapter } from './adapter.js';
import { DeepgramAgent } from './deepgram.js';
import { ElevenLabsAgent } from './elevenlabs.js';
import { GeminiLive } from './gemini-live.js';
import { OpenAiRealtime } from './openai-realtime.js';

const ADAPTERS: Readonly<Record<ProviderName, new (settings: ProviderSettings) => ProviderAdapter>> = {
  'openai-realtime': OpenAiRealtime,
  deepgram: DeepgramAgent,
  'gemini-live': GeminiLive,
  elevenlabs: ElevenLabsAgent,
};

/** A session's adapter. */
export function newAdapter(settings: ProviderSettings): ProviderAdapter {
  return new ADAPTERS[settings.provider](settings);
}
