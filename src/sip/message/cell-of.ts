import { cellAmong } from '../../lib/cells.js';
import { tagOf } from './uri.js';

// The SIP servers of several cells share the sockets of one address, and each call belongs to one cell. A message's text names it: our To tag,
// and the branch of our Via, begin with the number of their cell. A request without a tag of ours goes by its Call-ID, so that an INVITE, its
// CANCEL and their retransmissions meet.

/** How a message finds its cell. */
export interface CellOfMessage {
  /** From 1 to the count. */
  readonly cell: number;
  /** The Call-ID of a request outside dialogs, which any cell could take; `null`: only the cell that has its dialog or transaction. */
  readonly newCallId: string | null;
}

/** The cell that has a message, complete at least up to its headers' end. Total: of what is no SIP too. */
export function cellOf(text: string, count: number): CellOfMessage {
  if (text.startsWith('SIP/2.0 ')) {
    const via = headerOf(text, '\r\nVia: ', VIA);
    const at = via.indexOf(COOKIE);
    return { cell: cellAmong(at < 0 ? 1 : numberOf(via, at + COOKIE.length), count), newCallId: null };
  }
  const to = headerOf(text, '\r\nTo: ', TO);
  const tag = toTag(to);
  if (tag !== undefined) return { cell: cellAmong(numberOf(tag, 0), count), newCallId: null };
  const callId = headerOf(text, '\r\nCall-ID: ', CALL_ID).trim();
  return { cell: (hash(callId) % count) + 1, newCallId: callId };
}

/** What a message does to its transaction. */
export interface TransactionOfMessage {
  /** The same for a request and its responses. */
  readonly key: string;
  readonly isRequest: boolean;
  /** A final response. */
  readonly isFinal: boolean;
}

/** `null`: an ACK, which has none. */
export function transactionOf(text: string): TransactionOfMessage | null {
  if (text.startsWith('ACK ')) return null;
  const isRequest = !text.startsWith('SIP/2.0 ');
  const method = isRequest
    ? text.slice(0, text.indexOf(' '))
    : headerOf(text, '\r\nCSeq: ', CSEQ)
        .trim()
        .replace(/^\d+\s+/, '');
  const branch = /;\s*branch\s*=\s*([^;,\s]+)/i.exec(headerOf(text, '\r\nVia: ', VIA))?.[1] ?? '';
  return { key: `${method} ${branch}`, isRequest, isFinal: !isRequest && text.charAt('SIP/2.0 '.length) > '1' };
}

const COOKIE = ';branch=z9hG4bK';
const VIA = /\r\n(?:via|v)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)/i;
const CSEQ = /\r\ncseq[ \t]*:((?:[^\r\n]|\r\n[ \t])*)/i;
const TO = /\r\n(?:to|t)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)/i;
const CALL_ID = /\r\n(?:call-id|i)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)/i;

/** @param usual its spelling in nearly every message */
function headerOf(text: string, usual: string, any: RegExp): string {
  const at = text.indexOf(usual);
  const start = at + usual.length;
  const end = at < 0 ? -1 : text.indexOf('\r\n', start);
  const next = text.charCodeAt(end + 2);
  // Neither folded, nor text of a body.
  if (end >= 0 && next !== SPACE && next !== TAB && !isAfterHead(text, at)) return text.slice(start, end);
  const headEnd = text.indexOf('\r\n\r\n');
  return any.exec(headEnd < 0 ? text : text.slice(0, headEnd))?.[1] ?? '';
}

const SPACE = 0x20;
const TAB = 0x09;

function isAfterHead(text: string, at: number): boolean {
  const headEnd = text.lastIndexOf('\r\n\r\n', at);
  return headEnd >= 0;
}

function toTag(to: string): string | undefined {
  const from = to.lastIndexOf('>') + 1;
  const at = to.indexOf(';tag=', from);
  if (at >= 0) return /^[^;\s]+/.exec(to.slice(at + ';tag='.length))?.[0];
  return /tag/i.test(from === 0 ? to : to.slice(from)) ? tagOf(to) : undefined;
}

/** The number with which a tag or branch begins there; 1: none. */
function numberOf(text: string, at: number): number {
  const [first, second, third] = [text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2)];
  if (!isDigit(first) || first === ZERO) return 1;
  if (second === DOT) return first - ZERO;
  return isDigit(second) && third === DOT ? 10 * (first - ZERO) + second - ZERO : 1;
}

const ZERO = 0x30;
const DOT = 0x2e;

function isDigit(code: number): boolean {
  return code >= ZERO && code <= ZERO + 9;
}

/** FNV-1a with a last mixing, as its low bits depend on few of the input's. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value ^= value >>> 15;
  value = Math.imul(value, 0x2c1b3c6d);
  return (value ^ (value >>> 12)) >>> 0;
}
