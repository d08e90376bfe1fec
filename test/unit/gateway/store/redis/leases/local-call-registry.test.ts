import { describe, expect, it } from 'vitest';
import { DEFAULT_INBOUND_OPTIONS } from '../../../../../../src/gateway/model/records.js';
import { LocalCallRegistry } from '../../../../../../src/gateway/store/redis/leases/leases.js';
import { begun } from '../../../../../support/begun-call.js';
import { NUMBER, ROUTE } from '../../../../../support/route.js';
import { VirtualClock } from '../../../../../support/virtual-clock.js';

const RATED = {
  ...ROUTE,
  number: { ...ROUTE.number, inbound: { agent_id: null, options: { ...DEFAULT_INBOUND_OPTIONS, max_calls_per_second: 5 } } },
  org: { ...ROUTE.org, max_calls_per_second: 2 },
};

describe('LocalCallRegistry', () => {
  it('counts calls of a number and of its organization until they are removed, once each', () => {
    const own = new LocalCallRegistry(new VirtualClock());
    own.add(begun('a'), ROUTE);
    own.add(begun('b'), ROUTE);
    own.add(begun('b'), ROUTE);
    expect(own.load(ROUTE)).toEqual({ numberCalls: 2, numberCallsLastSecond: 0, orgCalls: 2, orgCallsLastSecond: 0 });
    expect(own.remove('a')).toEqual({ number: NUMBER, orgId: 'o', call: begun('a') });
    expect(own.remove('a')).toBeUndefined();
    expect(own.load(ROUTE)).toMatchObject({ numberCalls: 1, orgCalls: 1 });
    expect(own.load(null)).toMatchObject({ numberCalls: 0, orgCalls: 0 });
    expect([...own.all.keys()]).toEqual(['b']);
  });

  it('counts the calls of the last second, no more than the limit needs, and forgets idle numbers', () => {
    const clock = new VirtualClock();
    const own = new LocalCallRegistry(clock);
    for (const id of ['a', 'b', 'c']) {
      own.add(begun(id), RATED);
      clock.advance(300);
    }
    expect(own.load(RATED)).toMatchObject({ numberCallsLastSecond: 3, orgCallsLastSecond: 2 });
    clock.advance(200);
    expect(own.load(RATED)).toMatchObject({ numberCallsLastSecond: 2, orgCallsLastSecond: 2 });
    for (const id of ['a', 'b', 'c']) own.remove(id);
    expect([own.size, own.load(RATED).numberCallsLastSecond]).toEqual([2, 2]);
    clock.advance(1_000);
    expect([own.size, clock.pendingTimers]).toEqual([0, 0]);
  });

  it('removes a call that was refused after it was counted from the last second', () => {
    const own = new LocalCallRegistry(new VirtualClock());
    own.add(begun('a'), RATED);
    own.add(begun('b'), RATED);
    own.remove('a', false);
    expect(own.load(RATED)).toEqual({ numberCalls: 1, numberCallsLastSecond: 1, orgCalls: 1, orgCallsLastSecond: 1 });
  });
});
