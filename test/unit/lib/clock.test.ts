import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isoTime } from '../../../src/lib/clock.js';

describe('isoTime', () => {
  const from = Date.UTC(1969, 11, 31, 23, 59, 58);

  it('is what Date writes, in whatever order moments come', () => {
    const moment = fc.oneof(fc.integer({ min: from, max: from + 4_000 }), fc.integer({ min: from, max: Date.UTC(2100, 0) }));
    fc.assert(
      fc.property(fc.array(moment), (moments) => {
        expect(moments.map(isoTime)).toEqual(moments.map((ms) => new Date(ms).toISOString()));
      }),
    );
  });

  it('leaves fractions of a millisecond out', () => {
    expect(isoTime(1_700_000_000_007.9)).toBe('2023-11-14T22:13:20.007Z');
  });

  it('has no text for what is no time', () => {
    expect(() => isoTime(Number.NaN)).toThrow(RangeError);
  });
});
