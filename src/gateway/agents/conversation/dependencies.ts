import { HttpVoiceServer } from '../../twilio/voice-client.js';
import { HttpTextToSpeech } from '../text-to-speech.js';
import type { ConversationDependencies } from './conversation-agent.js';

/** Longest wait for an audio file that an application names. */
const AUDIO_TIMEOUT_MS = 10_000;

/** With clients for text to speech and audio files. */
export function conversationDependencies(shared: Omit<ConversationDependencies, 'textToSpeech' | 'voiceServer'>): ConversationDependencies {
  const { clock, limits } = shared;
  const { allowPrivate } = limits;
  return {
    ...shared,
    textToSpeech: new HttpTextToSpeech({ allowPrivate, clock }),
    voiceServer: new HttpVoiceServer({ allowPrivate, timeoutMs: AUDIO_TIMEOUT_MS, clock }),
  };
}
