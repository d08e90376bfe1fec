/**
 * SIP text is a "byte string": each character is one byte of the wire (latin1). A message passes through unchanged whatever its encoding,
 * its length is its size in bytes, and V8 stores one byte a character.
 */
export interface Header {
  /** Long form in lower case. */
  readonly id: string;
  /** Unfolded and trimmed. */
  readonly value: string;
  /** The line as received, folds included, without the last CRLF. */
  readonly line: string;
}

/** The headers of a received message that the parser located, by id. */
export interface KnownHeaders {
  /** Whether it has all values of this header. */
  knows(id: string): boolean;
  first(id: string): string | undefined;
  all(id: string): string[];
}

/** Additional fields of a message forwarded as received. */
interface AsReceived {
  readonly wire?: string;
  readonly known?: KnownHeaders;
}

export interface SipRequest extends AsReceived {
  readonly kind: 'request';
  readonly method: string;
  readonly uri: string;
  readonly headers: readonly Header[];
  readonly body: string;
}

export interface SipResponse extends AsReceived {
  readonly kind: 'response';
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly Header[];
  readonly body: string;
}

export type SipMessage = SipRequest | SipResponse;

/** Our request before the stack adds From, To, Call-ID, CSeq, Via and routes. */
export type RequestParts = Pick<SipRequest, 'method' | 'headers' | 'body'>;

export type WithHeaders = Pick<SipMessage, 'headers'> & Pick<AsReceived, 'known'>;

/** A copy with other parts, which drops the received text. */
export function changed<M extends SipMessage>(message: M, changes: Partial<Pick<SipRequest, 'uri' | 'headers' | 'body'>>): M {
  const { headers, body } = message;
  const start =
    message.kind === 'request'
      ? { kind: message.kind, method: message.method, uri: message.uri }
      : { kind: message.kind, status: message.status, reason: message.reason };
  return { ...start, headers, body, ...changes } as SipMessage as M;
}

/** A header under its usual spelling. */
export function header(name: string, value: string): Header {
  const id = headerId(name);
  return { id, value, line: `${canonicalHeaderName(id)}: ${value}` };
}

/** The first value of a header. `id` is the long form in lower case. */
export function getHeader(message: WithHeaders, id: string): string | undefined {
  if (message.known?.knows(id) === true) return message.known.first(id);
  for (const candidate of message.headers) if (candidate.id === id) return candidate.value;
  return undefined;
}

export function hasHeader(message: WithHeaders, id: string): boolean {
  if (message.known?.knows(id) === true) return message.known.first(id) !== undefined;
  return message.headers.some((candidate) => candidate.id === id);
}

/** The values of all lines with this name, not split at commas. */
export function getHeaders(message: WithHeaders, id: string): string[] {
  if (message.known?.knows(id) === true) return message.known.all(id);
  const values: string[] = [];
  for (const candidate of message.headers) if (candidate.id === id) values.push(candidate.value);
  return values;
}

/** All values of a header that may repeat or hold a comma-separated list, in order. */
export function getList(message: WithHeaders, id: string): string[] {
  return getHeaders(message, id).flatMap(splitList);
}

/** Splits at commas outside quoted strings and angle brackets (RFC 3261 §7.3.1). */
export function splitList(text: string): string[] {
  if (!text.includes(',')) return text === '' ? [] : [text];
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  let angle = false;
  const take = (end: number): void => {
    const part = trimLws(text.slice(start, end));
    if (part !== '') parts.push(part);
    start = end + 1;
  };
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    if (quoted) {
      if (char === '\\') index += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '<') angle = true;
    else if (char === '>') angle = false;
    else if (char === ',' && !angle) take(index);
  }
  take(text.length);
  return parts;
}

// RFC 3261 §7.3.3 and the IANA registry: compact forms.
const COMPACT: Readonly<Record<string, string>> = {
  a: 'accept-contact',
  b: 'referred-by',
  c: 'content-type',
  d: 'request-disposition',
  e: 'content-encoding',
  f: 'from',
  i: 'call-id',
  j: 'reject-contact',
  k: 'supported',
  l: 'content-length',
  m: 'contact',
  n: 'identity-info',
  o: 'event',
  r: 'refer-to',
  s: 'subject',
  t: 'to',
  u: 'allow-events',
  v: 'via',
  x: 'session-expires',
  y: 'identity',
};

/** Names not spelled with one capital a word. */
const SPELLED: Readonly<Record<string, string>> = {
  'call-id': 'Call-ID',
  cseq: 'CSeq',
  'www-authenticate': 'WWW-Authenticate',
  'mime-version': 'MIME-Version',
  rack: 'RAck',
  rseq: 'RSeq',
  'min-se': 'Min-SE',
  'sip-etag': 'SIP-ETag',
  'sip-if-match': 'SIP-If-Match',
};

const cache = new Map<string, string>();
const CACHE_LIMIT = 1_000;

/** The long form in lower case, for comparison. */
export function headerId(name: string): string {
  const known = cache.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const id = COMPACT[lower] ?? lower;
  // Names come from peers: the cache needs a bound.
  if (cache.size < CACHE_LIMIT) cache.set(name, id);
  return id;
}

const canonical = new Map<string, string>(Object.entries(SPELLED));

/** `my-header` → `My-Header`. */
export function canonicalHeaderName(id: string): string {
  const known = canonical.get(id);
  if (known !== undefined) return known;
  const name = id.replace(/(^|-)([a-z])/g, (_all, dash: string, letter: string) => dash + letter.toUpperCase());
  if (canonical.size < CACHE_LIMIT) canonical.set(id, name);
  return name;
}

/** Without surrounding spaces and tabs. Not `String.trim`: it strips byte A0, the last byte of `à` in UTF-8. */
export function trimLws(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isLws(text.charCodeAt(start))) start += 1;
  while (end > start && isLws(text.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

export function isLws(code: number): boolean {
  return code === 32 || code === 9;
}

function startLine(message: SipMessage): string {
  return message.kind === 'request' ? `${message.method} ${message.uri} SIP/2.0` : `SIP/2.0 ${String(message.status)} ${message.reason}`;
}

/** The message as a byte string. Content-Length is always the body's real size, in its original place or last. */
export function serialize(message: SipMessage): string {
  if (message.wire !== undefined) return message.wire;
  let text = `${startLine(message)}\r\n`;
  let counted = false;
  for (const line of message.headers) {
    if (line.id === 'content-length') {
      if (counted) continue;
      counted = true;
      text += Number(line.value) === message.body.length ? `${line.line}\r\n` : `Content-Length: ${message.body.length}\r\n`;
      continue;
    }
    text += `${line.line}\r\n`;
  }
  if (!counted) text += `Content-Length: ${message.body.length}\r\n`;
  return `${text}\r\n${message.body}`;
}

/** Unfolds every header, for readers without folding (RFC 3261 §7.3.1). */
export function serializeUnfolded(message: SipMessage): string {
  // A message forwarded as received has no folds.
  if (message.wire !== undefined || !message.headers.some(({ line }) => line.includes('\n'))) return serialize(message);
  const headers = message.headers.map((item) =>
    item.line.includes('\n') ? { ...item, line: `${item.line.slice(0, item.line.indexOf(':'))}: ${item.value}` } : item,
  );
  return serialize(changed(message, { headers }));
}
