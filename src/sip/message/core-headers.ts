import { parseHostPort, parseParams, parseNameAddr } from './uri.js';
import { err, ok, type Result } from '../../lib/result.js';
import { SIP_TOKEN } from '../../lib/sip-token.js';
import { getHeader, splitList, type SipMessage, type WithHeaders } from './message.js';

/** The mandatory headers (RFC 3261 §8.1.1), parsed once. */
export interface CoreHeaders {
  readonly topVia: Via;
  readonly callId: string;
  readonly cseq: { readonly number: number; readonly method: string };
  readonly from: string;
  readonly fromTag: string | undefined;
  readonly to: string;
  readonly toTag: string | undefined;
}

/** Reads and validates them. The error becomes the reason phrase of the 400. */
export function readCoreHeaders(message: SipMessage): Result<CoreHeaders, string> {
  const problem = problemOfSingles(message);
  if (problem !== null) return err(problem);
  const viaText = getHeader(message, 'via');
  if (viaText === undefined) return err('Missing Via Header');
  const topVia = parseVia(splitList(viaText)[0] ?? '');
  if (topVia === undefined) return err('Bad Via Header');
  const callId = getHeader(message, 'call-id');
  if (callId === undefined || callId === '') return err('Missing Call-ID Header');
  if (!CALL_ID.test(callId)) return err('Bad Call-ID Header');
  const cseq = parseCSeq(getHeader(message, 'cseq'));
  if (cseq === undefined) return err('Bad CSeq Header');
  if (message.kind === 'request' && cseq.method !== message.method) return err('CSeq Method Mismatch');
  const from = getHeader(message, 'from');
  const to = getHeader(message, 'to');
  if (from === undefined) return err('Missing From Header');
  if (to === undefined) return err('Missing To Header');
  const fromTag = readTag(from);
  const toTag = readTag(to);
  if (!fromTag.ok) return err('Bad From Header');
  if (!toTag.ok) return err('Bad To Header');
  return ok({ topVia, callId, cseq, from, fromTag: fromTag.value, to, toTag: toTag.value });
}

// Call-ID and tags are compared and sent back, never read: what peers put there beside the words and tokens of RFC 3261 §25.1, such as the
// `=` of base64, is taken. Not `|`, which separates the fields of the control protocol's frames.
export const CALL_ID = /^[!-{}~]+$/;
/** Nor `<` and `>`, which enclose the address before it. */
const TAG = /^[!-;=?-{}~]+$/;

const SINGLE = new Set(['call-id', 'cseq', 'from', 'to', 'max-forwards', 'content-length']);

/** RFC 4475 §3.3.8: rejects repeated single-value headers. */
function problemOfSingles(message: SipMessage): string | null {
  let mask = '';
  for (const { id, value } of message.headers) {
    if (!SINGLE.has(id)) continue;
    if (id === 'max-forwards' && !isMaxForwards(value)) return 'Bad Max-Forwards Header';
    if (mask.includes(`|${id}|`)) return `Multiple ${id} Headers`;
    mask += `|${id}|`;
  }
  return null;
}

/** RFC 3261 §20.22: 0 to 255. */
export function isMaxForwards(value: string): boolean {
  return /^\d{1,10}$/.test(value) && Number(value) <= 255;
}

/** `undefined` if a From or To has no tag. */
function readTag(value: string): Result<string | undefined, 'unreadable'> {
  const address = parseNameAddr(value);
  const tag = address?.params.get('tag') ?? '';
  if (address === undefined || (tag !== '' && !TAG.test(tag))) return err('unreadable');
  return ok(tag === '' ? undefined : tag);
}

/** RFC 3261 §8.1.1.5: the number is below 2^31. */
export function parseCSeq(text: string | undefined): { number: number; method: string } | undefined {
  const [, digits, method = ''] = /^(\d{1,10})[ \t]+(\S+)$/.exec(text ?? '') ?? [];
  const number = Number(digits);
  return number < 2 ** 31 && SIP_TOKEN.test(method) ? { number, method } : undefined;
}

/** For a message whose CSeq was validated, or is ours. */
export function cseqNumber(message: WithHeaders): number {
  return parseCSeq(getHeader(message, 'cseq'))?.number ?? 1;
}

/** One Via value (RFC 3261 §20.42). */
export interface Via {
  readonly text: string;
  /** Upper case: `TLS`, `TCP`, `UDP`, … */
  readonly transport: string;
  /** Sent-by; the host without brackets, in lower case. */
  readonly host: string;
  readonly port: number | null;
  /** '' if absent. */
  readonly branch: string;
  readonly params: ReadonlyMap<string, string>;
}

/** The top Via of a message that we wrote. */
export function topViaOf(text: string): Via | undefined {
  return parseVia(/^Via: (.*?)\r?$/m.exec(text)?.[1] ?? '');
}

/** `;` with nothing after it (RFC 4475 §3.1.2.1). */
const EMPTY_PARAMETER = /;[ \t]*(?:;|$)/;

/** RFC 3261 §8.1.1.7: marks a globally unique branch. */
const MAGIC_COOKIE = 'z9hG4bK';

export function parseVia(text: string): Via | undefined {
  const match = /^SIP[ \t]*\/[ \t]*2\.0[ \t]*\/[ \t]*([A-Za-z0-9.!%*_+`'~-]+)[ \t]+([^; \t]+(?:[ \t]*:[ \t]*\d+)?)[ \t]*(;[\s\S]*)?$/i.exec(
    text,
  );
  if (match === null || EMPTY_PARAMETER.test(match[3] ?? '')) return undefined;
  const sentBy = parseHostPort(match[2] ?? '');
  if (sentBy === undefined) return undefined;
  const params = parseParams(match[3] ?? '');
  const { host, port } = sentBy;
  return { text, transport: (match[1] ?? '').toUpperCase(), host, port, branch: params.get('branch') ?? '', params };
}

/**
 * The Via value as received: `received` if the source address differs from sent-by (RFC 3261 §18.2.1), `rport` filled in if requested
 * (RFC 3581 §4). Unchanged if neither applies.
 */
export function stampVia(via: Via, source: { readonly address: string; readonly port: number }): string {
  let stamped = via.text;
  if (via.host === source.address && !/rport/i.test(stamped)) return stamped;
  const asked = via.params.get('rport') === '';
  if (asked) stamped = stamped.replace(/;\s*rport(?=\s*(;|$))/i, `;rport=${String(source.port)}`);
  if ((asked || via.host !== source.address) && !via.params.has('received')) stamped += `;received=${source.address}`;
  return stamped;
}

/**
 * Key of the server transaction (RFC 3261 §17.2.3): branch, sent-by and method; for ACK and CANCEL pass `INVITE` as `method` to find the
 * INVITE. Without the magic cookie, the RFC 2543 rules. Joined, not added up: V8 then hashes one flat string, which keeps no message in memory.
 */
export function serverTransactionKey(core: CoreHeaders, method: string, requestUri: string): string {
  const { branch } = core.topVia;
  const sentBy = `${core.topVia.host}:${String(core.topVia.port ?? '')}`;
  if (branch.startsWith(MAGIC_COOKIE) && branch.length > MAGIC_COOKIE.length) return [branch, sentBy, method].join('|');
  return ['2543', requestUri, core.callId, String(core.cseq.number), core.fromTag ?? '', sentBy, branch, method].join('|');
}

/** Key of the client transaction of a response (RFC 3261 §17.1.3). */
export function clientTransactionKey(core: CoreHeaders): string {
  return `${core.topVia.branch}|${core.cseq.method}`;
}

/** Requests with one key and different branches are merged copies of one request (RFC 3261 §8.2.2.2). */
export function mergeKey(core: CoreHeaders): string {
  return `${core.callId}|${core.fromTag ?? ''}|${String(core.cseq.number)}|${core.cseq.method}`;
}
