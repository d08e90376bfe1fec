import { parseSipUri, uriScheme } from './uri.js';
import { err, ok, type Result } from '../../lib/result.js';
import { SIP_TOKEN } from '../../lib/sip-token.js';
import { headerId, trimLws, type Header, type SipMessage } from './message.js';

/** Why a text is not a valid SIP message. `status` answers a request. */
export interface ParseError extends MessageProblem {
  /** The part that was read; may suffice for a response. */
  readonly partial: SipMessage | null;
}

export interface MessageLimits {
  readonly maxHeaders: number;
  /** One header, folds included. */
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
}

/** Headers that a response copies (RFC 3261 §8.2.6.2): read on for them after a fault. */
const ANSWERED_WITH = new Set(['via', 'from', 'to', 'call-id', 'cseq']);

/**
 * Parses one message: start line, headers, and everything after the first empty line as the body. The caller cuts the body (end of
 * datagram, Content-Length of a stream).
 */
export function parseMessage(text: string, limits: MessageLimits): Result<SipMessage, ParseError> {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return err({ status: 400, reason: 'Missing end of headers', partial: null });
  const body = text.slice(headEnd + 4);
  const lineEnd = text.indexOf('\r\n');
  const start = parseStartLine(text.slice(0, lineEnd));
  if (start === undefined) return err({ status: 400, reason: 'Bad Request-Line', partial: null });
  const headers: Header[] = [];
  const headerProblem = lineEnd === headEnd ? null : readHeaders(text, lineEnd + 2, headEnd, limits, headers);
  const message: SipMessage = { ...start.line, headers, body };
  const problem = start.problem ?? headerProblem;
  if (problem !== null) return err({ ...problem, partial: message });
  if (body.length > limits.maxBodyBytes) return err({ status: 413, reason: 'Request Entity Too Large', partial: message });
  return ok(message);
}

/** Appends header lines from `at` to `end` (start of the last CRLF) to `into`; returns the first problem. */
export function readHeaders(text: string, at: number, end: number, limits: MessageLimits, into: Header[]): MessageProblem | null {
  let position = at;
  let problem: MessageProblem | null = null;
  while (position < end) {
    let lineEnd = text.indexOf('\r\n', position);
    let folded = false;
    // RFC 3261 §7.3.1: a line that begins with white space continues the previous one.
    while (lineEnd < end && (text.charCodeAt(lineEnd + 2) === 32 || text.charCodeAt(lineEnd + 2) === 9)) {
      folded = true;
      lineEnd = text.indexOf('\r\n', lineEnd + 2);
    }
    const item = lineEnd - position > limits.maxHeaderBytes ? null : readHeader(text.slice(position, lineEnd), folded);
    if (item === null) problem ??= { status: 513, reason: 'Header Too Large' };
    else if (item === undefined) problem ??= { status: 400, reason: 'Bad Header Line' };
    else if (problem === null || ANSWERED_WITH.has(item.id)) into.push(item);
    if (into.length > limits.maxHeaders) problem ??= { status: 513, reason: 'Too Many Headers' };
    position = lineEnd + 2;
  }
  return problem;
}

/** `undefined`: not a header. */
function readHeader(line: string, folded: boolean): Header | undefined {
  const colon = line.indexOf(':');
  const name = trimLws(line.slice(0, Math.max(colon, 0)));
  if (colon <= 0 || !SIP_TOKEN.test(name) || !line.startsWith(name)) return undefined;
  const raw = line.slice(colon + 1);
  const value = trimLws(folded ? raw.replace(/\r\n[ \t]+/g, ' ') : raw);
  if (value.includes('\n') || value.includes('\r') || hasBareNul(value)) return undefined;
  return { id: headerId(name), value, line };
}

/** NUL is valid only after a backslash in a quoted string (RFC 3261 §25.1, quoted-pair; RFC 4475 §3.1.1.2). */
function hasBareNul(value: string): boolean {
  return value.includes('\0') && value.replaceAll('\\\0', '').includes('\0');
}

/** A fault, and the response for a request with it. */
interface MessageProblem {
  readonly status: 400 | 413 | 414 | 505 | 513;
  readonly reason: string;
}

interface StartLine {
  readonly line:
    | { readonly kind: 'request'; readonly method: string; readonly uri: string }
    | { readonly kind: 'response'; readonly status: number; readonly reason: string };
  /** Malformed SIP: the stack answers a request, drops a response. */
  readonly problem: MessageProblem | null;
}

const MAX_METHOD = 64;
const VERSION = /^SIP\/(\d{1,5})\.(\d{1,5})$/i;
const STATUS_LINE = /^SIP\/2\.0 ([1-6]\d\d) ([^\r\n]*)$/i;
const RESPONSE = /^SIP\/\d{1,5}\.\d{1,5} /i;
const MAX_URI_BYTES = 4_096;

/** Parses a Request-Line or Status-Line (RFC 3261 §7.1, §7.2); `undefined`: not SIP. */
export function parseStartLine(line: string): StartLine | undefined {
  if (line.includes('\0')) return undefined;
  if (RESPONSE.test(line)) {
    const status = STATUS_LINE.exec(line);
    if (status === null) return { line: { kind: 'response', status: 0, reason: '' }, problem: bad('Bad Status-Line') };
    return { line: { kind: 'response', status: Number(status[1]), reason: status[2] ?? '' }, problem: null };
  }
  return parseRequestLine(line);
}

/** Misplaced white space is a fault, but the request can be answered (RFC 4475 §3.1.2.8 to §3.1.2.10). */
function parseRequestLine(line: string): StartLine | undefined {
  const trimmed = trimLws(line);
  const first = line.indexOf(' ');
  const last = trimmed.lastIndexOf(' ');
  if (first < 1 || last <= first || !line.startsWith(trimmed)) return undefined;
  const method = line.slice(0, first);
  const version = VERSION.exec(trimmed.slice(last + 1));
  if (version === null || method.length > MAX_METHOD || !SIP_TOKEN.test(method)) return undefined;
  const uri = trimmed.slice(first + 1, last);
  const isExact = trimmed.length === line.length && /^\S+$/.test(uri);
  return { line: { kind: 'request', method, uri: trimLws(uri) }, problem: requestLineProblem(version, isExact, uri) };
}

function requestLineProblem(version: RegExpExecArray, isExact: boolean, uri: string): MessageProblem | null {
  if (Number(version[1]) !== 2 || Number(version[2]) !== 0) return { status: 505, reason: 'Version Not Supported' };
  if (!isExact) return bad('Bad Request-Line');
  if (uri.length > MAX_URI_BYTES) return { status: 414, reason: 'Request-URI Too Long' };
  return isRequestUri(uri) ? null : bad('Bad Request-URI');
}

/** For a foreign scheme, checks only the syntax: the user agent answers 416. */
function isRequestUri(uri: string): boolean {
  const scheme = uriScheme(uri);
  if (scheme !== 'sip' && scheme !== 'sips') return scheme !== '';
  // RFC 3261 §19.1.1: a Request-URI has no headers.
  return parseSipUri(uri)?.headers === '';
}

function bad(reason: string): MessageProblem {
  return { status: 400, reason };
}
