import { beforeEach, describe, expect, it } from 'vitest';
import { AwakeGate } from '../../../../src/gateway/call/awake-gate.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

let clock: VirtualClock;
let isRedisThere: boolean;
let done: string[];
let gate: AwakeGate;
const hold = (what: string): boolean => gate.holds(() => done.push(what));

beforeEach(() => {
  clock = new VirtualClock();
  isRedisThere = true;
  done = [];
  gate = new AwakeGate(clock, () => (isRedisThere ? Promise.resolve() : Promise.reject(new Error('away'))));
});

describe('the events of calls in a process that was suspended', () => {
  it('wait until Redis has answered and the SIP server has had time to name the owner of the calls', async () => {
    await clock.advanceAsync(10_000);
    expect(hold('before')).toBe(false);
    clock.standStill(30_000);
    expect(hold('media timeout')).toBe(true);
    await clock.advanceAsync(900);
    expect([hold('more'), done]).toEqual([true, []]);
    await clock.advanceAsync(250);
    expect([hold('after'), done]).toEqual([false, ['media timeout', 'more']]);
  });

  it('wait as long as Redis is away', async () => {
    clock.standStill(30_000);
    isRedisThere = false;
    expect(hold('one')).toBe(true);
    await clock.advanceAsync(60_000);
    expect(done).toEqual([]);
    isRedisThere = true;
    await clock.advanceAsync(2_000);
    expect(done).toEqual(['one']);
  });

  it('do not wait after a suspension shorter than the lease', () => {
    clock.standStill(1_200);
    expect(hold('one')).toBe(false);
  });
});
