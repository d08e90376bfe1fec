import type { Route } from '../model/records.js';
import type { VoiceApplication } from '../model/voice-application.js';
import type { CallOrigin } from './call-record.js';

/** The application of a call: a placed one brings its own, any other has that of the called number. `null`: it has none. */
export function voiceApplicationOf(
  { direction, voice }: Pick<CallOrigin, 'direction' | 'voice'>,
  route: Route | null,
): VoiceApplication | null {
  if (direction === 'outbound') return voice ?? null;
  if (route === null) return null;
  const { org, number } = route;
  const {
    voice_url: url,
    voice_fallback_url: fallback,
    status_callback: callback,
    status_callback_events: events,
  } = number.inbound?.options ?? {};
  return {
    token: org.twilio_token,
    first: url === undefined ? null : { url, method: 'POST' },
    sendDigits: null,
    fallback: fallback === undefined ? null : { url: fallback, method: 'POST' },
    statusCallback: callback === undefined ? null : { url: callback, method: 'POST', events: events ?? ['completed'] },
  };
}
