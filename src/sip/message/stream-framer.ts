import { parseStartLine } from './parse.js';

/** After `error`, close the connection. */
export type StreamItem =
  | { readonly type: 'message'; readonly text: string }
  /** CRLF CRLF: answer with one CRLF (RFC 5626 §4.4.1). */
  | { readonly type: 'ping' }
  /** A single CRLF: response to our ping. */
  | { readonly type: 'pong' }
  /** `head`: the readable part, as a head: answer the request with `status`, then close the connection. */
  | { readonly type: 'error'; readonly reason: string; readonly status: 400 | 413 | 513; readonly head: string | null };

export interface StreamLimits {
  /** Start line and headers. */
  readonly maxHeadBytes: number;
  readonly maxBodyBytes: number;
}

/** Folds included, to match what the parser finds. */
const CONTENT_LENGTH = /\r\n(?:content-length|l)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)(?=\r\n)/gi;
/** How nearly every message begins. */
const PLAIN_START = /^(?:[A-Z]{1,32} sips?:[^\s<>"]{1,1000} SIP\/2\.0|SIP\/2\.0 [1-6]\d\d [^\r\n\0]*)\r\n/;
/** An incomplete start line of any SIP message. */
const BEGINNING = /^[\w.!%*+`'~/-]{1,64}(?: |$)/;
const MAX_FIRST_WORD = 64;

/** Cuts a byte stream into SIP messages (RFC 3261 §18.3), however it is segmented. */
export class StreamFramer {
  readonly #limits: StreamLimits;
  #pending = '';
  /** A valid start line arrived. */
  #hasBegun = false;
  // Without these two, each new fragment would rescan the whole message.
  /** Below this many pending bytes, no item is complete. */
  #needed = 0;
  /** The text to wait for, and the last bytes before the read, in case it spans reads. */
  #awaited: { readonly text: string; seam: string } | null = null;
  #spoiled = false;

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** A message is incomplete: its time limit runs. */
  get isMidMessage(): boolean {
    return this.#pending !== '' && this.#pending !== '\r\n';
  }

  /** Whether the bytes end with a CRLF that no others followed: a pong, which is taken. */
  takePong(): boolean {
    const isPong = this.#pending === '\r\n';
    if (isPong) this.#pending = '';
    return isPong;
  }

  /** Appends bytes (a byte string) and returns the complete items. */
  push(bytes: string): StreamItem[] {
    if (this.#spoiled) return [];
    this.#pending += bytes;
    const items: StreamItem[] = [];
    if (this.#isIncomplete(bytes)) return items;
    for (let item = this.#next(); item !== undefined; item = this.#next()) {
      items.push(item);
      if (item.type === 'error') {
        this.#spoiled = true;
        this.#pending = '';
        break;
      }
    }
    return items;
  }

  #next(): StreamItem | undefined {
    const text = this.#pending;
    if (text.startsWith('\r\n')) {
      if (text.startsWith('\r\n\r\n')) return this.#take(4, { type: 'ping' });
      // `\r\n` and `\r\n\r` may become a ping; other bytes after CRLF make it a pong.
      if (text.length === 2 || text === '\r\n\r') return undefined;
      return this.#take(2, { type: 'pong' });
    }
    if (text === '' || text === '\r') return undefined;
    // Inspects no more than the longest valid head, so that the result does not depend on segmentation.
    const window = text.slice(0, this.#limits.maxHeadBytes + 4);
    const firstEnd = this.#hasBegun ? -1 : window.indexOf('\n');
    if (firstEnd >= 0 && window[firstEnd - 1] !== '\r') return this.#bareLines(window, firstEnd);
    if (!this.#hasBegun && !this.#begins(window)) return spoiled('Not SIP', 400);
    const headEnd = window.indexOf('\r\n\r\n');
    if (headEnd >= 0) return this.#cut(text, headEnd);
    if (window.length === this.#limits.maxHeadBytes + 4) return spoiled('Headers Too Large', 513, wholeLines(window));
    // Rescan short text: it may still prove garbage.
    if (window.length > MAX_FIRST_WORD) this.#awaited = { text: this.#hasBegun ? '\r\n\r\n' : '\n', seam: window.slice(-3) };
    return undefined;
  }

  /** Lines that end with a bare LF (RFC 3261 §7 requires CRLF): the sender gets 400 once the head is complete. */
  #bareLines(window: string, firstEnd: number): StreamItem | undefined {
    if (parseStartLine(window.slice(0, firstEnd)) === undefined) return spoiled('Not SIP', 400);
    const headEnd = window.indexOf('\n\n');
    if (headEnd >= 0) return spoiled('Line Ends Without CR', 400, window.slice(0, headEnd + 2).replace(/\r?\n/g, '\r\n'));
    if (window.length === this.#limits.maxHeadBytes + 4) return spoiled('Headers Too Large', 513);
    this.#awaited = { text: '\n\n', seam: window.slice(-3) };
    return undefined;
  }

  #cut(text: string, headEnd: number): StreamItem | undefined {
    const head = text.slice(0, headEnd + 4);
    const length = plainLength(head) ?? contentLength(head);
    if (length === 'missing') return spoiled('Missing Content-Length', 400, head);
    if (length === 'bad') return spoiled('Bad Content-Length', 400, head);
    if (length > this.#limits.maxBodyBytes) return spoiled('Request Entity Too Large', 413, head);
    const end = headEnd + 4 + length;
    if (text.length >= end) return this.#take(end, { type: 'message', text: text.slice(0, end) });
    this.#needed = end;
    this.#awaited = null;
    return undefined;
  }

  #take(length: number, item: StreamItem): StreamItem {
    this.#pending = this.#pending.slice(length);
    this.#hasBegun = false;
    this.#needed = 0;
    this.#awaited = null;
    return item;
  }

  #isIncomplete(bytes: string): boolean {
    if (this.#pending.length < this.#needed) return true;
    if (this.#awaited === null || this.#pending.length >= this.#limits.maxHeadBytes + 4) return false;
    const seam = this.#awaited.seam + bytes;
    this.#awaited.seam = seam.slice(-3);
    return !seam.includes(this.#awaited.text);
  }

  /** Detects garbage as early as possible, before a limit applies. */
  #begins(window: string): boolean {
    const lineEnd = window.indexOf('\r\n');
    if (lineEnd < 0) return BEGINNING.test(window);
    this.#hasBegun = PLAIN_START.test(window) || parseStartLine(window.slice(0, lineEnd)) !== undefined;
    return this.#hasBegun;
  }
}

/** The complete lines as a head: a too large request gets a response if its Via is among them. */
function wholeLines(window: string): string | null {
  const end = window.lastIndexOf('\r\n');
  return end < 0 ? null : `${window.slice(0, end)}\r\n\r\n`;
}

function spoiled(reason: string, status: 400 | 413 | 513, head: string | null = null): StreamItem {
  return { type: 'error', reason, status, head };
}

const PLAIN_HEADERS_IN_C = ['Call-ID:', 'CSeq:', 'Contact:', 'Content-Type:'];
const STATED = 'Content-Length: ';

/** Content-Length in its usual spelling, once; `undefined`: use `contentLength`. */
export function plainLength(head: string): number | undefined {
  let length: number | undefined;
  for (let end = head.indexOf('\n'); end >= 0 && end < head.length - 1; end = head.indexOf('\n', end + 1)) {
    const at = end + 1;
    const first = head[at];
    // A bare LF, a fold, or a short or unusual spelling.
    if (head[end - 1] !== '\r' || first === ' ' || first === '\t' || first === 'l' || first === 'L' || first === 'c') return undefined;
    if (first !== 'C') continue;
    if (!head.startsWith(STATED, at)) {
      if (!PLAIN_HEADERS_IN_C.some((name) => head.startsWith(name, at))) return undefined;
      continue;
    }
    const text = head.slice(at + STATED.length, head.indexOf('\r\n', at));
    if (length !== undefined || !/^\d{1,9}$/.test(text)) return undefined;
    length = Number(text);
  }
  return length;
}

/**
 * RFC 3261 §18.3 requires it on streams: a message with a Content-Type but no length cannot be cut; one without Content-Type has no body.
 */
export function contentLength(head: string): number | 'missing' | 'bad' {
  let length: number | undefined;
  for (const match of head.matchAll(CONTENT_LENGTH)) {
    const digits = /^[ \t\r\n]*(\d{1,9})[ \t\r\n]*$/.exec(match[1] ?? '')?.[1];
    if (digits === undefined) return 'bad';
    const value = Number(digits);
    if (length !== undefined && length !== value) return 'bad';
    length = value;
  }
  if (length !== undefined) return length;
  return /\r\n(?:content-type|c)[ \t]*:/i.test(head) ? 'missing' : 0;
}
