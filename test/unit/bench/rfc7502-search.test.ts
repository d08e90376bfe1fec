import { describe, expect, it } from 'vitest';
import { RFC_PARAMETERS, sessionEstablishmentRate } from '../../../bench/rfc7502/search.js';

/** A device that bears `short` attempts a second for a moment, and `long` for as long as it is asked. */
function device(short: number, long = short) {
  const trials: { rate: number; attempts: number }[] = [];
  return {
    trials,
    succeeds: async (rate: number, attempts: number): Promise<boolean> => {
      trials.push({ rate, attempts });
      return Promise.resolve(rate <= (attempts > 5_000 ? long : short));
    },
  };
}

describe('the search of RFC 7502 §4.10', () => {
  it.each([37, 100, 101, 740, 5_000])('finds %i a second within twice the granularity, and never more', async (limit) => {
    const rate = await sessionEstablishmentRate(device(limit).succeeds, RFC_PARAMETERS);
    expect(rate).toBeLessThanOrEqual(limit);
    expect(limit - rate).toBeLessThanOrEqual(2 * RFC_PARAMETERS.granularity);
  });

  it('rises by half until a trial fails, and returns no rate that has not lasted for T attempts', async () => {
    const { trials, succeeds } = device(200);
    await sessionEstablishmentRate(succeeds, RFC_PARAMETERS);
    expect(trials.slice(0, 3).map(({ rate }) => rate)).toEqual([100, 150, 225]);
    expect(trials.filter(({ attempts }) => attempts === 50_000)).toHaveLength(1);
    expect(trials.at(-1)!.attempts).toBe(50_000);
  });

  it('backs down by C where a rate lasts for t attempts and not for T', async () => {
    const { trials, succeeds } = device(400, 350);
    const rate = await sessionEstablishmentRate(succeeds, RFC_PARAMETERS);
    expect(rate).toBeLessThanOrEqual(350);
    expect(rate).toBeGreaterThan(325);
    const long = trials.filter(({ attempts }) => attempts === 50_000).map(({ rate: tried }) => tried);
    for (let at = 1; at < long.length; at += 1) expect(long[at]).toBe(Math.floor(long[at - 1]! * 0.95));
  });

  it('returns 0 where nothing succeeds', async () => {
    expect(await sessionEstablishmentRate(device(0).succeeds, RFC_PARAMETERS)).toBe(0);
  });
});
