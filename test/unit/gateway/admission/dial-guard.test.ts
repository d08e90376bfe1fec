import { describe, expect, it } from 'vitest';
import { isServiceNumber, mayLeave } from '../../../../src/gateway/admission/dial-guard.js';
import { costMicros, dialPermit, limitedTrunk, type Dialling } from '../../../../src/gateway/model/dialling.js';
import type { E164 } from '../../../../src/gateway/model/e164.js';
import type { Route } from '../../../../src/gateway/model/records.js';
import { NUMBER, ROUTE } from '../../../support/route.js';

const DIALLING: Dialling = {
  prices: { '+49': 0.02, '+4916': 0.2, '+49900': null, '+1': 0.01 },
  callers: [NUMBER],
  max_calls_per_second: 1,
  max_concurrent_calls: 1,
  max_calls_per_day: 1,
  max_cost_per_day: 1,
};

const judge = (to: string, dialling: Dialling | null = DIALLING, org: Partial<Route['org']> = {}) =>
  dialled({ org: { ...ROUTE.org, dialling, ...org }, number: { ...ROUTE.number, outbound: { sip_endpoint: 'a.example' } } }, to);

function dialled(from: Pick<Route, 'org' | 'number'>, to: string) {
  return mayLeave({ kind: 'number', number: to as E164 }, { door: 'placed-call', from });
}

describe('a number', () => {
  it('has the price of its longest prefix', () => {
    expect(judge('+4930123456')).toEqual({ ok: true, value: { by: 'price', price: 0.02 } });
    expect(judge('+49160123456')).toEqual({ ok: true, value: { by: 'price', price: 0.2 } });
    expect(judge('+12125550100')).toEqual({ ok: true, value: { by: 'price', price: 0.01 } });
  });

  it.each([
    ['without a price', () => judge('+33123456789'), /no prefix/],
    ['with a forbidden prefix', () => judge('+49900123456'), /forbidden numbers that begin with \+49900/],
    ['of an organization that may dial nothing', () => judge('+4930123456', null), /not enabled/],
    ['of a disabled organization', () => judge('+4930123456', DIALLING, { disabled: true }), /no calls now/],
    ['of one without the entitlement', () => judge('+4930123456', DIALLING, { sip_enabled: false }), /no calls now/],
    ['from a number that is not verified', () => judge('+4930123456', { ...DIALLING, callers: [] }), /not verified/],
    [
      'from one that is not attached outbound',
      () => dialled({ org: { ...ROUTE.org, dialling: DIALLING }, number: ROUTE.number }, '+4930123456'),
      /not attached/,
    ],
    ['of an emergency service', () => judge('+4911222'), /emergency/],
  ])('is not dialled: %s', (_what, ask, sentence) => {
    const judged = ask();
    expect(judged.ok ? '' : judged.error).toMatch(sentence);
  });

  it.each([
    ['+18765550100', /a number of Jamaica, and the price of \+1 is for United States and Canada: a prefix such as \+1876 needs/],
    ['+18095550100', /Dominican Republic/],
    ['+12845550100', /British Virgin Islands/],
  ])('such as %s is not dialled by the price of its country code alone', (to, sentence) => {
    const judged = judge(to);
    expect(judged.ok ? '' : judged.error).toMatch(sentence);
  });

  it.each([
    ['+441534123456', { '+44': 0.01 }],
    ['+77012345678', { '+7': 0.01 }],
  ])('such as %s is not dialled by the price of another country with its code', (to, prices) => {
    expect(judge(to, { ...DIALLING, prices }).ok).toBe(false);
  });

  it.each([
    ['+18765550100', { '+1': 0.01, '+1876': 0.3 }],
    ['+14165550100', { '+1': 0.01 }],
    ['+15550100100', { '+1': 0.01 }],
    ['+441534123456', { '+44': 0.01, '+441534': 0.1 }],
    ['+442079460000', { '+44': 0.01 }],
    ['+74951234567', { '+7': 0.01 }],
    ['+447700900123', { '+44': 0.01 }],
  ])('such as %s is dialled with the prices %j', (to, prices) => {
    expect(judge(to, { ...DIALLING, prices }).ok).toBe(true);
  });

  it.each([
    '+10005550100',
    '+11235550100',
    '+1911000',
    '+19115550100',
    '+14115550100',
    '+1555010010',
    '+155501001000',
    '+4911222',
    '+44999000',
    '+99912345',
    '+7112000',
  ])('[E.164 §6] such as %s is an emergency, service or short number', (number) => expect(isServiceNumber(number as E164)).toBe(true));

  it.each(['+12125550100', '+4930123456', '+911123456789', '+441189998819', '+3581234567', '+74951234567'])(
    'such as %s is a subscriber',
    (number) => expect(isServiceNumber(number as E164)).toBe(false),
  );
});

describe('the trunk that a call counts on', () => {
  const of = (endpoint: string) => limitedTrunk({ ...DIALLING, per_trunk: { max_concurrent_calls: 1 } }, endpoint);

  it.each([
    ['Trunk.Example', 'trunk.example:5061'],
    ['sip:trunk.example', 'trunk.example:5061'],
    ['SIPS:me@TRUNK.example:5061;lr', 'trunk.example:5061'],
    ['trunk.example:5071', 'trunk.example:5071'],
    ['trunk.example:05071', 'trunk.example:5071'],
    ['203.0.113.7', '203.0.113.7:5061'],
    ['[2001:DB8:0:0::1]', '[2001:db8::1]:5061'],
    ['sip:[2001:db8::1]:5071', '[2001:db8::1]:5071'],
  ])('is the same however %s is spelled', (endpoint, trunk) => {
    expect(of(endpoint)).toBe(trunk);
  });

  it('does not exist while trunks have no limits', () => {
    expect(limitedTrunk(DIALLING, 'trunk.example')).toBeUndefined();
  });
});

describe('the cost of a call', () => {
  it('covers each minute that began, and is zero without an answer', () => {
    expect([0, 1, 60_000, 60_001].map((ms) => costMicros(20_000, ms))).toEqual([0, 20_000, 20_000, 40_000]);
  });

  it('is reserved for its maximum duration, on the day of UTC', () => {
    expect(dialPermit(0.02, 1_800_000, Date.parse('2026-01-31T23:59:59.999Z'))).toEqual({
      microsPerMinute: 20_000,
      reservedMicros: 600_000,
      day: '2026-01-31',
    });
  });
});
