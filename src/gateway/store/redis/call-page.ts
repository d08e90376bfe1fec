import { parseE164 } from '../../model/e164.js';
import { callIndexTime } from '../../ports/listing.js';
import { MAX_PAGE_BYTES, MAX_SCANNED_CALLS, type CallFilter, type CallPage, type CallQuery } from '../../ports/stores.js';

// The rules of listing calls, apart from where they are kept.

const READ_AT_ONCE = 50;

/** A stretch of an organization's index, by members: above `from` or at it, below `to`. */
export interface IndexRange {
  readonly from: string;
  readonly to: string | null;
}

/** One index entry; the record may have expired before it. */
export interface IndexedCall<Call> {
  readonly member: string;
  readonly record: Call | null;
  /** What was read of it. */
  readonly bytes: number;
}

/** What a call is looked at for. */
interface Listed {
  readonly to: string;
  readonly from: string;
  readonly reason?: string;
  readonly sip_call_id: string;
  readonly parent_call_id?: string | null;
  /** Left out: it is in progress. */
  readonly ended_at?: string;
}

/** The part of the index that a query is about. */
export function rangeOf({ sinceMs, untilMs, before }: CallQuery): IndexRange {
  const bounds = [...(before === undefined ? [] : [before]), ...(untilMs === undefined ? [] : [callIndexTime(untilMs)])];
  return { from: sinceMs === undefined ? '' : callIndexTime(sinceMs), to: bounds.sort()[0] ?? null };
}

function matches(record: Listed, query: CallFilter): boolean {
  const { to, from, reason, sipCallId, parentCallId } = query;
  return (
    (to === undefined || record.to === to) &&
    (from === undefined || record.from === from || record.from === parseE164(from)) &&
    (reason === undefined || record.reason === reason) &&
    (sipCallId === undefined || record.sip_call_id === sipCallId) &&
    (parentCallId === undefined || record.parent_call_id === parentCallId) &&
    endedWithin(record, query)
  );
}

function endedWithin({ ended_at: endedAt }: Listed, { endedSinceMs: since, endedUntilMs: until }: CallFilter): boolean {
  if (since === undefined && until === undefined) return true;
  const ms = endedAt === undefined ? NaN : Date.parse(endedAt);
  return ms >= (since ?? -Infinity) && ms < (until ?? Infinity);
}

/** Reads the index downwards until the page is full, nothing is left, or enough was looked at for one request. */
export async function readPage<Call extends Listed>(
  query: CallQuery,
  read: (range: IndexRange, count: number) => Promise<readonly IndexedCall<Call>[]>,
): Promise<CallPage<Call>> {
  const calls: Call[] = [];
  let range = rangeOf(query);
  const { limit: _limit, before: _before, sinceMs: _since, untilMs: _until, ...conditions } = query;
  const isFiltered = Object.keys(conditions).length > 0;
  for (let scanned = 0, bytes = 0; scanned < MAX_SCANNED_CALLS && bytes < MAX_PAGE_BYTES;) {
    const count = isFiltered ? READ_AT_ONCE : Math.min(READ_AT_ONCE, query.limit - calls.length);
    const entries = await read(range, count);
    for (const { member, record } of entries) {
      range = { ...range, to: member };
      if (record === null || !matches(record, query)) continue;
      calls.push(record);
      if (calls.length >= query.limit) return { calls, next: member };
    }
    if (entries.length < count) return { calls, next: null };
    scanned += entries.length;
    bytes += entries.reduce((sum, entry) => sum + entry.bytes, 0);
  }
  return { calls, next: range.to };
}
