import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isoTime, within } from '../../../src/lib/clock.js';
import { VirtualClock } from '../../support/virtual-clock.js';

describe('isoTime', () => {
  const from = Date.UTC(1969, 11, 31, 23, 59, 58);

  it('equals Date.toISOString(), in whatever order times come', () => {
    const moment = fc.oneof(fc.integer({ min: from, max: from + 4_000 }), fc.integer({ min: from, max: Date.UTC(2100, 0) }));
    fc.assert(
      fc.property(fc.array(moment), (moments) => {
        expect(moments.map(isoTime)).toEqual(moments.map((ms) => new Date(ms).toISOString()));
      }),
    );
  });

  it('drops fractions of a millisecond', () => {
    expect(isoTime(1_700_000_000_007.9)).toBe('2023-11-14T22:13:20.007Z');
  });

  it('throws for an invalid time', () => {
    expect(() => isoTime(Number.NaN)).toThrow(RangeError);
  });
});

describe('within', () => {
  it('waits for the work, for its time limit at most, and leaves no timer', async () => {
    const clock = new VirtualClock();
    expect(await within(clock, 10, Promise.resolve())).toBe(true);
    expect(await within(clock, 10, null)).toBe(true);
    await expect(within(clock, 10, Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(clock.pendingTimers).toBe(0);
    const endless = within(clock, 10, new Promise(() => undefined));
    clock.advance(10);
    expect(await endless).toBe(false);
  });

  it('does not count a stall, and reads first what came during it', async () => {
    const clock = new VirtualClock();
    let come = (): void => undefined;
    const inTime = within(clock, 10, new Promise<void>((resolve) => (come = resolve)));
    clock.standStill(1_000);
    clock.advance(0);
    come();
    expect(await inTime).toBe(true);
    const never = within(clock, 10, new Promise(() => undefined));
    clock.standStill(1_000);
    clock.advance(8);
    expect(await never).toBe(false);
  });
});
