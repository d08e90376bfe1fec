import { describe, expect, it } from 'vitest';
import {
  endedMeanwhile,
  NO_CALLS,
  rowsOf,
  withEnded,
  withHead,
  withLive,
  withPage,
  type Call,
  type CallList,
} from '../../../web/src/calls/call-list.js';
import { asksEnded, asksLive, filtersOf, queryOf, searchOf } from '../../../web/src/calls/filters.js';
import { isNearEnd, movedTo, windowOf } from '../../../web/src/calls/virtual-window.js';
import { endedCall } from '../../../src/gateway/api/schemas/calls-api.js';
import { callOf } from '../gateway/store/store-contract.js';

/** A call that began at this second. */
const at = (second: number, fields: Partial<Call> = {}): Call =>
  ({ ...endedCall(callOf('org', second * 1_000, { call_id: `c${String(second)}` })), ...fields }) as unknown as Call;
const ids = (calls: readonly Call[]): string[] => calls.map(({ call_id: id }) => id);
const page = (calls: readonly Call[], next: string | null = null) => ({ calls, next });
const read = (...seconds: number[]): CallList =>
  withHead(
    NO_CALLS,
    page(
      seconds.map((second) => at(second)),
      'more',
    ),
  );

describe('the list of calls', () => {
  it('takes the first page as it is, and puts new calls of a later read on top', () => {
    const list = withHead(read(5, 4, 3), page([at(7), at(6), at(5)], 'other'));
    expect(ids(list.ended)).toEqual(['c7', 'c6', 'c5', 'c4', 'c3']);
    expect(list.next).toBe('more');
  });

  it('is the same object when nothing is new, so that nothing is rendered again', () => {
    const list = read(5, 4);
    expect(withHead(list, page([at(5), at(4)], 'more'))).toBe(list);
  });

  it('starts anew when a whole page is new and more follows, since what lies between is unknown', () => {
    expect(withHead(read(3, 2, 1), page([at(9), at(8)], 'gap'))).toMatchObject({ ended: [at(9), at(8)], next: 'gap' });
    expect(ids(withHead(read(3, 2, 1), page([at(9), at(8)])).ended)).toEqual(['c9', 'c8', 'c3', 'c2', 'c1']);
  });

  it('appends a further page without the calls that it has', () => {
    const list = withPage(read(5, 4), page([at(4), at(3)]));
    expect(ids(list.ended)).toEqual(['c5', 'c4', 'c3']);
    expect(list.next).toBeNull();
  });

  it('replaces a long call by its end, or gets that with a later page', () => {
    const list = read(9, 7, 5);
    expect(ids(withEnded(list, [at(6)]).ended)).toEqual(['c9', 'c7', 'c6', 'c5']);
    expect(withEnded(list, [at(1)])).toBe(list);
    expect(ids(withEnded({ ...list, next: null }, [at(1)]).ended)).toEqual(['c9', 'c7', 'c5', 'c1']);
  });

  it('knows which calls in progress are over, but not when there are more than a page holds', () => {
    const list = withLive(read(5), [at(8), at(7), at(5)]);
    expect(endedMeanwhile(list, page([at(8)]))).toEqual(['c7']);
    expect(endedMeanwhile(list, page([at(8)], 'more'))).toEqual([]);
  });

  it('shows a call that is in both lists for a moment once, as ended', () => {
    const list = withLive(read(5, 4), [at(6, { state: 'in_progress' }), at(5, { state: 'in_progress' })]);
    expect(rowsOf(list).map(({ call_id: id, state }) => `${id} ${state}`)).toEqual(['c6 in_progress', 'c5 ended', 'c4 ended']);
  });
});

describe('the filters in the address', () => {
  it('return as they were written, without empty ones', () => {
    const filters = { ...filtersOf(''), phone_number: ' +1555 ', reason: 'BAD_SDP', state: 'ended' as const };
    expect(searchOf(filters)).toBe('phone_number=%2B1555&reason=BAD_SDP&state=ended');
    expect(filtersOf(searchOf(filters))).toEqual({ ...filters, phone_number: '+1555' });
    expect(queryOf(filtersOf(searchOf(filters)))).toEqual({ phone_number: '+1555', reason: 'BAD_SDP' });
  });

  it('request no call in progress by a reason, and no ended one when only those in progress are wanted', () => {
    expect([asksLive(filtersOf('reason=BAD_SDP')), asksEnded(filtersOf('reason=BAD_SDP'))]).toEqual([false, true]);
    expect([asksLive(filtersOf('state=live')), asksEnded(filtersOf('state=live'))]).toEqual([true, false]);
    expect(filtersOf('state=nonsense').state).toBe('all');
  });
});

describe('the visible window of a long list', () => {
  it('holds the visible rows and a few more, whatever the length', () => {
    expect(windowOf(0, 440, 44, 10_000)).toEqual({ first: 0, end: 22 });
    expect(windowOf(44_000, 440, 44, 10_000)).toEqual({ first: 988, end: 1_022 });
    expect(windowOf(439_560, 440, 44, 10_000)).toEqual({ first: 9_978, end: 10_000 });
    expect(windowOf(4_000, 440, 44, 3)).toEqual({ first: 3, end: 3 });
  });

  it('loads more before the end is visible', () => {
    expect(isNearEnd(0, 440, 44, 100)).toBe(false);
    expect(isNearEnd(3_500, 440, 44, 100)).toBe(true);
  });

  it('moves within the list by keys', () => {
    expect(['ArrowDown', 'ArrowUp', 'PageDown', 'Home', 'End', 'x'].map((key) => movedTo(key, 5, 100, 10))).toEqual([
      6,
      4,
      15,
      0,
      99,
      null,
    ]);
    expect([movedTo('ArrowUp', 0, 3, 10), movedTo('ArrowDown', 2, 3, 10), movedTo('ArrowDown', -1, 3, 10)]).toEqual([0, 2, 0]);
    expect(movedTo('End', -1, 0, 10)).toBeNull();
  });
});
