import type { ProviderName } from '../../model/provider.js';
import type { ProviderSettings } from '../../model/provider-settings.js';
import type { ProviderAdapter } from './adapter.js';
import { OpenAiRealtime } from './openai-realtime.js';

const ADAPTERS: Readonly<Record<ProviderName, new (settings: ProviderSettings) => ProviderAdapter>> = {
  'openai-realtime': OpenAiRealtime,
};

/** A session's adapter. */
export function newAdapter(settings: ProviderSettings): ProviderAdapter {
  return new ADAPTERS[settings.provider](settings);
}
