import { describe, expect, it } from 'vitest';
import {
  endOf,
  isAbandoned,
  isAbandonedTooOften,
  outcomeOf,
  type BatchCounts,
  type EndOfCall,
} from '../../../../src/gateway/model/batch.js';
import { nextCallableMs, WEEKDAYS } from '../../../../src/gateway/model/calling-hours.js';
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
  ])('%s is in %j', (text, zones) => {
    expect(zonesOf(number(text))).toEqual(zones);
  });

  it('are all those of its longest known prefix, and none for one that is in no country', () => {
    expect(zonesOf(number('+61212345678'))).toContain('Australia/Sydney');
    expect(zonesOf(number('+18005550100')).length).toBeGreaterThan(20);
    expect(zonesOf(number('+88213000000'))).toEqual([]);
  });
});

describe('the hours in which people are called', () => {
  const hours = { from: '09:00', to: '20:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const };

  it.each([
    ['within them', ['Europe/Berlin'], '2026-07-01T10:00:00Z', '2026-07-01T10:00:00Z'],
    ['before them', ['Europe/Berlin'], '2026-07-01T06:58:00Z', '2026-07-01T07:00:00Z'],
    ['after them', ['Europe/Berlin'], '2026-07-01T18:00:00Z', '2026-07-02T07:00:00Z'],
    ['on a Saturday evening', ['Europe/Berlin'], '2026-07-04T19:00:00Z', '2026-07-06T07:00:00Z'],
    ['when the clocks change to winter', ['Europe/Berlin'], '2026-10-24T19:00:00Z', '2026-10-26T08:00:00Z'],
    ['in two zones at once', ['America/New_York', 'America/Los_Angeles'], '2026-07-01T13:00:00Z', '2026-07-01T16:00:00Z'],
  ])('%s', (_what, zones, now, next) => {
    expect(new Date(nextCallableMs(zones, hours, at(now)) ?? 0).toISOString()).toBe(new Date(next).toISOString());
  });

  it('never come without a zone, or in zones that have none in common', () => {
    expect(nextCallableMs([], hours, at('2026-07-01T10:00:00Z'))).toBeNull();
    expect(nextCallableMs(zonesOf(number('+18005550100')), hours, at('2026-07-01T10:00:00Z'))).toBeNull();
    expect(
      nextCallableMs(['Europe/Berlin', 'Pacific/Auckland'], { ...hours, to: '18:00', days: ['mon'] }, at('2026-07-01T10:00:00Z')),
    ).toBeNull();
  });

  it('may be the whole day', () => {
    const always = { from: '00:00', to: '24:00', days: WEEKDAYS };
    const nowMs = at('2026-07-05T23:59:59Z');
    expect(nextCallableMs(['Pacific/Kiritimati', 'Pacific/Pago_Pago'], always, nowMs)).toBe(nowMs);
  });
});

const END: EndOfCall = { reason: 'BUSY', isAnswered: false, talkMs: 0, isDialled: true, silentMs: null, isMachine: false };

describe('what follows from the end of a call', () => {
  const entry = { number: number('+4930123456') };
  const plan = { ...PLAN, retries: { BUSY: { times: 2, after_seconds: 60 } } };

  it.each([
    ['an answered one', { isAnswered: true, talkMs: 5_000, silentMs: 300, reason: 'CALLER_HANGUP' }, 'successful'],
    ['one that nobody spoke in', { isAnswered: true, talkMs: 5_000, silentMs: null, reason: 'CALLER_HANGUP' }, 'failed'],
    ['one without a rule', { reason: 'NO_ANSWER' }, 'failed'],
    ['one with a rule', { reason: 'BUSY' }, 'again'],
    ['one of which it is not known', { reason: 'DIAL_AMBIGUOUS' }, 'ambiguous'],
    ['one whose INVITE never left', { reason: 'MEDIA_UNAVAILABLE', isDialled: false }, 'again'],
    ['one that was lost after its INVITE left', { reason: 'MEDIA_UNAVAILABLE' }, 'failed'],
    ['one on the do-not-call list', { reason: 'DO_NOT_CALL', isDialled: false }, 'failed'],
  ] as const)('%s', (_what, end, kind) => {
    expect(outcomeOf({ ...END, ...end }, entry, plan, 0).kind).toBe(kind);
  });

  it('a rule is used so often, and for its reason alone', () => {
    const first = outcomeOf(END, entry, plan, 1_000);
    expect(first).toEqual({ kind: 'again', dueMs: 61_000, entry: { ...entry, ended: { BUSY: 1 } } });
    expect(outcomeOf(END, { ...entry, ended: { BUSY: 1, NO_ANSWER: 5 } }, plan, 0).kind).toBe('again');
    expect(outcomeOf(END, { ...entry, ended: { BUSY: 2 } }, plan, 0)).toEqual({ kind: 'failed', reason: 'BUSY' });
  });

  it('from a record alone, what is not known counts as dialled', () => {
    expect(endOf(callOf('o', 0, { reason: 'MEDIA_UNAVAILABLE', answered_at: null })).isDialled).toBe(true);
    expect(endOf(callOf('o', 0, { reason: 'DIAL_NOT_ALLOWED', answered_at: null })).isDialled).toBe(false);
  });
});

describe('an abandoned call', () => {
  it.each([
    ['heard the agent in time', { silentMs: 2_000 }, false],
    ['heard it too late', { silentMs: 2_001 }, true],
    ['heard nothing for more than 2 s', { silentMs: null, talkMs: 2_001 }, true],
    ['hung up before', { silentMs: null, talkMs: 1_500 }, false],
    ['was hung up on before', { silentMs: null, talkMs: 1_500, reason: 'AGENT_UNAVAILABLE' }, true],
    ['was not answered', { isAnswered: false }, false],
    ['was answered by a machine', { silentMs: null, talkMs: 9_000, isMachine: true }, false],
  ] as const)('%s', (_what, end, expected) => {
    expect(isAbandoned({ ...END, isAnswered: true, reason: 'CALLER_HANGUP', ...end })).toBe(expected);
  });

  it('stops the batch above 3 % of a day', () => {
    const isTooOften = (answered_today: number, abandoned_today: number): boolean =>
      isAbandonedTooOften({ answered_today, abandoned_today } as BatchCounts);
    expect([isTooOften(0, 0), isTooOften(100, 3), isTooOften(100, 4), isTooOften(33, 1)]).toEqual([false, false, true, true]);
  });
});
