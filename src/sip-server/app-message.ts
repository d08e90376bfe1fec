import { formatHostPort } from '../lib/address.js';
import { SIP_TOKEN } from '../lib/sip-token.js';
import { canonicalHeaderName, headerId, trimLws, header, type Header } from '../sip/message/message.js';
import type { Endpoint } from '../sip/transport/flow.js';

/** The SIP text in an application's frame. */
export type AppMessage =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly reason: string;
      readonly headers: readonly Header[];
      readonly body: string;
    }
  | { readonly kind: 'request'; readonly method: string; readonly uri: string; readonly headers: readonly Header[]; readonly body: string };

/** Headers that the server sets itself: dropped silently. */
const DISCARDED = new Set(['via', 'route', 'rseq', 'record-route', 'content-length']);

/** Headers with usual names, written before Content-Length. All others follow it. */
const WELL_KNOWN = new Set(
  `from to call-id cseq contact max-forwards server user-agent accept accept-encoding accept-language alert-info allow allow-events
   authentication-info authorization call-info content-disposition content-encoding content-language content-type date error-info event
   expires identity in-reply-to join mime-version min-expires min-se organization path privacy priority proxy-authenticate
   proxy-authorization proxy-require rack reason refer-sub refer-to referred-by reject-contact replaces reply-to request-disposition
   require retry-after service-route session-expires sip-etag sip-if-match subject subscription-state supported timestamp unsupported
   warning www-authenticate`
    .trim()
    .split(/\s+/),
);

const LOCALHOST = /@localhost(?::\d+)?(?=[;>?\s]|$)/i;

/** How to treat a header name from an application. */
interface KnownName {
  readonly id: string;
  /** The name as sent, with colon and space. */
  readonly written: string;
}

/** Applications use few names; `null`: drop the header. */
const names = new Map<string, KnownName | null>();
const MAX_NAMES = 1_000;

function knownName(name: string): KnownName | null {
  const known = names.get(name);
  if (known !== undefined) return known;
  const resolved = resolveName(trimLws(name));
  if (names.size < MAX_NAMES) names.set(name, resolved);
  return resolved;
}

function resolveName(name: string): KnownName | null {
  // Drops a name that is no token.
  if (!SIP_TOKEN.test(name)) return null;
  const id = headerId(name);
  if (DISCARDED.has(id)) return null;
  if (WELL_KNOWN.has(id)) return { id, written: `${canonicalHeaderName(id)}: ` };
  return { id, written: `${/^x-/i.test(name) ? name : canonicalHeaderName(name.toLowerCase())}: ` };
}

/** Parses an application's message; `undefined` for an invalid start line. The body is everything after the first empty line. */
export function parseAppMessage(text: string): AppMessage | undefined {
  const lineEnd = text.indexOf('\r\n');
  const start = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const headEnd = text.indexOf('\r\n\r\n');
  const body = headEnd < 0 ? '' : text.slice(headEnd + 4);
  const headers = lineEnd < 0 ? [] : readLines(text, lineEnd + 2, headEnd < 0 ? text.length : headEnd);
  const status = /^SIP\/2\.0 ([1-6]\d\d)(?: (.*))?$/.exec(start);
  if (status !== null) return { kind: 'response', status: Number(status[1]), reason: status[2] ?? '', headers, body };
  const request = /^([A-Z]{1,32}) (\S+) SIP\/2\.0$/.exec(start);
  if (request === null) return undefined;
  return { kind: 'request', method: request[1] ?? '', uri: request[2] ?? '', headers, body };
}

function readLines(text: string, from: number, end: number): Header[] {
  const headers: Header[] = [];
  for (let position = from; position < end;) {
    const found = text.indexOf('\r\n', position);
    const lineEnd = found < 0 || found > end ? end : found;
    const colon = text.indexOf(':', position);
    const name = colon < 0 || colon > lineEnd ? null : knownName(text.slice(position, colon));
    if (name !== null) {
      const value = trimLws(text.slice(colon + 1, lineEnd));
      // No bare CR or LF in a header.
      if (!value.includes('\r') && !value.includes('\n')) headers.push({ id: name.id, value, line: name.written + value });
    }
    position = lineEnd + 2;
  }
  return headers;
}

/** Orders the headers: well-known ones, Content-Type, Content-Length, the rest. `own` replaces `@localhost` in headers that name us. */
export function arrangeHeaders(headers: readonly Header[], body: string, own: Endpoint, drop: ReadonlySet<string>): Header[] {
  const known: Header[] = [];
  const custom: Header[] = [];
  const identity: Header[] = [];
  let contentType: Header | undefined = body.startsWith('v=0') ? header('Content-Type', 'application/sdp') : undefined;
  for (const item of headers) {
    if (drop.has(item.id)) continue;
    if (item.id === 'content-type') contentType = item;
    else if (WELL_KNOWN.has(item.id)) known.push(named(item, own));
    else if (item.id === IDENTITY) identity.push(named(item, own));
    else custom.push(named(item, own));
  }
  if (body !== '' && contentType !== undefined) known.push(contentType);
  return [...known, header('Content-Length', String(body.length)), ...custom, ...identity];
}

/** Goes last, as in drachtio-server. */
const IDENTITY = 'p-asserted-identity';
const NAMES_US = new Set(['from', 'to', 'contact', IDENTITY]);

function named(item: Header, own: Endpoint): Header {
  if (!NAMES_US.has(item.id)) return item;
  const value = LOCALHOST.test(item.value) ? item.value.replace(LOCALHOST, `@${formatHostPort(own.address, own.port)}`) : item.value;
  if (item.id !== 'contact' || value.includes('<'))
    return value === item.value ? item : { ...item, value, line: `${item.line.split(':')[0] ?? ''}: ${value}` };
  // RFC 3261 §20.10: without angle brackets every parameter is the header's.
  const semicolon = value.indexOf(';');
  return header('Contact', semicolon < 0 ? `<${value}>` : `<${value.slice(0, semicolon)}>${value.slice(semicolon)}`);
}
