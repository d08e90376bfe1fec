import { err, ok, type Result } from '../../lib/result.js';
import { E164_FORM, parseE164, type E164 } from '../model/e164.js';
import { calledNumber } from './parties.js';

// Whom somebody wants called: a number, or a SIP URI. dial-guard.ts says whether it may be.

export type Target = { readonly kind: 'number'; readonly number: E164 } | { readonly kind: 'uri'; readonly uri: string };

const MAX_TARGET = 256;
/** A host, without characters that end the header and without URI headers (RFC 3261 §19.1.1). A URI is ASCII throughout. */
const SIP_URI = /^sips?:(?:[^\s<>"?@,]+@)?(?:\[[\da-f:.]+\]|[a-z\d](?:[a-z\d.-]*[a-z\d])?)(?::\d{1,5})?(?:;[^\s<>"?@,]*)?$/i;
const ASCII = /^[\x21-\x7e]*$/;
const URI_PARTS = /^sips?:(?:([^@]*)@)?(\[[\da-f:.]+\]|[^:;]+)(.*)$/i;
/** Subscribers' numbers are longer. */
const MOST_SHORT_DIGITS = 6;

/** `undefined`: it is neither a number without doubt nor a `sip:`, `sips:` or `tel:` URI. */
export function readTarget(to: string): Target | undefined {
  const text = to.trim();
  if (text.length > MAX_TARGET) return undefined;
  if (/^sips?:/i.test(text)) return ASCII.test(text) && SIP_URI.test(text) ? { kind: 'uri', uri: text } : undefined;
  const called = /^tel:/i.test(text) ? calledNumber(text) : undefined;
  const number = called === undefined ? parseE164(text) : called.ok ? called.value : undefined;
  return number === undefined ? undefined : { kind: 'number', number };
}

/** @param uri as `readTarget` gives it */
export function uriParts(uri: string): { readonly user: string; readonly host: string; readonly parameters: string } {
  const [, user = '', host = '', parameters = ''] = URI_PARTS.exec(uri) ?? [];
  return { user, host, parameters };
}

/** The number that is called; `null`: a name at some host. */
export function numberOf(target: Target): E164 | null {
  if (target.kind === 'number') return target.number;
  const dialled = dialledByUser(uriParts(target.uri).user);
  return dialled.ok ? (dialled.value?.number ?? null) : null;
}

/** What a user part of a SIP URI dials at its host: a number, or `null` for a name. The error is a sentence. */
export function dialledByUser(user: string): Result<{ readonly number: E164; readonly hasPlus: boolean } | null, string> {
  const text = unescaped(user);
  // Digits of another script may be read as digits.
  if (text === undefined || /[^\P{N}\d]/u.test(text)) return err('the user part of the SIP URI is neither a name nor ASCII digits');
  const [name = ''] = text.split(/[;:]/);
  const digits = name.replace(/[-.()\s]/g, '');
  if (!/^\+?[\d*#]+$/.test(digits)) return ok(null);
  if (digits.length <= MOST_SHORT_DIGITS) return err('an emergency or short number is never called: an extension needs a name');
  const number = parseE164(name);
  if (number === undefined) return err(`the user part of the SIP URI is neither a name nor ${E164_FORM}`);
  return ok({ number, hasPlus: digits.startsWith('+') });
}

/** `undefined`: an escape is broken. */
function unescaped(user: string): string | undefined {
  try {
    return decodeURIComponent(user);
  } catch {
    return undefined;
  }
}
