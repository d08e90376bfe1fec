import type { E164 } from '../model/e164.js';
import { err, ok, type Result } from '../../lib/result.js';
import { sessionDescription, type BodyHead } from '../sdp/body.js';
import { calledNumber } from '../admission/called-number.js';
import type { Reason } from '../model/reasons.js';
import { sessionTimerHeaders } from './session-timer.js';

/** The headers of an INVITE that decide whether it can be served at all. */
export interface InviteHead extends BodyHead {
  /** The URI that names the called number. */
  readonly uri: string;
  readonly require: string | undefined;
  readonly accept: string | undefined;
  /** The Contact URI; `undefined`: missing or not readable. */
  readonly contactUri: string | undefined;
  readonly supported: string | undefined;
  readonly sessionExpires: string | undefined;
}

export interface AdmissibleInvite {
  readonly called: E164;
  readonly sdp: string;
  /** Headers of the 200 that settle the session timer. */
  readonly sessionTimer: Readonly<Record<string, string>>;
}

/** Option tags of RFC 4028 and RFC 3262; 100rel needs nothing as long as no 18x is sent reliably. */
export const SUPPORTED_OPTIONS = ['timer', '100rel'] as const;

export const ALLOWED_METHODS = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK';

/** Checks what needs no look-up, in the order in which RFC 3261 §8.2 does. */
export function admit(head: InviteHead): Result<AdmissibleInvite, Reason> {
  // Without a Contact the call could be answered but never ended by us (RFC 3261 §8.1.1.8 demands one).
  if (head.contactUri === undefined) return err('MALFORMED_REQUEST');
  if (unsupportedOptions(head.require).length > 0) return err('BAD_EXTENSION');
  const called = calledNumber(head.uri);
  if (!called.ok) return called;
  // RFC 3261 §21.4.7: our answer is a session description.
  if (!acceptsSdp(head.accept)) return err('NOT_ACCEPTABLE');
  const sdp = sessionDescription(head);
  if (!sdp.ok) return sdp;
  const sessionTimer = sessionTimerHeaders(head);
  if (!sessionTimer.ok) return sessionTimer;
  return ok({ called: called.value, sdp: sdp.value, sessionTimer: sessionTimer.value });
}

/** Without an Accept header a session description is accepted (RFC 3261 §20.1). */
function acceptsSdp(accept: string | undefined): boolean {
  if (accept === undefined) return true;
  return accept.split(',').some((range) => {
    const [type = '', ...params] = range
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/);
    return ['application/sdp', 'application/*', '*/*'].includes(type) && !params.some((param) => /^q\s*=\s*0(\.0*)?$/.test(param));
  });
}

/** What a Require header asks for that we do not support (RFC 3261 §8.2.2.3). */
export function unsupportedOptions(require: string | undefined): string[] {
  return (require ?? '')
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '' && !(SUPPORTED_OPTIONS as readonly string[]).includes(option.toLowerCase()));
}
