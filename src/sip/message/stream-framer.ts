/** What a stream yields. After `error` the stream is spoiled: close the connection. */
export type StreamItem =
  | { readonly type: 'message'; readonly text: string }
  /** CRLF CRLF: answer with one CRLF (RFC 5626 §4.4.1). */
  | { readonly type: 'ping' }
  /** A single CRLF: the answer to our ping. */
  | { readonly type: 'pong' }
  /** `head` is there when it was read whole: the request can be answered with `status` before the connection is closed. */
  | { readonly type: 'error'; readonly reason: string; readonly status: 400 | 413 | 513; readonly head: string | null };

export interface StreamLimits {
  /** Start line and headers together. */
  readonly maxHeadBytes: number;
  readonly maxBodyBytes: number;
}

const START_LINE = /^(?:SIP\/\d+\.\d+ \d{3} |[\w.!%*+`'~-]{1,64} \S+ SIP\/\d+\.\d+\r\n)/i;
const CONTENT_LENGTH = /\r\n(?:content-length|l)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)/gi;

/** Cuts a byte stream into SIP messages (RFC 3261 §18.3), whatever the pieces in which it arrives. */
export class StreamFramer {
  readonly #limits: StreamLimits;
  #pending = '';
  #spoiled = false;

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Whether a message has begun and is not complete: the time limit for its rest is running. */
  get isMidMessage(): boolean {
    return this.#pending !== '' && this.#pending !== '\r\n';
  }

  /** Takes the next bytes (as a byte string) and returns every item that is complete. */
  push(bytes: string): StreamItem[] {
    if (this.#spoiled) return [];
    this.#pending += bytes;
    const items: StreamItem[] = [];
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

  /** A lone CRLF that nothing followed within the read: the peer's pong. */
  #next(): StreamItem | undefined {
    const text = this.#pending;
    if (text.startsWith('\r\n')) {
      if (text.startsWith('\r\n\r\n')) return this.#take(4, { type: 'ping' });
      // `\r\n` and `\r\n\r` may become a ping; anything else after CRLF makes it a pong.
      if (text.length === 2 || text === '\r\n\r') return undefined;
      return this.#take(2, { type: 'pong' });
    }
    if (text === '' || text === '\r') return undefined;
    const headEnd = text.indexOf('\r\n\r\n');
    if (headEnd < 0) {
      if (text.length > this.#limits.maxHeadBytes) return spoiled('Headers Too Large', 513);
      return this.#looksLikeSip(text) ? undefined : spoiled('Not SIP', 400);
    }
    if (headEnd > this.#limits.maxHeadBytes) return spoiled('Headers Too Large', 513);
    if (!START_LINE.test(text)) return spoiled('Not SIP', 400);
    return this.#cut(text, headEnd);
  }

  #cut(text: string, headEnd: number): StreamItem | undefined {
    const head = text.slice(0, headEnd + 4);
    const length = contentLength(head);
    if (length === 'missing') return spoiled('Missing Content-Length', 400, head);
    if (length === 'bad') return spoiled('Bad Content-Length', 400, head);
    if (length > this.#limits.maxBodyBytes) return spoiled('Request Entity Too Large', 413, head);
    const end = headEnd + 4 + length;
    if (text.length < end) return undefined;
    return this.#take(end, { type: 'message', text: text.slice(0, end) });
  }

  #take(length: number, item: StreamItem): StreamItem {
    this.#pending = this.#pending.slice(length);
    return item;
  }

  /** Whether text without a whole head could still become a message: garbage is noticed before a limit is reached. */
  #looksLikeSip(text: string): boolean {
    const lineEnd = text.indexOf('\r\n');
    if (lineEnd >= 0) return START_LINE.test(text);
    return /^[\w.!%*+`'~/-]{1,64}(?: |$)/.test(text) && !text.includes('\0');
  }
}

function spoiled(reason: string, status: 400 | 413 | 513, head: string | null = null): StreamItem {
  return { type: 'error', reason, status, head };
}

/**
 * The stated length. RFC 3261 §18.3 demands one on streams: without it a message that names a body's type cannot be cut,
 * and one that does not has no body.
 */
function contentLength(head: string): number | 'missing' | 'bad' {
  let length: number | undefined;
  for (const match of head.matchAll(CONTENT_LENGTH)) {
    const text = match[1] ?? '';
    if (!/^\d{1,9}$/.test(text)) return 'bad';
    const value = Number(text);
    if (length !== undefined && length !== value) return 'bad';
    length = value;
  }
  if (length !== undefined) return length;
  return /\r\n(?:content-type|c)[ \t]*:/i.test(head) ? 'missing' : 0;
}
