import { err, ok, type Result } from '../../lib/result.js';
import type { Reason } from '../model/reasons.js';

/** A key press told by SIP INFO. `event` is the code of RFC 4733 §3.2: 0-9, 10 `*`, 11 `#`, 12-15 A-D. */
export interface InfoDigit {
  readonly event: number;
  readonly durationMs: number;
}

const DIGITS = '0123456789*#ABCD';
const DEFAULT_DURATION_MS = 160;
const MAX_DURATION_MS = 10_000;

/** `application/dtmf-relay` (`Signal=5`, `Duration=160`) and `application/dtmf` (`5`), as phones and gateways send them. */
export function readInfoDigit(
  contentType: string | undefined,
  body: string,
): Result<InfoDigit, Extract<Reason, 'BAD_BODY' | 'MALFORMED_REQUEST'>> {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/dtmf-relay' && type !== 'application/dtmf') return err('BAD_BODY');
  const signal = /^\s*signal\s*=\s*(\S+)\s*$/im.exec(body)?.[1] ?? (type === 'application/dtmf' ? body.trim() : '');
  const event = eventOf(signal);
  if (event === undefined) return err('MALFORMED_REQUEST');
  const duration = /^\s*duration\s*=\s*(\d{1,6})\s*$/im.exec(body)?.[1];
  return ok({ event, durationMs: duration === undefined ? DEFAULT_DURATION_MS : Math.min(Number(duration), MAX_DURATION_MS) });
}

function eventOf(signal: string): number | undefined {
  if (signal.length === 1) {
    const event = DIGITS.indexOf(signal.toUpperCase());
    return event < 0 ? undefined : event;
  }
  // Some send the event code of `*`, `#` and the letters.
  return /^1[0-5]$/.test(signal) ? Number(signal) : undefined;
}
