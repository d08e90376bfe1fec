import { describe, expect, it, vi } from 'vitest';
import {
  completeEvent,
  dayOf,
  endOf,
  isAbandoned,
  isAbandonedTooOften,
  lifecycleEvent,
  outcomeOf,
  type BatchCounts,
  type EndOfCall,
} from '../../../../src/gateway/model/batch.js';
import { callingHoursSchema, isTimeZone, nextCallableMs, WEEKDAYS } from '../../../../src/gateway/model/calling-hours.js';
import { parseE164, type E164 } from '../../../../src/gateway/model/e164.js';
import { zonesOf } from '../../../../src/gateway/model/number-zones.js';
import { PLAN } from '../../../support/batch-world.js';
import { callOf } from '../store/store-contract.js';

const number = (text: string): E164 => parseE164(text)!;
const at = (text: string): number => Date.parse(text);

describe('the time zones of a number', () => {
  it.each([
    ['+4930123456', ['Europe/Berlin']],
    ['+12125550100', ['America/New_York']],
    ['+13105550100', ['America/Los_Angeles']],
    ['+815012345678', ['Asia/Tokyo']],
    ['+34912345678', ['Europe/Madrid']],
  ])('of %s are %j', (text, zones) => {
    expect(zonesOf(number(text))).toEqual(zones);
  });

  it('are all those of its longest known prefix, and none for one without a country', () => {
    expect(zonesOf(number('+61212345678'))).toContain('Australia/Sydney');
    expect(zonesOf(number('+18005550100')).length).toBeGreaterThan(20);
    expect(zonesOf(number('+88213000000'))).toEqual([]);
  });
});

describe('the calling hours', () => {
  const hours = { from: '09:00', to: '20:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const };

  it.each([
    ['within them', ['Europe/Berlin'], '2026-07-01T10:00:00Z', '2026-07-01T10:00:00Z'],
    ['before them', ['Europe/Berlin'], '2026-07-01T06:58:00Z', '2026-07-01T07:00:00Z'],
    ['after them', ['Europe/Berlin'], '2026-07-01T18:00:00Z', '2026-07-02T07:00:00Z'],
    ['on a Saturday evening', ['Europe/Berlin'], '2026-07-04T19:00:00Z', '2026-07-06T07:00:00Z'],
    ['when the clocks change to winter', ['Europe/Berlin'], '2026-10-24T19:00:00Z', '2026-10-26T08:00:00Z'],
    ['in two zones at once', ['America/New_York', 'America/Los_Angeles'], '2026-07-01T13:00:00Z', '2026-07-01T16:00:00Z'],
  ])('allow the right next time %s', (_what, zones, now, next) => {
    expect(new Date(nextCallableMs(zones, hours, at(now)) ?? 0).toISOString()).toBe(new Date(next).toISOString());
  });

  it('never come without a zone, or in zones that have none in common', () => {
    expect(nextCallableMs([], hours, at('2026-07-01T10:00:00Z'))).toBeNull();
    expect(nextCallableMs(zonesOf(number('+18005550100')), hours, at('2026-07-01T10:00:00Z'))).toBeNull();
    expect(
      nextCallableMs(['Europe/Berlin', 'Pacific/Auckland'], { ...hours, to: '18:00', days: ['mon'] }, at('2026-07-01T10:00:00Z')),
    ).toBeNull();
  });

  it('end after their last minute, and begin with their first', () => {
    const zones = ['Europe/Berlin'];
    const [from, to] = [at('2026-07-01T07:00:00Z'), at('2026-07-01T18:00:00Z')];
    for (const nowMs of [from, to - 1]) expect(nextCallableMs(zones, hours, nowMs)).toBe(nowMs);
    expect(nextCallableMs(zones, hours, from - 1)).toBe(from);
    // A Monday is in the search from a Monday evening on.
    const mondays = { ...hours, days: ['mon'] as const };
    expect(nextCallableMs(zones, mondays, at('2026-07-06T18:00:00Z'))).toBe(at('2026-07-13T07:00:00Z'));
  });

  it.each([
    ['23:59', '24:00', true],
    ['00:00', '00:01', true],
    ['09:00', '09:00', false],
    ['10:00', '09:00', false],
    ['24:00', '24:00', false],
    ['9:00', '20:00', false],
    ['09:60', '20:00', false],
    ['09:00', '24:01', false],
    ['09:00:00', '20:00', false],
    ['x09:00', '20:00', false],
    ['09:00', 'x20:00', false],
    ['09:00', '20:00x', false],
  ])('may be from %s to %s: %s', (from, to, isValid) => {
    expect(callingHoursSchema.safeParse({ from, to, days: ['mon'] }).success).toBe(isValid);
  });

  it('need days, and none twice', () => {
    const isValid = (days: readonly string[]) => callingHoursSchema.safeParse({ from: '09:00', to: '20:00', days }).success;
    expect([['mon', 'sun'], [], ['mon', 'mon'], ['monday']].map(isValid)).toEqual([true, false, false, false]);
  });

  it('use existing time zones', () => {
    expect(['Europe/Berlin', 'UTC', 'Mars/Olympus', ''].map(isTimeZone)).toEqual([true, true, false, false]);
    // An offset has no summer time, and there are thousands of them to remember.
    expect(['+01:00', '-0330', 'europe/BERLIN'].map(isTimeZone)).toEqual([false, false, true]);
  });

  it('parse a time zone once for all its spellings', () => {
    const made = vi.spyOn(Intl, 'DateTimeFormat');
    const name = 'Pacific/Chatham';
    for (let at = 0; at < name.length; at += 1) isTimeZone(name.slice(0, at) + name.slice(at).toUpperCase());
    expect(made.mock.calls.length).toBeLessThanOrEqual(1);
    made.mockRestore();
  });

  it('may be the whole day', () => {
    const always = { from: '00:00', to: '24:00', days: WEEKDAYS };
    const nowMs = at('2026-07-05T23:59:59Z');
    expect(nextCallableMs(['Pacific/Kiritimati', 'Pacific/Pago_Pago'], always, nowMs)).toBe(nowMs);
  });
});

const END: EndOfCall = { reason: 'BUSY', isAnswered: false, talkMs: 0, isDialled: true, silentMs: null, isMachine: false };

describe('the outcome of a call in a batch', () => {
  const entry = { number: number('+4930123456') };
  const plan = { ...PLAN, retries: { BUSY: { times: 2, after_seconds: 60 } } };

  it.each([
    ['an answered one', { isAnswered: true, talkMs: 5_000, silentMs: 300, reason: 'CALLEE_HANGUP' }, 'successful'],
    ['one without speech', { isAnswered: true, talkMs: 5_000, silentMs: null, reason: 'CALLEE_HANGUP' }, 'failed'],
    ['one without a rule', { reason: 'NO_ANSWER' }, 'failed'],
    ['one with a rule', { reason: 'BUSY' }, 'again'],
    ['one whose outcome is unknown', { reason: 'DIAL_AMBIGUOUS' }, 'ambiguous'],
    ['one whose INVITE never left', { reason: 'MEDIA_UNAVAILABLE', isDialled: false }, 'again'],
    ['one that was lost after its INVITE left', { reason: 'MEDIA_UNAVAILABLE' }, 'failed'],
    ['one on the do-not-call list', { reason: 'DO_NOT_CALL', isDialled: false }, 'failed'],
  ] as const)('is right for %s', (_what, end, kind) => {
    expect(outcomeOf({ ...END, ...end }, entry, plan, 0).kind).toBe(kind);
  });

  it('follows a rule as often as it says, and for its reason alone', () => {
    const first = outcomeOf(END, entry, plan, 1_000);
    expect(first).toEqual({ kind: 'again', dueMs: 61_000, entry: { ...entry, ended: { BUSY: 1 } } });
    expect(outcomeOf(END, { ...entry, ended: { BUSY: 1, NO_ANSWER: 5 } }, plan, 0).kind).toBe('again');
    expect(outcomeOf(END, { ...entry, ended: { BUSY: 2 } }, plan, 0)).toEqual({ kind: 'failed', reason: 'BUSY' });
  });

  it.each([
    [0, 10_000],
    [1, 20_000],
    [8, 2_560_000],
    [9, 3_600_000],
    [99, 3_600_000],
  ])('is another attempt when the INVITE never left, after %i earlier ones, in %i ms', (times, delayMs) => {
    const before = { ...entry, ended: { DRAINING: times } };
    const end = { ...END, reason: 'DRAINING' as const, isDialled: false };
    expect(outcomeOf(end, before, plan, 7)).toEqual({
      kind: 'again',
      dueMs: 7 + delayMs,
      entry: { ...entry, ended: { DRAINING: times + 1 } },
    });
  });

  it('is a failure after a hundred INVITEs that never left', () => {
    const end = { ...END, reason: 'DRAINING' as const, isDialled: false };
    expect(outcomeOf(end, { ...entry, ended: { DRAINING: 100 } }, plan, 0)).toEqual({ kind: 'failed', reason: 'DRAINING' });
  });

  it('is read from its record, and from its owner if that is still there', () => {
    const record = callOf('o', 0, { reason: 'CALLEE_HANGUP', answered_at: '2026-01-01T00:00:00.000Z', answered_by: 'fax' });
    const timed = { ...record, timings: { ...record.timings, talk_ms: 5_000 }, turns: { ...record.turns, first_audio_ms: 300 } };
    const end = { reason: 'CALLEE_HANGUP', isAnswered: true, talkMs: 5_000, isDialled: true, silentMs: 300, isMachine: true };
    expect(endOf(timed)).toEqual(end);
    expect(endOf(timed, { isDialled: false, silentMs: null })).toEqual({ ...end, isDialled: false, silentMs: null });
    const { timings } = record;
    expect(endOf({ ...timed, answered_by: 'machine', timings: { ...timings, talk_ms: null } })).toMatchObject({
      isMachine: true,
      talkMs: 0,
    });
    expect([endOf({ ...timed, answered_by: 'person' }).isMachine, endOf({ ...timed, answered_by: null }).isMachine]).toEqual([
      false,
      false,
    ]);
  });

  it('counts as dialled when the record alone does not say', () => {
    expect(endOf(callOf('o', 0, { reason: 'MEDIA_UNAVAILABLE', answered_at: null })).isDialled).toBe(true);
    for (const reason of ['DIAL_NOT_ALLOWED', 'DO_NOT_CALL'])
      expect(endOf(callOf('o', 0, { reason, answered_at: null })).isDialled).toBe(false);
  });
});

describe('the log of a batch', () => {
  const counts = { requested: 10, validated: 9, dispatched: 4, successful: 3, failed: 1 } as BatchCounts;
  const plan = { ...PLAN, calls_per_second: 2 };
  const LINE = '10 requested, 9 validated, 4 dispatched, 2 calls per second';

  it('has each change of its state, with progress and reason', () => {
    expect(lifecycleEvent({ counts, plan }, 'in_progress')).toEqual({
      event_type: 'lifecycle',
      payload: { message: LINE, state_change: 'in_progress' },
    });
    expect(lifecycleEvent({ counts, plan }, 'paused', 'too many were abandoned').payload).toEqual({
      message: `${LINE}: too many were abandoned`,
      state_change: 'paused',
    });
  });

  it('ends with its figures', () => {
    const payload = { calls_total: 9, calls_failed: 1, calls_successful: 3 };
    expect(completeEvent(counts)).toEqual({ event_type: 'complete', payload });
  });
});

describe('a call', () => {
  it.each([
    ['heard the agent in time', { silentMs: 2_000 }, false],
    ['heard it too late', { silentMs: 2_001 }, true],
    ['heard nothing for more than 2 s', { silentMs: null, talkMs: 2_001 }, true],
    ['hung up before', { silentMs: null, talkMs: 1_500 }, false],
    ['was hung up on before', { silentMs: null, talkMs: 1_500, reason: 'AGENT_UNAVAILABLE' }, true],
    ['was not answered', { isAnswered: false }, false],
    ['has an unknown silence', { silentMs: undefined, talkMs: 9_000, reason: 'GATEWAY_RESTARTED' }, false],
    ['was answered by a machine', { silentMs: null, talkMs: 9_000, isMachine: true }, false],
  ] as const)('is judged as abandoned or not when it %s', (_what, end, expected) => {
    expect(isAbandoned({ ...END, isAnswered: true, reason: 'CALLEE_HANGUP', ...end })).toBe(expected);
  });

  it('counts in the day of UTC', () => {
    expect([dayOf(at('2026-01-31T23:59:59.999Z')), dayOf(at('2026-02-01T00:00:00Z'))]).toEqual(['2026-01-31', '2026-02-01']);
  });

  it('pauses the batch when more than 3 % of a day are abandoned', () => {
    const isTooOften = (answered: number, abandoned: number): boolean => isAbandonedTooOften({ answered, abandoned });
    expect([isTooOften(0, 0), isTooOften(100, 3), isTooOften(100, 4), isTooOften(33, 1)]).toEqual([false, false, true, true]);
  });
});
