import { parseE164, type E164 } from '../model/e164.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { Reason } from '../model/reasons.js';

/** Where a trunk puts the called number: some PBXs send every call to one pilot number and put the real one in a header. */
export type CalledNumberSource = 'request-uri' | 'to' | 'p-called-party-id' | 'diversion';

/** The URI of the called number: the Request-URI if the header is missing or empty. */
export function calledUri(source: CalledNumberSource, requestUri: string, header: (name: string) => string | undefined): string {
  if (source === 'request-uri') return requestUri;
  const text = header(source === 'to' ? 'To' : source === 'diversion' ? 'Diversion' : 'P-Called-Party-ID') ?? '';
  return /<((?:sips?|tel):[^<>\s]+)>/i.exec(text)?.[1] ?? /^\s*((?:sips?|tel):[^\s;,<>]+)/i.exec(text)?.[1] ?? requestUri;
}

/**
 * The called number of a Request-URI: `sip:+15551234567@host;user=phone`, the same without the plus, with
 * `;npdi;rn=…` in the user part, `%2B` for the plus, or a `tel:` URI with or without `;phone-context=+…`.
 */
export function calledNumber(requestUri: string): Result<E164, Extract<Reason, 'INVALID_NUMBER' | 'NUMBER_TOO_SHORT' | 'BAD_SCHEME'>> {
  const match = /^(sips?|tel):(.*)$/is.exec(requestUri);
  if (match === null) return err('BAD_SCHEME');
  const isTel = match[1]?.toLowerCase() === 'tel';
  const rest = match[2] ?? '';
  const at = rest.lastIndexOf('@');
  if (!isTel && at < 0) return err('INVALID_NUMBER');
  const user = unescape(isTel ? rest : rest.slice(0, at));
  if (user === undefined) return err('INVALID_NUMBER');
  const [subscriber = '', ...params] = user.split(';');
  const local = (subscriber.split(':')[0] ?? '').trim();
  const number = parseE164(`${globalPrefix(local, params)}${local}`);
  if (number !== undefined) return ok(number);
  // Too few digits get 484, which asks for more; a name never becomes a number.
  return err(
    /^\+?[\d().-]*$/.test(local) && local.replace(/\D/g, '').length < 7 && /\d/.test(local) ? 'NUMBER_TOO_SHORT' : 'INVALID_NUMBER',
  );
}

/** RFC 3966 §5.1.5: a phone-context that begins with a plus is a stated prefix. */
function globalPrefix(local: string, params: readonly string[]): string {
  if (local.startsWith('+')) return '';
  for (const param of params) {
    const context = /^phone-context=(\+[\d().-]+)$/i.exec(param.trim());
    if (context !== null) return context[1] ?? '';
  }
  return '';
}

function unescape(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
