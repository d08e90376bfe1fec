import { ok, err, type Result } from '../../lib/result.js';
import { sessionDescription, type BodyHead } from '../sdp/body.js';
import { unsupportedOptions } from './invite.js';
import type { Reason } from '../model/reasons.js';
import { sessionTimerHeaders, type SessionTimerHead } from './session-timer.js';

/** The headers and body of a re-INVITE or UPDATE that decide what it is answered. */
export type ReofferHead = SessionTimerHead & BodyHead;

/** What a re-INVITE or UPDATE asks for: an SDP ('' for none) and the session timer's headers of the answer. */
export function readReoffer(
  head: ReofferHead,
): Result<{ readonly sdp: string; readonly sessionTimer: Readonly<Record<string, string>> }, Reason> {
  if (unsupportedOptions(head.require).length > 0) return err('BAD_EXTENSION');
  const sdp = sessionDescription(head);
  if (!sdp.ok) return sdp;
  const sessionTimer = sessionTimerHeaders(head);
  if (!sessionTimer.ok) return sessionTimer;
  return ok({ sdp: sdp.value, sessionTimer: sessionTimer.value });
}
