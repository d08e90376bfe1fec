import { err, ok, type Result } from '../../lib/result.js';
import { SIP_TOKEN } from '../../lib/sip-token.js';
import { getHeader, splitList, type SipMessage, type WithHeaders } from './message.js';
import { parseNameAddr } from './name-addr.js';
import { parseVia, type Via } from './via.js';

/** The headers that every message must have (RFC 3261 §8.1.1), read once. */
export interface CoreHeaders {
  readonly topVia: Via;
  readonly callId: string;
  readonly cseq: { readonly number: number; readonly method: string };
  readonly from: string;
  readonly fromTag: string | undefined;
  readonly to: string;
  readonly toTag: string | undefined;
}

/** Reads and checks them. The error is a sentence for the 400's reason phrase. */
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

// RFC 3261 §25.1: word [ "@" word ]. What is outside of it (`|` above all) would break the lines that carry it on.
export const CALL_ID = /^[\w.!%*+`'~()<>:\\"/[\]?{}@-]+$/;

const SINGLE = new Set(['call-id', 'cseq', 'from', 'to', 'max-forwards', 'content-length']);

/** RFC 4475 §3.3.8: several values of a header that has one are an error, not a choice. */
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

/** The tag of a From or To; `undefined` when it has none. */
function readTag(value: string): Result<string | undefined, 'unreadable'> {
  const address = parseNameAddr(value);
  const tag = address?.params.get('tag') ?? '';
  if (address === undefined || (tag !== '' && !SIP_TOKEN.test(tag))) return err('unreadable');
  return ok(tag === '' ? undefined : tag);
}

/** RFC 3261 §8.1.1.5: the number is below 2^31. */
export function parseCSeq(text: string | undefined): { number: number; method: string } | undefined {
  const [, digits, method = ''] = /^(\d{1,10})[ \t]+(\S+)$/.exec(text ?? '') ?? [];
  const number = Number(digits);
  return number < 2 ** 31 && SIP_TOKEN.test(method) ? { number, method } : undefined;
}

/** The CSeq number of a message whose CSeq was read before, or is ours. */
export function cseqNumber(message: WithHeaders): number {
  return parseCSeq(getHeader(message, 'cseq'))?.number ?? 1;
}
