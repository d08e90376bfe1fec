import { err, ok, type Result } from '../../lib/result.js';

/** The headers of an INVITE, re-INVITE or UPDATE that RFC 4028 looks at. */
export interface SessionTimerHead {
  readonly sessionExpires: string | undefined;
  readonly supported: string | undefined;
  readonly require: string | undefined;
}

/** RFC 4028 §4: seconds. */
export const MIN_SESSION_SECONDS = 90;

/**
 * The headers of the 2xx that settle the session timer: none when the request asks for none. The SIP server arms it, refreshes, and ends the call;
 * here it is only agreed. An interval that is too short is refused (422 and Min-SE), but only to a caller that understands the refusal.
 */
export function sessionTimerHeaders(head: SessionTimerHead): Result<Readonly<Record<string, string>>, 'SESSION_INTERVAL_TOO_SMALL'> {
  const match = /^\s*(\d{1,9})\s*(?:;(.*))?$/.exec(head.sessionExpires ?? '');
  if (match === null) return ok({});
  const seconds = Number(match[1]);
  const isSupported = [head.supported, head.require].some((list) => /(?:^|,)\s*timer\s*(?:,|$)/i.test(list ?? ''));
  if (!isSupported) {
    // A proxy asked, for a caller that knows no timers: we refresh, and require nothing (RFC 4028 §9, table 2).
    return ok({ 'Session-Expires': `${Math.max(seconds, MIN_SESSION_SECONDS)};refresher=uas` });
  }
  if (seconds < MIN_SESSION_SECONDS) return err('SESSION_INTERVAL_TOO_SMALL');
  const refresher = /(?:^|;)\s*refresher\s*=\s*uas\s*(?:;|$)/i.test(match[2] ?? '') ? 'uas' : 'uac';
  return ok({ 'Session-Expires': `${seconds};refresher=${refresher}`, Require: 'timer' });
}
