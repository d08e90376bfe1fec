import { err } from '../../src/lib/result.js';
import type { VoiceServer } from '../../src/gateway/ports/ports.js';

/** For calls without a voice webhook. */
export const NO_VOICE_SERVER: VoiceServer = {
  document: () => Promise.resolve(err('There is no voice webhook.')),
  notify: () => Promise.resolve(err('There is no status callback.')),
};
