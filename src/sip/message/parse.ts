import { err, ok, type Result } from '../../lib/result.js';
import { SIP_TOKEN } from '../../lib/sip-token.js';
import { headerId, trimLws, type Header, type SipMessage } from './message.js';
import { parseStartLine, type MessageProblem } from './start-line.js';

/** Why a text is not a SIP message that can be processed. `status` is the answer when it is a request that can be answered. */
export interface ParseError extends MessageProblem {
  /** As much as could be read: enough to answer when it holds a start line and the headers of an answer. */
  readonly partial: SipMessage | null;
}

export interface MessageLimits {
  readonly maxHeaders: number;
  /** One header, folds included. */
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
}

/** What an answer copies (RFC 3261 §8.2.6.2): read on for, whatever was wrong before. */
const ANSWERED_WITH = new Set(['via', 'from', 'to', 'call-id', 'cseq']);

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
  if (start === undefined) return err({ status: 400, reason: 'Bad Request-Line', partial: null });
  const headers: Header[] = [];
  const headerProblem = lineEnd === headEnd ? null : readHeaders(text, lineEnd + 2, headEnd, limits, headers);
  const message: SipMessage = { ...start.line, headers, body };
  const problem = start.problem ?? headerProblem;
  if (problem !== null) return err({ ...problem, partial: message });
  if (body.length > limits.maxBodyBytes) return err({ status: 413, reason: 'Request Entity Too Large', partial: message });
  return ok(message);
}

/** Reads header lines from `at` up to `end` (where the last CRLF begins) into `into`; returns the first problem. */
export function readHeaders(text: string, at: number, end: number, limits: MessageLimits, into: Header[]): MessageProblem | null {
  let position = at;
  let problem: MessageProblem | null = null;
  while (position < end) {
    let lineEnd = text.indexOf('\r\n', position);
    let folded = false;
    // RFC 3261 §7.3.1: a line that begins with white space continues the one before.
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

/** `undefined`: this is no header. */
function readHeader(line: string, folded: boolean): Header | undefined {
  const colon = line.indexOf(':');
  const name = trimLws(line.slice(0, Math.max(colon, 0)));
  if (colon <= 0 || !SIP_TOKEN.test(name) || !line.startsWith(name)) return undefined;
  const raw = line.slice(colon + 1);
  const value = trimLws(folded ? raw.replace(/\r\n[ \t]+/g, ' ') : raw);
  if (value.includes('\n') || value.includes('\r') || hasBareNul(value)) return undefined;
  return { id: headerId(name), value, line };
}

/** NUL may stand in a quoted string behind a backslash (RFC 3261 §25.1, quoted-pair; RFC 4475 §3.1.1.2), and nowhere else. */
function hasBareNul(value: string): boolean {
  return value.includes('\0') && value.replaceAll('\\\0', '').includes('\0');
}
