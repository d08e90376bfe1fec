import { errorText } from '../../lib/result.js';
import type { SrfAnswer } from '../ports/signalling.js';

/** The SIP server ended it, or never had it. */
export function isUnknownDialog(error: unknown): boolean {
  return /unable to find dialog/i.test(errorText(error));
}

const REQUEST_PENDING = 491;
/** RFC 3261 §12.2.1.2, and an address that could not be reached. Others say that the peer takes no OPTIONS. */
const FAILED_PINGS: readonly number[] = [408, 481, 503];

/** What the record says of a request within the dialog; `null`: it did not fail, or is due again after the peer's own (RFC 3261 §14.1). */
export function requestFailure(
  method: string,
  error: unknown,
  answer: Pick<SrfAnswer, 'status' | 'unanswered'> | undefined,
): string | null {
  // The SIP server has ended it already, as when a 200 crossed our CANCEL.
  if (method === 'BYE' && isUnknownDialog(error)) return null;
  if (answer === undefined) return `${method}: ${errorText(error)}`;
  const { status, unanswered } = answer;
  if (unanswered !== null) return `${method}: ${unanswered}`;
  const isFailed = method === 'OPTIONS' ? FAILED_PINGS.includes(status) : status >= 300 && status !== REQUEST_PENDING;
  return isFailed ? `${method}: answered with ${String(status)}` : null;
}
