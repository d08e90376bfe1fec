import { describe, expect, it } from 'vitest';
import { costMicros, dialPermit, limitedTrunk, microsOf, type Dialling } from '../../../../src/gateway/model/dialling.js';
import { brokenProviderLimit, NO_PROVIDER_USAGE } from '../../../../src/gateway/model/provider-usage.js';

const DIALLING: Dialling = {
  prices: {},
  callers: [],
  max_calls_per_second: 1,
  max_concurrent_calls: 1,
  max_calls_per_day: 1,
  max_cost_per_day: 1,
  per_trunk: {},
};

describe('the cost of a placed call', () => {
  it.each([
    [-1, 0],
    [0, 0],
    [1, 1],
    [60_000, 1],
    [60_001, 2],
    [600_000, 10],
  ])('after %i ms is that of %i minutes', (talkedMs, minutes) => {
    expect(costMicros(20_000, talkedMs)).toBe(20_000 * minutes);
  });

  it('is counted in whole millionths', () => {
    expect([microsOf(0.02), microsOf(0.000_000_4), microsOf(0.1 + 0.2)]).toEqual([20_000, 0, 300_000]);
  });

  it('is reserved for its maximum duration, on the day of UTC, and on its trunk where trunks have limits', () => {
    const permit = { microsPerMinute: 20_000, reservedMicros: 40_000, day: '2026-01-31' };
    const nowMs = Date.parse('2026-01-31T23:59:59.999Z');
    expect(dialPermit(0.02, 61_000, nowMs)).toEqual(permit);
    expect(dialPermit(0.02, 61_000, nowMs + 1, 'a.example:5061')).toEqual({ ...permit, day: '2026-02-01', trunk: 'a.example:5061' });
  });

  it.each([
    ['Trunk.Example', 'trunk.example:5061'],
    ['trunk.example:5062', 'trunk.example:5062'],
    ['[2001:DB8::0:1]', '[2001:db8::1]:5061'],
  ])('counts on the trunk %s as %s', (endpoint, trunk) => {
    expect(limitedTrunk(DIALLING, endpoint)).toBe(trunk);
  });

  it('counts on no trunk where trunks have no limits', () => {
    const { per_trunk: _limits, ...others } = DIALLING;
    expect(limitedTrunk(others, 'trunk.example')).toBeUndefined();
  });
});

describe('the limit on providers that one more session would exceed', () => {
  const NONE = { max_provider_sessions: null, max_provider_minutes_per_day: null, max_provider_tokens_per_day: null };

  it.each([
    ['ORG_SESSION_LIMIT', { max_provider_sessions: 2 }, { sessions: 2 }, { sessions: 1 }],
    ['ORG_MINUTE_LIMIT', { max_provider_minutes_per_day: 1 }, { milliseconds: 60_000 }, { milliseconds: 59_999 }],
    ['ORG_TOKEN_LIMIT', { max_provider_tokens_per_day: 500 }, { tokens: 500 }, { tokens: 499 }],
  ])('is %s at the limit, and none below it', (limit, limits, full, below) => {
    expect(brokenProviderLimit({ ...NONE, ...limits }, { ...NO_PROVIDER_USAGE, ...full })).toBe(limit);
    expect(brokenProviderLimit({ ...NONE, ...limits }, { ...NO_PROVIDER_USAGE, ...below })).toBeNull();
  });

  it('does not exist without limits, and 0 admits no session', () => {
    expect(brokenProviderLimit(NONE, { sessions: 1e9, milliseconds: 1e9, tokens: 1e9 })).toBeNull();
    for (const name of ['max_provider_sessions', 'max_provider_minutes_per_day', 'max_provider_tokens_per_day']) {
      expect(brokenProviderLimit({ ...NONE, [name]: 0 }, NO_PROVIDER_USAGE)).not.toBeNull();
    }
  });
});
