import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReplayWindow } from '../../../src/rtp/replay-window.js';

function taken(sequence: readonly number[], window = new ReplayWindow()): number[] {
  return sequence.filter((number) => window.take(number & 0xffff));
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, index) => from + index);

describe('[3711 §3.3.2] the replay list of a relayed source', () => {
  it('accepts each packet once, in any order within 64, also across the wrap of the sequence number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 65_535 }), fc.array(fc.nat(20), { minLength: 400, maxLength: 400 }), (first, late) => {
        // Each packet is late by up to 20 places, and some come twice.
        const sent = range(first, 400).map((number, index) => ({ number, at: index + late[index]! }));
        const arrivals = sent.toSorted((a, b) => a.at - b.at).map(({ number }) => number);
        const twice = arrivals.flatMap((number, index) => (index % 3 === 0 ? [number, number] : [number]));
        expect(taken(twice)).toEqual(arrivals);
      }),
    );
  });

  it.each([0, 65_500])(
    'refuses what is 64 behind the newest packet (%i), which shares its place, and the newest one again after it',
    (first) => {
      const window = new ReplayWindow();
      // 64 behind never came; 63 behind neither, and is taken.
      expect(taken([first, first + 64, first + 1, first], window)).toEqual([first, first + 64, first + 1]);
      expect(taken([first + 64, first + 1], window)).toEqual([]);
    },
  );

  it('accepts nothing of a recording that is replayed while the source continues', () => {
    const window = new ReplayWindow();
    const recording = range(1_000, 300);
    expect(taken(recording, window)).toEqual(recording);
    const mixed = range(0, 300).map((index) => [recording[index]!, 1_300 + index]);
    expect(taken(mixed.flat(), window)).toEqual(mixed.map(([, own]) => own));
  });

  it('follows a source that restarts once a second of it came, and nothing else in between', () => {
    const window = new ReplayWindow();
    expect(taken(range(30_000, 100), window)).toHaveLength(100);
    expect(taken(range(5, 120), window)).toEqual(range(54, 71));
    // What it had sent before is old now, as it should be: it is ahead.
    expect(taken([30_100], window)).toEqual([30_100]);
  });
});
