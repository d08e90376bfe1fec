import type { ProviderDefaults } from '../../src/gateway/model/provider.js';
import { endOfSpeechTable } from '../../src/gateway/model/end-of-speech.js';
import type { OperatorAgent } from '../../src/gateway/call/agent.js';

const none = (url: string): ProviderDefaults => ({
  url,
  apiKey: null,
  model: 'm',
  turboModel: 'm-mini',
  transcriptionModel: 't',
  voice: null,
});

/** The operator has a key at no provider. */
const NO_PROVIDERS: OperatorAgent['providers'] = {
  'openai-realtime': none('wss://api.openai.com/v1/realtime'),
  'gemini-live': none('wss://generativelanguage.googleapis.com/'),
  elevenlabs: none('wss://api.elevenlabs.io/v1/convai/conversation'),
  deepgram: none('wss://agent.deepgram.com/v1/agent/converse'),
};

/** Text to speech and speech to text without a key. */
export const NO_SPEECH: OperatorAgent['speech'] = {
  listen: { url: 'wss://api.deepgram.com/v2/listen', apiKey: null },
  speech: {
    deepgram: { url: 'https://api.deepgram.com/v1/speak', apiKey: null, model: '', voice: 'aura-2-thalia-en' },
    elevenlabs: { url: 'https://api.elevenlabs.io/v1/text-to-speech', apiKey: null, model: 'eleven_flash_v2_5', voice: 'v' },
    openai: { url: 'https://api.openai.com/v1/audio/speech', apiKey: null, model: 'gpt-4o-mini-tts', voice: 'alloy' },
  },
};

/** The test line answers, and nothing stands in for an agent. */
export const OPERATOR: OperatorAgent = {
  url: null,
  format: 'twilio',
  bearerToken: null,
  providers: NO_PROVIDERS,
  standIns: { secondProvider: null, sentence: 'Sorry.', language: 'ENG', transferTo: null },
  endOfSpeech: endOfSpeechTable('50=250,200=1000'),
  speech: NO_SPEECH,
};
