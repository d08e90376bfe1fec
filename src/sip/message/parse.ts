import { err, ok, type Result } from '../../lib/result.js';
import { headerId } from './header-name.js';
import type { Header, SipMessage } from './message.js';

/** Why a text is not a SIP message that can be processed. `status` is the answer when it is a request that can be answered. */
export interface ParseError {
  readonly status: 400 | 413 | 414 | 505 | 513;
  readonly reason: string;
  /** As much as could be read: enough to answer when it holds a start line and the headers of an answer. */
  readonly partial: SipMessage | null;
}

export interface MessageLimits {
  readonly maxHeaders: number;
  /** Of one header, folds included. */
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
}

const TOKEN = /^[\w.!%*+`'~-]+$/;
const REQUEST_LINE = /^([\w.!%*+`'~-]{1,64}) (\S{1,4096}) (SIP)\/(\d{1,5})\.(\d{1,5})$/i;
const STATUS_LINE = /^SIP\/2\.0 ([1-6]\d\d) ([^\r\n]*)$/i;

/**
 * Reads one whole message: start line, headers, and the body, which is everything after the first empty line.
 * Where the body ends is the caller's business (a datagram's end, a stream's Content-Length).
 */
export function parseMessage(text: string, limits: MessageLimits): Result<SipMessage, ParseError> {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return err({ status: 400, reason: 'Missing end of headers', partial: null });
  const body = text.slice(headEnd + 4);
  const lineEnd = text.indexOf('\r\n');
  const start = parseStartLine(text.slice(0, lineEnd));
  if (!start.ok) return start;
  const headers: Header[] = [];
  const { isSupportedVersion } = start.value;
  const problem = lineEnd === headEnd ? null : readHeaders(text, lineEnd + 2, headEnd, limits, headers);
  const message: SipMessage = { ...start.value.line, headers, body };
  if (!isSupportedVersion) return err({ status: 505, reason: 'Version Not Supported', partial: message });
  if (problem !== null) return err({ ...problem, partial: message });
  if (body.length > limits.maxBodyBytes) return err({ status: 413, reason: 'Request Entity Too Large', partial: message });
  return ok(message);
}

interface Start {
  readonly line: { kind: 'request'; method: string; uri: string } | { kind: 'response'; status: number; reason: string };
  /** A request of another version is answered 505, with the headers that an answer copies. */
  readonly isSupportedVersion: boolean;
}

function parseStartLine(line: string): Result<Start, ParseError> {
  const status = STATUS_LINE.exec(line);
  if (status !== null)
    return ok({ line: { kind: 'response', status: Number(status[1]), reason: status[2] ?? '' }, isSupportedVersion: true });
  const request = REQUEST_LINE.exec(line);
  if (request === null) {
    return err({ status: 400, reason: 'Bad Request-Line', partial: null });
  }
  const [, method = '', uri = '', , major, minor] = request;
  return ok({ line: { kind: 'request', method, uri }, isSupportedVersion: major === '2' && minor === '0' });
}

type HeaderProblem = Pick<ParseError, 'status' | 'reason'>;

/** Reads header lines from `at` up to `end` (where the last CRLF begins) into `into`. */
function readHeaders(text: string, at: number, end: number, limits: MessageLimits, into: Header[]): HeaderProblem | null {
  let position = at;
  while (position < end) {
    let lineEnd = text.indexOf('\r\n', position);
    let folded = false;
    // RFC 3261 §7.3.1: a line that begins with white space continues the one before.
    while (lineEnd < end && (text.charCodeAt(lineEnd + 2) === 32 || text.charCodeAt(lineEnd + 2) === 9)) {
      folded = true;
      lineEnd = text.indexOf('\r\n', lineEnd + 2);
    }
    if (lineEnd - position > limits.maxHeaderBytes) return { status: 513, reason: 'Header Too Large' };
    const problem = readHeader(text.slice(position, lineEnd), folded, into);
    if (problem !== null) return problem;
    if (into.length > limits.maxHeaders) return { status: 513, reason: 'Too Many Headers' };
    position = lineEnd + 2;
  }
  return null;
}

function readHeader(line: string, folded: boolean, into: Header[]): HeaderProblem | null {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(colon, 0)).trimEnd();
  if (colon <= 0 || !TOKEN.test(name)) return { status: 400, reason: 'Bad Header Line' };
  const raw = line.slice(colon + 1);
  const value = folded ? raw.replace(/\r\n[ \t]+/g, ' ').trim() : raw.trim();
  if (value.includes('\n') || value.includes('\r') || value.includes('\0')) return { status: 400, reason: 'Bad Header Line' };
  into.push({ id: headerId(name), value, line });
  return null;
}
