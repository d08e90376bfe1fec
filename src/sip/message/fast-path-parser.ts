import { SIP_TOKEN } from '../../lib/sip-token.js';
import { CALL_ID, isMaxForwards, parseCSeq, type CoreHeaders, stampVia, type Via } from './core-headers.js';
import { canonicalHeaderName, headerId, isLws, type Header, type KnownHeaders, type SipRequest, type SipResponse } from './message.js';
import { readHeaders, type MessageLimits } from './parse.js';
import type { OwnHeaders, Peer, Reception } from './reception.js';
import { parseParams } from './uri.js';

// Parses messages in their usual spelling, unfolded, in one pass; keeps the text and finds only the headers that the server needs, the
// others on demand. Everything else goes to `parse.ts`, so this file decides no validity.

/** Headers located in the pass; the index is the code. */
const TRACKED = [
  'via',
  'from',
  'to',
  'call-id',
  'cseq',
  'contact',
  'max-forwards',
  'content-length',
  'content-type',
  'user-agent',
  'route',
  'record-route',
  'require',
  'supported',
  'session-expires',
  'subscription-state',
  'rack',
  'rseq',
  'expires',
  'timestamp',
] as const;

type TrackedId = (typeof TRACKED)[number];

const CODES: ReadonlyMap<string, number> = new Map(TRACKED.map((id, code) => [id, code]));
const code = (id: TrackedId): number => TRACKED.indexOf(id);
const VIA = code('via');
const FROM = code('from');
const TO = code('to');
const CALL_ID_CODE = code('call-id');
const CSEQ = code('cseq');
const MAX_FORWARDS = code('max-forwards');
const CONTENT_LENGTH = code('content-length');

/** By first letter: usual spellings of the tracked headers, colon included, and their codes. */
const SPELLINGS: readonly (readonly [string, number])[][] = Array.from({ length: 128 }, () => []);
TRACKED.forEach((id, index) => {
  const spelling = `${canonicalHeaderName(id)}:`;
  SPELLINGS[spelling.charCodeAt(0)]?.push([spelling, index]);
});

/** 1 to 65535. */
const PORT = /[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]/.source;
const REQUEST_LINE = new RegExp(
  `^([A-Z]{1,32}) (sips?:(?:[\\w.!~*'()&=+$,;/%-]{1,200}@)?[a-z0-9_]+(?:[.-][a-z0-9_]+)*(?::(?:${PORT}))?(?:;[\\w.-]+(?:=[\\w.-]+)?)*)$`,
  'i',
);
const VERSION = ' SIP/2.0';
const STATUS_LINE = /^SIP\/2\.0 ([1-6]\d\d) ([^\0\r\n]*)$/;
const FAST_VIA = new RegExp(
  `^SIP/2\\.0/(UDP|TCP|TLS) ([a-z0-9_]+(?:[.-][a-z0-9_]+)*)(?::(${PORT}))?((?:;[\\w.-]+(?:=[\\w.:+*%!\`'~-]+)?)*)$`,
);
const FAST_ADDRESS = /^(?:"[^"\\<>]*" ?|[\w .!%*+`'~-]*)<[^<>\s"]+>(?:;tag=([\w.!%*+`'~-]+))?$/;

class FastMessage {
  #headers: readonly Header[] | undefined;

  constructor(
    readonly kind: 'request' | 'response',
    readonly method: string,
    readonly uri: string,
    readonly status: number,
    readonly reason: string,
    readonly received: Received,
  ) {}

  // On the prototype, so that a copy made with `...` has neither and its own headers and body count.
  get wire(): string {
    return this.received.text;
  }

  get known(): KnownHeaders {
    return this.received;
  }

  get body(): string {
    return this.received.text.slice(this.received.bodyStart);
  }

  get headers(): readonly Header[] {
    if (this.#headers === undefined) {
      const headers: Header[] = [];
      const { text, headersStart, bodyStart } = this.received;
      readHeaders(text, headersStart, bodyStart - 4, NO_LIMITS, headers);
      this.#headers = headers;
    }
    return this.#headers;
  }
}

const NO_LIMITS: MessageLimits = { maxHeaders: Infinity, maxHeaderBytes: Infinity, maxBodyBytes: Infinity };

/** The text, and the positions of the tracked headers. */
class Received implements KnownHeaders {
  bodyStart = 0;
  /** Code, start and end of the value of each tracked header. */
  readonly marks: number[] = [];

  constructor(
    public text: string,
    readonly headersStart: number,
  ) {}

  /** Replaces the first Via value with `via` and appends `lines` to the headers. The text is a flat copy then. */
  rewrite(via: string, lines: string): void {
    const { text, marks } = this;
    const at = this.#markOf(VIA);
    const end = marks[at + 2] ?? 0;
    const shift = via.length - (end - (marks[at + 1] ?? 0));
    const headersEnd = this.bodyStart - 2;
    this.text = [text.slice(0, marks[at + 1]), via, text.slice(end, headersEnd), lines, text.slice(headersEnd)].join('');
    this.bodyStart += shift + lines.length;
    for (let index = 0; index < marks.length; index += 3) {
      if ((marks[index + 1] ?? 0) >= end) marks[index + 1] = (marks[index + 1] ?? 0) + shift;
      if ((marks[index + 2] ?? 0) >= end) marks[index + 2] = (marks[index + 2] ?? 0) + shift;
    }
  }

  knows(id: string): boolean {
    return CODES.has(id);
  }

  first(id: string): string | undefined {
    return this.firstOf(CODES.get(id) ?? -1);
  }

  firstOf(wanted: number): string | undefined {
    const at = this.#markOf(wanted);
    return at < 0 ? undefined : this.text.slice(this.marks[at + 1], this.marks[at + 2]);
  }

  all(id: string): string[] {
    const wanted = CODES.get(id) ?? -1;
    const values: string[] = [];
    const { marks } = this;
    for (let at = 0; at < marks.length; at += 3) if (marks[at] === wanted) values.push(this.text.slice(marks[at + 1], marks[at + 2]));
    return values;
  }

  countOf(wanted: number): number {
    let count = 0;
    for (let at = 0; at < this.marks.length; at += 3) if (this.marks[at] === wanted) count += 1;
    return count;
  }

  #markOf(wanted: number): number {
    const { marks } = this;
    for (let at = 0; at < marks.length; at += 3) if (marks[at] === wanted) return at;
    return -1;
  }
}

export interface FastParsed {
  readonly message: SipRequest | SipResponse;
  readonly core: CoreHeaders;
}

/** Parses a message from `peer` on the fast path; `undefined`: use the slow path, which judges validity. */
export function parseFast(text: string, peer: Peer, reception: Reception): FastParsed | undefined {
  const lineEnd = text.indexOf('\r\n');
  const line = text.slice(0, lineEnd);
  // Another case is the same version (RFC 3261 §7.1), but applications may not read it: the slow path normalizes it.
  const request = line.endsWith(VERSION) ? REQUEST_LINE.exec(line.slice(0, -VERSION.length)) : null;
  const status = request === null ? STATUS_LINE.exec(line) : null;
  if (request === null && status === null) return undefined;
  const received = new Received(text, lineEnd + 2);
  if (!findHeaders(received, reception)) return undefined;
  const method = request?.[1] ?? null;
  if (method !== null && !stamp(received, peer, method, reception.own)) return undefined;
  if (received.text === text && isKept(text)) received.text = flatten(text);
  const core = readCore(received, method);
  if (core === undefined) return undefined;
  const message =
    method === null
      ? new FastMessage('response', '', '', Number(status?.[1]), status?.[2] ?? '', received)
      : new FastMessage('request', method, received.text.slice(method.length + 1, lineEnd - VERSION.length), 0, '', received);
  return { message: message as SipRequest | SipResponse, core };
}

/** Adds what the receiver adds to a request; false if that needs the slow path. */
function stamp(received: Received, peer: Peer, method: string, own: OwnHeaders): boolean {
  const via = FAST_VIA.exec(received.firstOf(VIA) ?? '');
  const to = FAST_ADDRESS.exec(received.firstOf(TO) ?? '');
  if (via === null || to === null) return false;
  const stamped = stampVia(new FastVia(via), peer.remote);
  const added = own.of(peer, method, to[1]);
  if (stamped !== via[0] || added.length > 0) received.rewrite(stamped, added.map(({ line }) => `${line}\r\n`).join(''));
  return true;
}

/** A dialog keeps parts of these: they get flat copies that hold no larger text in memory. */
function isKept(text: string): boolean {
  return text.startsWith('INVITE ') || text.startsWith('SUBSCRIBE ') || text.startsWith('SIP/2.0 2');
}

/** One pass over the lines; false if one needs the slow path. */
function findHeaders(received: Received, { limits, own }: Reception): boolean {
  const { text, marks } = received;
  let count = 0;
  for (let position = received.headersStart; ;) {
    const lineEnd = text.indexOf('\n', position) - 1;
    // A bare CR or LF, or no end.
    if (text.indexOf('\r', position) !== lineEnd) return false;
    if (lineEnd === position) {
      received.bodyStart = position + 2;
      return isFastBody(received, limits);
    }
    count += 1;
    if (count > limits.maxHeaders || lineEnd - position > limits.maxHeaderBytes) return false;
    const found = findName(text, position, own.ids);
    if (found === -2) return false;
    if (found >= 0) {
      let start = position + (LENGTHS[found] ?? 0);
      let end = lineEnd;
      while (isLws(text.charCodeAt(start))) start += 1;
      while (end > start && isLws(text.charCodeAt(end - 1))) end -= 1;
      marks.push(found, start, end);
    }
    position = lineEnd + 2;
  }
}

const LENGTHS = TRACKED.map((id) => id.length + 1);

/** Code of the header at `position`; -1: not tracked; -2: needs the slow path. */
function findName(text: string, position: number, ownIds: ReadonlySet<string>): number {
  for (const [spelling, index] of SPELLINGS[text.charCodeAt(position)] ?? []) if (text.startsWith(spelling, position)) return index;
  const name = text.slice(position, text.indexOf(':', position));
  // A folded line begins with white space, and one without a colon reaches into the next: neither is a token.
  if (!SIP_TOKEN.test(name)) return -2;
  const id = headerId(name);
  return !CODES.has(id) && !ownIds.has(id) ? -1 : -2;
}

function isFastBody(received: Received, limits: MessageLimits): boolean {
  const { text, bodyStart } = received;
  const size = text.length - bodyStart;
  // NUL is valid only in quoted strings, which the slow path checks.
  const nul = text.indexOf('\0');
  if (size > limits.maxBodyBytes || (nul >= 0 && nul < bodyStart)) return false;
  return received.countOf(CONTENT_LENGTH) === 1 && received.firstOf(CONTENT_LENGTH) === String(size);
}

function readCore(received: Received, method: string | null): CoreHeaders | undefined {
  const via = FAST_VIA.exec(received.firstOf(VIA) ?? '');
  const callId = received.firstOf(CALL_ID_CODE) ?? '';
  const cseq = parseCSeq(received.firstOf(CSEQ));
  const from = received.firstOf(FROM) ?? '';
  const to = received.firstOf(TO) ?? '';
  const fromParts = FAST_ADDRESS.exec(from);
  const toParts = FAST_ADDRESS.exec(to);
  if (via === null || cseq === undefined || fromParts === null || toParts === null) return undefined;
  if (!CALL_ID.test(callId) || (method !== null && cseq.method !== method) || !areSingle(received)) return undefined;
  const maxForwards = received.firstOf(MAX_FORWARDS);
  if (maxForwards !== undefined && !isMaxForwards(maxForwards)) return undefined;
  return { topVia: new FastVia(via), callId, cseq, from, fromTag: fromParts[1], to, toTag: toParts[1] };
}

function areSingle(received: Received): boolean {
  return (
    received.countOf(CALL_ID_CODE) === 1 &&
    received.countOf(CSEQ) === 1 &&
    received.countOf(FROM) === 1 &&
    received.countOf(TO) === 1 &&
    received.countOf(MAX_FORWARDS) <= 1
  );
}

/** A Via with parameters parsed on demand. */
class FastVia implements Via {
  readonly text: string;
  readonly transport: string;
  readonly host: string;
  readonly port: number | null;
  readonly branch: string;
  readonly #parameters: string;
  #params: ReadonlyMap<string, string> | undefined;

  constructor(match: RegExpExecArray) {
    this.text = match[0];
    this.transport = match[1] ?? '';
    this.host = (match[2] ?? '').toLowerCase();
    this.port = match[3] === undefined ? null : Number(match[3]);
    this.#parameters = match[4] ?? '';
    this.branch = branchIn(this.#parameters) ?? this.params.get('branch') ?? '';
  }

  get params(): ReadonlyMap<string, string> {
    this.#params ??= parseParams(this.#parameters);
    return this.#params;
  }
}

/** The branch, if it comes first and nothing else could be one. */
function branchIn(parameters: string): string | undefined {
  if (!parameters.startsWith(';branch=')) return undefined;
  const end = parameters.indexOf(';', 8);
  if (end < 0) return parameters.slice(8);
  return /branch/i.test(parameters.slice(end)) ? undefined : parameters.slice(8, end);
}

/** A flat copy: a slice would keep the whole text in memory. */
export function flatten(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** The same for several, in one copy. */
export function flattenAll(texts: readonly string[]): string[] {
  const copy = flatten(texts.join(''));
  let end = 0;
  return texts.map((text) => copy.slice(end, (end += text.length)));
}
