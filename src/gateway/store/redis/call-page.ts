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
}

/** The part of the index that a query is about. */
export function rangeOf({ sinceMs, untilMs, before }: CallQuery): IndexRange {
  const bounds = [...(before === undefined ? [] : [before]), ...(untilMs === undefined ? [] : [callIndexTime(untilMs)])];
  return { from: sinceMs === undefined ? '' : callIndexTime(sinceMs), to: bounds.sort()[0] ?? null };
}

function matches(record: Listed, { to, from, reason, sipCallId }: CallFilter): boolean {
  return (
    (to === undefined || record.to === to) &&
    (from === undefined || record.from === from) &&
    (reason === undefined || record.reason === reason) &&
    (sipCallId === undefined || record.sip_call_id === sipCallId)
  );
}

/** Reads the index downwards until the page is full, nothing is left, or enough was looked at for one request. */
export async function readPage<Call extends Listed>(
  query: CallQuery,
  read: (range: IndexRange, count: number) => Promise<readonly IndexedCall<Call>[]>,
): Promise<CallPage<Call>> {
  const calls: Call[] = [];
  let range = rangeOf(query);
  const isFiltered = [query.to, query.from, query.reason, query.sipCallId].some((condition) => condition !== undefined);
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
