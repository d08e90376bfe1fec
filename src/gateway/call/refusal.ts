import { ALLOWED_METHODS, unsupportedOptions } from './invite.js';
import { REASONS, reasonHeaderOf, warningOf, type Reason } from '../model/reasons.js';
import { MIN_SESSION_SECONDS } from './session-timer.js';

export interface RefusalContext {
  /** Named in the Warning. */
  readonly host: string;
  /** The request's Require header. */
  readonly require: string | undefined;
  /** Content types that are read here. */
  readonly accepted: string;
  readonly retryAfterSeconds: () => number;
}

/** The headers of a refusal: why (Warning, Reason), when to try again, and what the status demands by its RFC. */
export function refusalHeaders(reason: Reason, context: RefusalContext): Readonly<Record<string, string>> {
  return {
    Warning: warningOf(reason, context.host),
    Reason: reasonHeaderOf(reason),
    ...(REASONS[reason].retryAfter ? { 'Retry-After': String(context.retryAfterSeconds()) } : {}),
    ...demanded(reason, context),
  };
}

function demanded(reason: Reason, { require, accepted }: RefusalContext): Readonly<Record<string, string>> {
  switch (reason) {
    // RFC 3261 §8.2.2.3
    case 'BAD_EXTENSION':
      return { Unsupported: unsupportedOptions(require).join(', ') };
    // RFC 3261 §8.2.3
    case 'BAD_BODY':
      return { Accept: accepted, 'Accept-Encoding': 'identity' };
    // RFC 3261 §8.2.1
    case 'METHOD_NOT_ALLOWED':
      return { Allow: ALLOWED_METHODS };
    // RFC 4028 §6
    case 'SESSION_INTERVAL_TOO_SMALL':
      return { 'Min-SE': String(MIN_SESSION_SECONDS) };
    default:
      return {};
  }
}
