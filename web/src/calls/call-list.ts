import type { Schemas } from '../../../src/client/index.js';

// The list of calls as it grows: those in progress on top, then those that ended, newest first.

export type Call = Schemas['Call'];

export interface CallList {
  readonly live: readonly Call[];
  /** Newest first, by their beginning. */
  readonly ended: readonly Call[];
  /** Where the next page begins; `null`: there is none; `undefined`: no page was read yet. */
  readonly next: string | null | undefined;
}

export interface CallPage {
  readonly calls: readonly Call[];
  readonly next: string | null;
}

export const NO_CALLS: CallList = { live: [], ended: [], next: undefined };

/** The order of the API: by beginning, then id, the newest first. */
function isNewer(one: Call, other: Call): boolean {
  return one.started_at === other.started_at ? one.call_id > other.call_id : one.started_at > other.started_at;
}

/** The newest page of ended calls was read again. */
export function withHead(list: CallList, page: CallPage): CallList {
  if (list.next === undefined || list.ended.length === 0) return { ...list, ended: page.calls, next: page.next };
  const known = new Set(list.ended.map(({ call_id: id }) => id));
  const fresh = page.calls.filter(({ call_id: id }) => !known.has(id));
  if (fresh.length === 0) return list;
  // All of it is new, and there is more: what lies between is not known, so the list begins anew.
  if (fresh.length === page.calls.length && page.next !== null) return { ...list, ended: page.calls, next: page.next };
  return { ...list, ended: merged(list.ended, fresh) };
}

/** The page behind the last one. */
export function withPage(list: CallList, page: CallPage): CallList {
  const known = new Set(list.ended.map(({ call_id: id }) => id));
  return { ...list, ended: [...list.ended, ...page.calls.filter(({ call_id: id }) => !known.has(id))], next: page.next };
}

/** Calls that ended and began longer ago than the newest page reaches; those that began before the last page come with a later one. */
export function withEnded(list: CallList, calls: readonly Call[]): CallList {
  const last = list.ended.at(-1);
  const known = new Set(list.ended.map(({ call_id: id }) => id));
  const fresh = calls.filter((call) => !known.has(call.call_id) && (list.next === null || last === undefined || isNewer(call, last)));
  return fresh.length === 0
    ? list
    : {
        ...list,
        ended: merged(
          list.ended,
          [...fresh].sort((a, b) => (isNewer(a, b) ? -1 : 1)),
        ),
      };
}

export function withLive(list: CallList, live: readonly Call[]): CallList {
  return { ...list, live };
}

/** Calls that were in progress, are not any more, and are not in the list yet. */
export function endedMeanwhile(list: CallList, live: CallPage): readonly string[] {
  // A page that has another behind it does not hold all calls in progress.
  if (live.next !== null) return [];
  const known = new Set([...live.calls, ...list.ended].map(({ call_id: id }) => id));
  return list.live.map(({ call_id: id }) => id).filter((id) => !known.has(id));
}

/** One call stands in it once: a call that has just ended may be in both for a moment. */
export function rowsOf({ live, ended }: CallList): readonly Call[] {
  if (live.length === 0) return ended;
  const over = new Set(ended.slice(0, 1_000).map(({ call_id: id }) => id));
  return [...live.filter(({ call_id: id }) => !over.has(id)), ...ended];
}

function merged(one: readonly Call[], other: readonly Call[]): readonly Call[] {
  const all: Call[] = [];
  let [i, j] = [0, 0];
  for (;;) {
    const [a, b] = [one[i], other[j]];
    if (a === undefined) return [...all, ...other.slice(j)];
    if (b === undefined) return [...all, ...one.slice(i)];
    if (isNewer(a, b)) i += 1;
    else j += 1;
    all.push(isNewer(a, b) ? a : b);
  }
}

/** Who called; calls that were refused together have no caller. */
export function callers({ from, summed_calls: summed }: Pick<Call, 'from' | 'summed_calls'>): string {
  return summed === null ? from : `${String(summed)} calls`;
}
