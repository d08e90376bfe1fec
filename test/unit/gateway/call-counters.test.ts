import { describe, expect, it } from 'vitest';
import { CallCounters } from '../../../src/gateway/call-counters.js';
import { ROUTE } from '../../support/route.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../../src/contracts/records.js';

const RATED = {
  ...ROUTE,
  number: { ...ROUTE.number, inbound: { agent_id: null, options: { ...DEFAULT_INBOUND_OPTIONS, max_calls_per_second: 5 } } },
};

describe('CallCounters', () => {
  it('counts calls of a number and of its organization until they are released, once each', () => {
    const counters = new CallCounters(new VirtualClock());
    const release = counters.admit(ROUTE);
    counters.admit(ROUTE);
    expect(counters.load(ROUTE)).toMatchObject({ numberCalls: 2, orgCalls: 2 });
    release();
    release();
    expect(counters.load(ROUTE)).toMatchObject({ numberCalls: 1, orgCalls: 1 });
    expect(counters.load(null)).toMatchObject({ numberCalls: 0, orgCalls: 0 });
  });

  it('counts the calls of the last second, and forgets a quiet number', () => {
    const clock = new VirtualClock();
    const counters = new CallCounters(clock);
    const releases = [0, 300, 300].map((gap) => {
      clock.advance(gap);
      return counters.admit(RATED);
    });
    expect(counters.load(RATED).numberCallsLastSecond).toBe(3);
    clock.advance(500);
    expect(counters.load(RATED).numberCallsLastSecond).toBe(2);
    for (const release of releases) release();
    expect(counters.size).toBe(1);
    clock.advance(1_000);
    expect([counters.size, clock.pendingTimers]).toEqual([0, 0]);
  });
});
