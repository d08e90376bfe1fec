import { parseE164, type E164 } from '../model/e164.js';
import { err, ok, type Result } from '../../lib/result.js';
import { isServiceNumber } from '../admission/dial-guard.js';
import { calledNumber } from '../admission/parties.js';
import type { Reason } from '../model/reasons.js';

/** Where the agent transfers the caller. */
export type TransferTarget = { readonly kind: 'number'; readonly number: E164 } | { readonly kind: 'uri'; readonly uri: string };

const MAX_TARGET = 256;
/** A host, without characters that end the header and without URI headers (RFC 3261 §19.1.1). */
const SIP_URI = /^sips?:(?:[^\s<>"?@,]+@)?(?:\[[\da-f:.]+\]|[a-z\d](?:[a-z\d.-]*[a-z\d])?)(?::\d{1,5})?(?:;[^\s<>"?@,]*)?$/i;

/** The target of a transfer, if it is valid and the agent may choose it. */
export function transferTarget(to: string, transferList: unknown): Result<TransferTarget, 'TRANSFER_BAD_TARGET' | 'TRANSFER_NOT_ALLOWED'> {
  const target = readTarget(to);
  if (target === undefined) return err('TRANSFER_BAD_TARGET');
  const entries = entriesOf(transferList);
  if (entries.length === 0) return ok(target);
  const isListed = target.kind === 'number' && entries.flatMap(numbersOf).includes(target.number);
  return isListed ? ok(target) : err('TRANSFER_NOT_ALLOWED');
}

const URI_PARTS = /^sips?:(?:([^@]*)@)?(\[[\da-f:.]+\]|[^:;]+)/i;
/** Subscribers' numbers are longer. */
const MOST_SHORT_DIGITS = 6;

/** Whether the carrier may be asked to call a SIP URI: at a host of the operator's list, but no emergency or short number there. */
export function mayReferTo(uri: string, hosts: readonly string[]): boolean {
  const [, user = '', host = ''] = URI_PARTS.exec(uri) ?? [];
  const isListed = hosts.some((one) => one.toLowerCase() === host.toLowerCase());
  // It would lead past the host (RFC 3261 §19.1.1).
  return isListed && !/;\s*maddr\s*=/i.test(uri) && !isShort(user);
}

function isShort(user: string): boolean {
  const [name = ''] = unescaped(user).split(/[;:]/);
  const digits = name.replace(/[-.()\s]/g, '');
  if (!/^\+?[\d*#]+$/.test(digits)) return false;
  if (digits.length <= MOST_SHORT_DIGITS) return true;
  const number = digits.startsWith('+') ? parseE164(digits) : undefined;
  return digits.startsWith('+') && (number === undefined || isServiceNumber(number));
}

function unescaped(user: string): string {
  return user.replace(/%([\da-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function readTarget(to: string): TransferTarget | undefined {
  const text = to.trim();
  if (text.length > MAX_TARGET) return undefined;
  if (/^sips?:/i.test(text)) return SIP_URI.test(text) ? { kind: 'uri', uri: text } : undefined;
  const called = /^tel:/i.test(text) ? calledNumber(text) : undefined;
  const number = called === undefined ? parseE164(text) : called.ok ? called.value : undefined;
  return number === undefined ? undefined : { kind: 'number', number };
}

/** A list of numbers, or of objects that have one, or an object of them by name. */
function entriesOf(transferList: unknown): readonly unknown[] {
  if (typeof transferList !== 'object' || transferList === null) return [];
  return Array.isArray(transferList) ? (transferList as readonly unknown[]) : Object.values(transferList);
}

function numbersOf(entry: unknown): E164[] {
  const texts: readonly unknown[] = typeof entry === 'object' && entry !== null ? Object.values(entry) : [entry];
  return texts.flatMap((text) => (typeof text === 'string' ? (parseE164(text) ?? []) : []));
}

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
