import { describe, expect, it } from 'vitest';
import { callResource, callsUri, endedCallSeen, twilioDate, type CallSeen } from '../../../../src/gateway/twilio/call-resource.js';
import { callOf } from '../store/store-contract.js';

const ORG_ID = 'fedcba98-7654-3210-fedc-ba9876543210';
const ACCOUNT = 'ACfedcba9876543210fedcba9876543210';
const STARTED = Date.UTC(2026, 0, 1, 12, 0, 0, 400);
const CALL: CallSeen = {
  callId: '01234567-89ab-cdef-0123-456789abcdef',
  direction: 'outbound',
  from: '+15550100100',
  to: '+15550100999',
  status: 'ringing',
  startedAtMs: STARTED,
  answeredAtMs: null,
  endedAtMs: null,
};
const shown = (change: Partial<CallSeen>) => callResource({ ...CALL, ...change }, ORG_ID);

describe('a call as Twilio shows it', () => {
  it('has the ids, addresses and dates in Twilio’s form', () => {
    expect(shown({})).toEqual({
      sid: 'CA0123456789abcdef0123456789abcdef',
      account_sid: ACCOUNT,
      parent_call_sid: null,
      phone_number_sid: null,
      from: '+15550100100',
      from_formatted: '+15550100100',
      to: '+15550100999',
      to_formatted: '+15550100999',
      direction: 'outbound-api',
      status: 'ringing',
      date_created: 'Thu, 01 Jan 2026 12:00:00 +0000',
      date_updated: 'Thu, 01 Jan 2026 12:00:00 +0000',
      start_time: null,
      end_time: null,
      duration: null,
      answered_by: null,
      caller_name: null,
      forwarded_from: null,
      group_sid: null,
      trunk_sid: null,
      queue_time: '0',
      price: null,
      price_unit: null,
      annotation: null,
      api_version: '2010-04-01',
      uri: `/2010-04-01/Accounts/${ACCOUNT}/Calls/CA0123456789abcdef0123456789abcdef.json`,
      subresource_uris: {},
    });
    expect(callsUri(ORG_ID)).toBe(`/2010-04-01/Accounts/${ACCOUNT}/Calls`);
  });

  it.each([
    ['rings', null, null, null],
    ['is answered', 10_000, null, null],
    ['was answered and ended', 10_000, 15_499, '5'],
    ['was answered and ended half a second later', 10_000, 15_500, '6'],
    ['ended before it was answered, by the clock', 10_000, 8_000, '0'],
    ['ended without an answer', null, 15_000, '0'],
  ])('has the right times when it %s', (_what, answered, ended, duration) => {
    const at = (ms: number | null): number | null => (ms === null ? null : STARTED + ms);
    const dateOf = (ms: number | null): string | null => (ms === null ? null : twilioDate(STARTED + ms));
    expect(shown({ answeredAtMs: at(answered), endedAtMs: at(ended) })).toMatchObject({
      start_time: dateOf(answered),
      end_time: dateOf(ended),
      date_updated: dateOf(ended ?? answered ?? 0),
      duration,
    });
  });

  it.each([
    [undefined, null],
    [null, null],
    ['person', 'human'],
    ['machine', 'machine_start'],
  ] as const)('answered by %s has %s', (answerer, word) => {
    expect(callResource(answerer === undefined ? CALL : { ...CALL, answerer }, ORG_ID).answered_by).toBe(word);
  });
});

describe('an ended call for Twilio', () => {
  const times = { started_at: '2026-01-01T12:00:00.000Z', ended_at: '2026-01-01T12:00:15.000Z' };

  it('has the times, the status and the answerer of its record', () => {
    const answered = { ...times, answered_at: '2026-01-01T12:00:10.000Z', answered_by: 'machine' } as const;
    const record = callOf(ORG_ID, 0, { ...answered, direction: 'inbound', from: '+15550100999', to: '+15550100100' });
    expect(endedCallSeen(record)).toEqual({
      callId: record.call_id,
      direction: 'inbound',
      from: '+15550100999',
      to: '+15550100100',
      status: 'completed',
      startedAtMs: Date.UTC(2026, 0, 1, 12, 0, 0),
      answeredAtMs: Date.UTC(2026, 0, 1, 12, 0, 10),
      endedAtMs: Date.UTC(2026, 0, 1, 12, 0, 15),
      answerer: 'machine',
      parentCallId: null,
    });
  });

  it('without an answer has no time of it', () => {
    const record = callOf(ORG_ID, 0, { ...times, answered_at: null, reason: 'NO_ANSWER', sip_status: 480 });
    expect(endedCallSeen(record)).toMatchObject({ status: 'no-answer', answeredAtMs: null, answerer: null });
  });
});
