import { HttpVoiceServer } from '../../twilio/voice-client.js';
import type { ConversationDependencies } from './conversation-agent.js';

/** Longest wait for an audio file that an application names. */
const AUDIO_TIMEOUT_MS = 10_000;

/** With a client for audio files. */
export function conversationDependencies(shared: Omit<ConversationDependencies, 'voiceServer'>): ConversationDependencies {
  const { clock, limits } = shared;
  const { allowPrivate } = limits;
  return {
    ...shared,
    voiceServer: new HttpVoiceServer({ allowPrivate, timeoutMs: AUDIO_TIMEOUT_MS, clock }),
  };
}
