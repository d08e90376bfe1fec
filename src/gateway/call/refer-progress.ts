import { err, ok, type Result } from '../../lib/result.js';
import type { Reason } from '../model/reasons.js';

/** The state of a transfer in a NOTIFY (RFC 3515 §2.4.5). */
export interface ReferProgress {
  /** The target's answer to the carrier's INVITE; `null`: unknown. */
  readonly status: number | null;
  /** No further NOTIFY follows. */
  readonly isLast: boolean;
}

export function readReferProgress(notify: {
  readonly contentType: string | undefined;
  readonly subscriptionState: string | undefined;
  readonly body: string;
}): Result<ReferProgress, Extract<Reason, 'BAD_BODY' | 'MALFORMED_REQUEST'>> {
  const isLast = /^\s*terminated\b/i.test(notify.subscriptionState ?? '');
  if (notify.body === '' && isLast) return ok({ status: null, isLast });
  if (!/^\s*message\/sipfrag\s*(?:;|$)/i.test(notify.contentType ?? '')) return err('BAD_BODY');
  const status = /^SIP\/2\.0 ([1-6]\d\d)(?: |\r|\n|$)/i.exec(notify.body)?.[1];
  return status === undefined ? err('MALFORMED_REQUEST') : ok({ status: Number(status), isLast });
}
