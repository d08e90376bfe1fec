import { canonicalHeaderName, headerId, trimLws } from './header-name.js';

/**
 * SIP text is kept as "byte strings": each character is one byte of the wire (latin1), so that a message passes through
 * unchanged whatever its encoding, its length is its size in bytes, and V8 stores it in one byte a character.
 */
export interface Header {
  /** Long form in lower case. */
  readonly id: string;
  /** Unfolded and trimmed. */
  readonly value: string;
  /** The line as received, folds included, without its last CRLF. */
  readonly line: string;
}

/** The headers of a received message that were found while it was read, by their ids. */
export interface KnownHeaders {
  /** Whether it can say of this header what there is of it. */
  knows(id: string): boolean;
  first(id: string): string | undefined;
  all(id: string): string[];
}

/** What a message that goes on as it was received has besides. */
interface AsReceived {
  /** The whole text. */
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

/** A request of ours before From, To, Call-ID, CSeq, Via and the routes are added. */
export type RequestParts = Pick<SipRequest, 'method' | 'headers' | 'body'>;

export type WithHeaders = Pick<SipMessage, 'headers'> & Pick<AsReceived, 'known'>;

/** A copy with other parts; what it was received as does not count any more. */
export function changed<M extends SipMessage>(message: M, changes: Partial<Pick<SipRequest, 'uri' | 'headers' | 'body'>>): M {
  const { headers, body } = message;
  const start =
    message.kind === 'request'
      ? { kind: message.kind, method: message.method, uri: message.uri }
      : { kind: message.kind, status: message.status, reason: message.reason };
  return { ...start, headers, body, ...changes } as SipMessage as M;
}

/** Makes a header under its usual spelling. */
export function header(name: string, value: string): Header {
  const id = headerId(name);
  return { id, value, line: `${canonicalHeaderName(id)}: ${value}` };
}

/** The first value of a header, or `undefined`. `id` is the long form in lower case. */
export function getHeader(message: WithHeaders, id: string): string | undefined {
  if (message.known?.knows(id) === true) return message.known.first(id);
  for (const candidate of message.headers) if (candidate.id === id) return candidate.value;
  return undefined;
}

export function hasHeader(message: WithHeaders, id: string): boolean {
  if (message.known?.knows(id) === true) return message.known.first(id) !== undefined;
  return message.headers.some((candidate) => candidate.id === id);
}

/** The values of every line with this name, not split at commas. */
export function getHeaders(message: WithHeaders, id: string): string[] {
  if (message.known?.knows(id) === true) return message.known.all(id);
  const values: string[] = [];
  for (const candidate of message.headers) if (candidate.id === id) values.push(candidate.value);
  return values;
}

/** Every value of a header that may be repeated or hold a comma-separated list, in order. */
export function getList(message: WithHeaders, id: string): string[] {
  return getHeaders(message, id).flatMap(splitList);
}

/** Splits at commas that stand outside quoted strings and angle brackets (RFC 3261 §7.3.1). */
export function splitList(text: string): string[] {
  if (!text.includes(',')) return text === '' ? [] : [text];
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  let angle = false;
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    if (quoted) {
      if (char === '\\') index += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '<') angle = true;
    else if (char === '>') angle = false;
    else if (char === ',' && !angle) {
      parts.push(trimLws(text.slice(start, index)));
      start = index + 1;
    }
  }
  parts.push(trimLws(text.slice(start)));
  return parts.filter((part) => part !== '');
}
