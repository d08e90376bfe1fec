import { SIP_TOKEN } from '../../lib/sip-token.js';
import { trimLws } from './message.js';
import { parseSipUri, uriScheme } from './uri.js';

/** Why a message cannot be processed, and what a request that has it is answered. */
export interface MessageProblem {
  readonly status: 400 | 413 | 414 | 505 | 513;
  readonly reason: string;
}

export interface StartLine {
  readonly line:
    | { readonly kind: 'request'; readonly method: string; readonly uri: string }
    | { readonly kind: 'response'; readonly status: number; readonly reason: string };
  /** It is SIP, but not as it must be: a request is answered, a response is dropped. */
  readonly problem: MessageProblem | null;
}

const MAX_METHOD = 64;
const VERSION = /^SIP\/(\d{1,5})\.(\d{1,5})$/i;
const STATUS_LINE = /^SIP\/2\.0 ([1-6]\d\d) ([^\r\n]*)$/i;
const RESPONSE = /^SIP\/\d{1,5}\.\d{1,5} /i;
const MAX_URI_BYTES = 4_096;

/** Reads a Request-Line or Status-Line (RFC 3261 §7.1, §7.2); `undefined`: this is not SIP. */
export function parseStartLine(line: string): StartLine | undefined {
  if (line.includes('\0')) return undefined;
  if (RESPONSE.test(line)) {
    const status = STATUS_LINE.exec(line);
    if (status === null) return { line: { kind: 'response', status: 0, reason: '' }, problem: bad('Bad Status-Line') };
    return { line: { kind: 'response', status: Number(status[1]), reason: status[2] ?? '' }, problem: null };
  }
  return parseRequestLine(line);
}

/** White space where none may be is a fault of a request that can still be answered (RFC 4475 §3.1.2.8 to §3.1.2.10). */
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

/** For a foreign scheme, checks only the scheme's syntax: the user agent answers 416. */
function isRequestUri(uri: string): boolean {
  const scheme = uriScheme(uri);
  if (scheme !== 'sip' && scheme !== 'sips') return scheme !== '';
  // RFC 3261 §19.1.1: headers have no place in a Request-URI.
  return parseSipUri(uri)?.headers === '';
}

function bad(reason: string): MessageProblem {
  return { status: 400, reason };
}
