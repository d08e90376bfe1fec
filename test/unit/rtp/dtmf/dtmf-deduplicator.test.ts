import { describe, expect, it } from 'vitest';
import { DtmfDeduplicator } from '../../../../src/rtp/dtmf/telephone-event-receiver.js';

describe('a digit that comes by telephone-event and by INFO', () => {
  it('counts once, whichever comes first', () => {
    const presses = new DtmfDeduplicator();
    expect(presses.take('media', 5, 160, 1_000)).toBe(true);
    expect(presses.take('signalling', 5, 160, 1_200)).toBe(false);
    expect(presses.take('signalling', 6, 160, 3_000)).toBe(true);
    expect(presses.take('media', 6, 160, 3_900)).toBe(false);
  });

  it('counts twice when it is pressed twice, and both come both ways', () => {
    const presses = new DtmfDeduplicator();
    const told = [
      presses.take('media', 1, 100, 0),
      presses.take('media', 1, 100, 200),
      presses.take('signalling', 1, 100, 250),
      presses.take('signalling', 1, 100, 300),
    ];
    expect(told).toEqual([true, true, false, false]);
  });

  it('counts by itself when it comes one way only', () => {
    const presses = new DtmfDeduplicator();
    expect([0, 300, 600].map((at) => presses.take('media', 9, 100, at))).toEqual([true, true, true]);
    expect([0, 300, 600].map((at) => presses.take('signalling', 8, 100, at))).toEqual([true, true, true]);
    expect(presses.take('signalling', 9, 100, 5_000)).toBe(true);
  });

  it('waits for the end of a long press, whose INFO came at its start', () => {
    const presses = new DtmfDeduplicator();
    expect(presses.take('signalling', 3, 160, 0)).toBe(true);
    expect(presses.take('media', 3, 4_000, 4_000)).toBe(false);
  });
});
