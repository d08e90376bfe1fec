import { err, ok, type Result } from '../../lib/result.js';
import type { Reason } from '../model/reasons.js';
import type { CallerIdentity } from '../model/call-record.js';
import { parseE164, type E164 } from '../model/e164.js';
import { SIP_TOKEN } from '../../lib/sip-token.js';
import { splitOutside } from '../../lib/split-outside.js';

/** An INVITE's headers by name; several of a name are joined with commas. */
export interface IdentityHeaders {
  get(name: string): string | undefined;
  /** Every header name of the message, in its original spelling. */
  readonly names: readonly string[];
}

// What one call may add to records, agents and webhooks.
const MAX_HEADERS = 32;
const MAX_HEADER_NAME = 64;
const MAX_HEADER_VALUE = 512;
const MAX_URIS = 16;
const MAX_URI = 256;
const MAX_USER_TO_USER = 1_024;
const MAX_DISPLAY_NAME = 128;

/** The embedded SIP server adds it, or nobody: not the caller's to pass on. */
const OWN_HEADER_PREFIX = 'x-trunkline-';

/** RFC 3323, RFC 3325: omits what the caller asked to keep private. This does not decide about the call. */
export function callerIdentity(headers: IdentityHeaders): CallerIdentity {
  const privacy = tokens(headers.get('Privacy'));
  const hidesIdentity = privacy.includes('id') || privacy.includes('user') || privacy.includes('header');
  const fromText = headers.get('From') ?? '';
  // One entry, as a rule: a display name may have a comma outside of quotes.
  const from = nameAddress(fromText) ?? nameAddresses(fromText)[0];
  const isAnonymous = from === undefined || /@anonymous\.invalid\b/i.test(from.uri) || /^sips?:anonymous@/i.test(from.uri);
  const isHidden = privacy.includes('user') || isAnonymous;
  return {
    number: isHidden ? 'anonymous' : numberOf(from.uri),
    display_name: isHidden || from.displayName === '' ? null : from.displayName,
    asserted: hidesIdentity ? [] : nameAddresses(headers.get('P-Asserted-Identity')).map(({ uri }) => uri),
    remote_party: hidesIdentity ? null : remoteParty(headers.get('Remote-Party-ID')),
    diversions: nameAddresses(headers.get('Diversion')).map(({ uri, params }) => ({ uri, reason: paramsOf(params).get('reason') ?? null })),
    history: privacy.includes('history')
      ? []
      : nameAddresses(headers.get('History-Info')).map(({ uri, params }) => ({ uri, index: paramsOf(params).get('index') ?? null })),
    privacy,
    user_to_user: limited(headers.get('User-to-User'), MAX_USER_TO_USER),
    headers: ownHeaders(headers),
  };
}

/** The caller by P-Asserted-Identity and From, whatever is private: compared with the signature (RFC 8224 §8.1). */
export function claimedCallers(headers: Pick<IdentityHeaders, 'get'>): string[] {
  return ['P-Asserted-Identity', 'From'].flatMap((name) => nameAddresses(headers.get(name)).map(({ uri }) => uri));
}

/** Remote-Party-ID contains its own privacy (draft-ietf-sip-privacy-04). */
function remoteParty(value: string | undefined): string | null {
  const first = nameAddresses(value)[0];
  if (first === undefined) return null;
  const privacy = paramsOf(first.params).get('privacy') ?? 'off';
  return privacy === 'off' ? first.uri : null;
}

function ownHeaders(headers: IdentityHeaders): Record<string, string> {
  const kept: Record<string, string> = {};
  let count = 0;
  for (const name of headers.names) {
    const lower = name.toLowerCase();
    if (!lower.startsWith('x-') || !SIP_TOKEN.test(lower) || lower.startsWith(OWN_HEADER_PREFIX) || lower.length > MAX_HEADER_NAME)
      continue;
    const value = headers.get(name);
    // Truncated, a value could change its meaning.
    if (value === undefined || value.length > MAX_HEADER_VALUE || count === MAX_HEADERS) continue;
    kept[lower] = value;
    count += 1;
  }
  return kept;
}

interface NameAddress {
  readonly displayName: string;
  readonly uri: string;
  /** As they stand behind it, with a semicolon before each. */
  readonly params: string;
}

/** The entries of a header of name-addr values (RFC 3261 §20); omits unreadable ones. */
function nameAddresses(text: string | undefined): NameAddress[] {
  if (text === undefined) return [];
  return splitOutside(text, ',')
    .slice(0, MAX_URIS)
    .flatMap((entry) => nameAddress(entry) ?? []);
}

function nameAddress(entry: string): NameAddress | undefined {
  const match = /^\s*(?:"((?:[^"\\]|\\.)*)"|([^<"]*?))\s*<([^<>\s]+)>\s*((?:;.*)?)$/s.exec(entry);
  const bare = match === null ? /^\s*((?:sips?|tel):[^\s;<>]+)\s*((?:;.*)?)$/is.exec(entry) : null;
  const uri = match?.[3] ?? bare?.[1];
  if (uri === undefined) return misquoted(entry);
  if (uri.length > MAX_URI) return undefined;
  const displayName = (match?.[1]?.replace(/\\(.)/g, '$1') ?? match?.[2] ?? '').trim().slice(0, MAX_DISPLAY_NAME);
  return { displayName, uri, params: match?.[4] ?? bare?.[2] ?? '' };
}

/** One whose quotes are not where RFC 3261 §25.1 has them, as long as it has a single address. */
function misquoted(entry: string): NameAddress | undefined {
  const [address, ...others] = entry.matchAll(/<((?:sips?|tel):[^<>\s]+)>/gi);
  const uri = address?.[1];
  if (address === undefined || uri === undefined || others.length > 0 || uri.length > MAX_URI) return undefined;
  const params = entry.slice(address.index + address[0].length).trim();
  const displayName = entry.slice(0, address.index).replace(/["\\]/g, '').trim().slice(0, MAX_DISPLAY_NAME);
  return { displayName, uri, params: params.startsWith(';') ? params : '' };
}

function paramsOf(text: string): Map<string, string> {
  const params = new Map<string, string>();
  for (const part of splitOutside(text, ';')) {
    const [name = '', value = ''] = part.split(/=(.*)/s);
    if (name.trim() !== '') params.set(name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/s, '$1'));
  }
  return params;
}

/** In E.164 form where the URI has a plus or states the prefix. National digits stay as they are: another country has them, too. */
function numberOf(uri: string): string {
  const [, sipUser, telUser] = /^(?:sips?:(?:([^@]*)@)?|tel:(.*))/i.exec(uri) ?? [];
  const user = sipUser ?? telUser ?? '';
  const { local, params } = subscriberOf(unescape(user) ?? user);
  const stated = `${globalPrefix(local, params)}${local}`;
  const number = stated.startsWith('+') ? parseE164(stated) : undefined;
  if (number !== undefined) return number;
  const digits = /^[\d().-]+$/.test(local) ? local.replace(/\D/g, '') : '';
  return digits || local.slice(0, MAX_DISPLAY_NAME) || 'anonymous';
}

function tokens(text: string | undefined): string[] {
  return (text ?? '')
    .split(/[;,]/)
    .map((token) => token.trim().toLowerCase())
    .filter((token) => /^[\w-]{1,32}$/.test(token))
    .slice(0, MAX_URIS);
}

function limited(text: string | undefined, most: number): string | null {
  return text === undefined || text.length > most ? null : text;
}

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
  const { local, params } = subscriberOf(user);
  const number = parseE164(`${globalPrefix(local, params)}${local}`);
  if (number !== undefined) return ok(number);
  // Too few digits get 484, which asks for more; a name never becomes a number.
  return err(
    /^\+?[\d().-]*$/.test(local) && local.replace(/\D/g, '').length < 7 && /\d/.test(local) ? 'NUMBER_TOO_SHORT' : 'INVALID_NUMBER',
  );
}

/** The user part of a SIP URI, or a `tel:` URI without its scheme (RFC 3966 §3). */
function subscriberOf(user: string): { readonly local: string; readonly params: readonly string[] } {
  const [subscriber = '', ...params] = user.split(';');
  return { local: (subscriber.split(':')[0] ?? '').trim(), params };
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

/** `undefined`: an escape is broken. */
function unescape(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
