import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mix } from '../../../../src/rtp/codec/mix.js';

const sample = fc.integer({ min: -32_768, max: 32_767 });

describe('the mix of two signals', () => {
  it('is their sum, clipped to 16 bits, and never wraps around', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(sample, sample), { minLength: 1, maxLength: 160 }), (pairs) => {
        const mixed = new Int16Array(pairs.length);
        mix(
          Int16Array.from(pairs, ([one]) => one),
          Int16Array.from(pairs, ([, other]) => other),
          mixed,
        );
        expect([...mixed]).toEqual(pairs.map(([one, other]) => Math.max(-32_768, Math.min(32_767, one + other))));
      }),
    );
  });

  it('may overwrite one of them', () => {
    const one = Int16Array.of(1, 2, 30_000);
    mix(one, Int16Array.of(10, -20, 30_000), one);
    expect([...one]).toEqual([11, -18, 32_767]);
  });
});
