import { formatHost, formatHostPort } from '../../lib/address.js';
import type { E164 } from '../model/e164.js';
import { err, ok, type Result } from '../../lib/result.js';
import { ALLOWED_METHODS } from '../../lib/sip-methods.js';
import { calledNumber } from '../admission/parties.js';
import { type Reason, REASONS, reasonHeaderOf, warningOf } from '../model/reasons.js';

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

/** @param noReinvite we refresh no session */
export function supportedHeader(noReinvite: boolean): string {
  return SUPPORTED_OPTIONS.filter((option) => !noReinvite || option !== 'timer').join(', ');
}

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

export interface RefusalContext {
  /** Named in the Warning. */
  readonly host: string;
  /** The request's Require header. */
  readonly require: string | undefined;
  /** Content types that are read here. */
  readonly accepted: string;
  readonly retryAfterSeconds: () => number;
  /** What the reason's sentence does not say; `null`: nothing. */
  readonly detail: string | null;
}

/** The headers of a refusal: why (Warning, Reason), when to try again, and what the status demands by its RFC. */
export function refusalHeaders(reason: Reason, context: RefusalContext): Readonly<Record<string, string>> {
  return {
    Warning: warningOf(reason, context.host, context.detail),
    Reason: reasonHeaderOf(reason),
    ...(REASONS[reason].retryAfter ? { 'Retry-After': String(context.retryAfterSeconds()) } : {}),
    ...demanded(reason, context),
  };
}

function demanded(reason: Reason, { require, accepted }: RefusalContext): Readonly<Record<string, string>> {
  switch (reason) {
    // RFC 3261 §8.2.2.3
    case 'BAD_EXTENSION':
      return { Unsupported: namedBack(unsupportedOptions(require)) };
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

const MAX_NAMED_BACK = 5;
const MAX_OPTION_TAG = 32;

/** What a stranger sent does not come back at any length: a drachtio-server never reads a frame that is longer than its buffer. */
const namedBack = (options: readonly string[]): string =>
  options
    .slice(0, MAX_NAMED_BACK)
    .map((option) => option.slice(0, MAX_OPTION_TAG))
    .join(', ');

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

/** The session timer where we refresh nothing: none, unless the request demands one, which its sender then refreshes. */
export function passiveSessionTimer(
  sessionTimer: Readonly<Record<string, string>>,
  require: string | undefined,
): Readonly<Record<string, string>> {
  const { 'Session-Expires': expires } = sessionTimer;
  if (expires === undefined || !/(?:^|,)\s*timer\s*(?:,|$)/i.test(require ?? '')) return {};
  return { ...sessionTimer, 'Session-Expires': expires.replace(/=uas$/, '=uac') };
}

/** drachtio-srf expands the one-letter names of RFC 3261 and not the `x` of RFC 4028 §4. */
export function sessionExpiresOf(request: { get(name: string): string | undefined }): string | undefined {
  return request.get('Session-Expires') ?? request.get('x');
}

/** The headers and body of a re-INVITE or UPDATE that decide what it is answered. */
export type ReofferHead = SessionTimerHead & BodyHead;

/** What a re-INVITE or UPDATE asks for: an SDP ('' for none) and the session timer's headers of the answer. */
export function readReoffer(
  head: ReofferHead,
): Result<{ readonly sdp: string; readonly sessionTimer: Readonly<Record<string, string>> }, Reason> {
  if (unsupportedOptions(head.require).length > 0) return err('BAD_EXTENSION');
  const sdp = sessionDescription(head);
  if (!sdp.ok) return sdp;
  const sessionTimer = sessionTimerHeaders(head);
  if (!sessionTimer.ok) return sessionTimer;
  return ok({ sdp: sdp.value, sessionTimer: sessionTimer.value });
}

/** A body and the headers that describe it. */
interface BodyHead {
  readonly contentType: string | undefined;
  readonly contentDisposition: string | undefined;
  /** Such as `gzip`. */
  readonly contentEncoding: string | undefined;
  readonly body: string;
}

/**
 * The session description of a request's body: the body itself, or the `application/sdp` part of a multipart body
 * (SDP with ISUP, PIDF-LO or metadata). `ok('')`: no body, or an optional one that we ignore. An error: no part is usable.
 */
export function sessionDescription({ contentType, contentDisposition, contentEncoding, body }: BodyHead): Result<string, 'BAD_BODY'> {
  if (body.trim() === '') return ok('');
  // RFC 3261 §8.2.3: we support no encoding.
  if (!/^\s*(identity\s*)?$/i.test(contentEncoding ?? '')) return err('BAD_BODY');
  const type = (contentType ?? 'application/sdp').trim();
  if (/^application\/sdp\s*(;|$)/i.test(type)) return ok(body);
  const boundary = /^multipart\/[a-z]+\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(type);
  // RFC 3261 §8.2.3: refuse an unknown body unless it is optional.
  if (boundary === null) return /;\s*handling\s*=\s*"?optional\b/i.test(contentDisposition ?? '') ? ok('') : err('BAD_BODY');
  // RFC 2046 §5.1.1: what comes before the first boundary, and after the last, is no part.
  const [, ...delimited] = body.split(`--${boundary[1] ?? boundary[2] ?? ''}`);
  const parts = delimited.filter((part) => !part.startsWith('--')).flatMap(readPart);
  const description = parts.find(({ isDescription }) => isDescription);
  // RFC 3261 §8.2.3: refuse an unknown part that is required. Skip parts without the parameter, which carriers add.
  const isBeyondUs = parts.some(({ isDescription, head }) => !isDescription && /;\s*handling\s*=\s*"?required\b/i.test(head));
  return description === undefined || isBeyondUs ? err('BAD_BODY') : ok(description.text);
}

interface BodyPart {
  readonly head: string;
  readonly isDescription: boolean;
  readonly text: string;
}

function readPart(part: string): BodyPart[] {
  const split = /\r?\n\r?\n/.exec(part);
  if (split === null) return [];
  const head = part.slice(0, split.index + 1);
  const isDescription = /^content-type\s*:\s*application\/sdp\s*(;|\r|\n|$)/im.test(head);
  return [{ head, isDescription, text: part.slice(split.index + split[0].length).replace(/\r?\n$/, '\r\n') }];
}

/** The parts of our own URIs. */
export interface OwnAddress {
  /** The name in the certificate, or an address. */
  readonly host: string;
  readonly port: number;
  /** `tls`, `tcp`, `udp`. */
  readonly transport: string;
}

/** In Contact; `port: null`: peers look the name up (RFC 3263). */
export type ContactAddress = Omit<OwnAddress, 'port'> & { readonly port: number | null };

/** The headers of an INVITE that select sip or sips. */
interface SecurityHead {
  readonly requestUri: string;
  readonly topRecordRoute: string | undefined;
  readonly contactUri: string | undefined;
}

/** The host of a SIP URI, an IPv6 address in brackets; `undefined`: none. */
export function hostOf(uri: string): string | undefined {
  return /^sips?:(?:[^@]*@)?(\[[\da-f:.]+\]|[^\s:;?<>@]+)/i.exec(uri)?.[1];
}

/**
 * Our Contact. `sips:` only where RFC 3261 §12.1.1 requires it (Request-URI, top Record-Route, or without one the Contact is sips):
 * many peers cannot dial it.
 */
export function ownContact(own: ContactAddress, head: SecurityHead): string {
  const decisive = head.topRecordRoute ?? head.contactUri ?? '';
  const isSips = own.transport === 'tls' && (/^sips:/i.test(head.requestUri) || /^[^<]*<?\s*sips:/i.test(decisive));
  return contactText(own, isSips);
}

function contactText({ host, port, transport }: ContactAddress, isSips: boolean): string {
  const at = port === null ? formatHost(host) : formatHostPort(host, port);
  return `<${isSips ? 'sips' : 'sip'}:${at};transport=${transport}>`;
}

/** Our Contact in a call of another host. */
export function movedContact(own: ContactAddress, contact: string): string {
  return contactText(own, /^<sips:/i.test(contact));
}
