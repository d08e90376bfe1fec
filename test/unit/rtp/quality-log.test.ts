import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QualityLog, type QualityReading } from '../../../src/rtp/quality.js';

const reading = (atMs: number, fields: Partial<QualityReading> = {}): QualityReading => ({
  atMs,
  fromCaller: { lossRate: 0, jitterMs: 1 },
  toCaller: null,
  roundTripMs: null,
  ...fields,
});

function logOf(readings: readonly QualityReading[]): QualityLog {
  const log = new QualityLog();
  for (const each of readings) log.add(each);
  return log;
}

describe('the quality log of a call', () => {
  it('has one sample a reading, with a score of loss and delay', () => {
    const { samples } = logOf([
      reading(700),
      reading(5_712.4, { fromCaller: { lossRate: 0.1, jitterMs: 3.14 }, toCaller: { lossRate: 0, jitterMs: 0 }, roundTripMs: 60.06 }),
      reading(10_000, { fromCaller: null }),
    ]);
    expect(samples).toEqual([
      { at_ms: 700, from_caller: { lost_percent: 0, jitter_ms: 1, mos: 4.4 }, to_caller: null, round_trip_ms: null },
      {
        at_ms: 5_712,
        from_caller: { lost_percent: 10, jitter_ms: 3.1, mos: expect.closeTo(3.2, 0) as number },
        to_caller: { lost_percent: 0, jitter_ms: 0, mos: expect.closeTo(4.4, 1) as number },
        round_trip_ms: 60.1,
      },
      { at_ms: 10_000, from_caller: null, to_caller: null, round_trip_ms: null },
    ]);
  });

  it('has few samples of the longest call, and keeps its worst moment', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_000 }), fc.nat(), (count, where) => {
        const worst = where % count;
        const { samples } = logOf(
          Array.from({ length: count }, (_, index) =>
            reading(5_000 * index, {
              fromCaller: { lossRate: index === worst ? 0.5 : 0, jitterMs: 1 },
              roundTripMs: index === worst ? 400 : 20,
            }),
          ),
        );
        expect(samples.length).toBeLessThanOrEqual(120);
        expect(samples.length).toBeGreaterThanOrEqual(Math.min(count, 60));
        expect(samples.at(-1)?.at_ms).toBe(5_000 * (count - 1));
        expect(samples.map(({ at_ms: at }) => at)).toEqual(samples.map(({ at_ms: at }) => at).toSorted((a, b) => a - b));
        const hit = samples.filter((sample) => sample.from_caller?.lost_percent === 50);
        expect(hit).toHaveLength(1);
        expect(hit[0]?.round_trip_ms).toBe(400);
      }),
      { numRuns: 200 },
    );
  });
});
