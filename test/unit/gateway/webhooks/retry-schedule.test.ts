import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextAttemptInMs } from '../../../../src/gateway/webhooks/retry-schedule.js';

const HOUR_MS = 3_600_000;
const schedule = { firstMs: 5_000, maxMs: HOUR_MS, giveUpMs: 24 * HOUR_MS };
const next = (attempts: number, fields: { ageMs?: number; askedMs?: number | null; chance?: number } = {}): number | null =>
  nextAttemptInMs(schedule, { attempts, ageMs: 0, askedMs: null, chance: 0.5, ...fields });

describe('nextAttemptInMs', () => {
  it('doubles the wait up to an hour', () => {
    expect([1, 2, 3, 10, 11, 500].map((attempts) => next(attempts))).toEqual([5_000, 10_000, 20_000, 2_560_000, HOUR_MS, HOUR_MS]);
  });

  it('has a jitter of a fifth', () => {
    expect([next(1, { chance: 0 }), next(1, { chance: 1 })]).toEqual([4_000, 6_000]);
  });

  it('waits as long as the receiver requests, within the longest wait', () => {
    expect([next(1, { askedMs: 60_000 }), next(1, { askedMs: 1_000 }), next(1, { askedMs: 48 * HOUR_MS })]).toEqual([
      60_000,
      5_000,
      HOUR_MS,
    ]);
  });

  it('gives up when the next attempt would come after a day', () => {
    const lastMs = 24 * HOUR_MS - 5_000;
    expect([next(1, { ageMs: lastMs }), next(1, { ageMs: lastMs + 1 })]).toEqual([5_000, null]);
  });

  it('schedules some 30 to 45 attempts in a day, whatever the jitter, and then no more', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 60, maxLength: 60 }), (chances) => {
        let [attempts, ageMs] = [1, 0];
        for (
          let waitMs = next(1, { chance: chances[0]! });
          waitMs !== null;
          waitMs = next(attempts, { ageMs, chance: chances[attempts]! })
        ) {
          ageMs += waitMs;
          attempts += 1;
        }
        expect(attempts).toBeGreaterThanOrEqual(28);
        expect(attempts).toBeLessThanOrEqual(45);
        expect(ageMs).toBeLessThanOrEqual(24 * HOUR_MS);
      }),
    );
  });
});
