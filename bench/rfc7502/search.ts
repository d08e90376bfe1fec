/** Parameters of the search (RFC 7502 §4.10), with its names. */
export interface SearchParameters {
  /** s: the first rate, in session attempts a second. */
  readonly firstRate: number;
  /** t: session attempts of a trial while the largest rate is looked for. */
  readonly localAttempts: number;
  /** T: session attempts that must all succeed for a rate to be the result. */
  readonly globalAttempts: number;
  /** G: margin of error, in attempts a second. */
  readonly granularity: number;
  /** C: the share by which a rate is lowered that fails over T attempts. */
  readonly calibration: number;
}

/** The defaults of RFC 7502 §4.10. */
export const RFC_PARAMETERS: SearchParameters = {
  firstRate: 100,
  localAttempts: 5_000,
  globalAttempts: 50_000,
  granularity: 5,
  calibration: 0.05,
};

/**
 * The highest rate at which every session attempt succeeds: it rises by half until a trial fails, then halves the gap between the highest
 * rate that succeeded and the lowest that failed, and at last has to last for T attempts.
 *
 * @param succeeds runs one trial: so many attempts at this rate; false when any of them failed
 * @returns attempts a second; 0 when no rate succeeded
 */
export async function sessionEstablishmentRate(
  succeeds: (rate: number, attempts: number) => Promise<boolean>,
  { firstRate, localAttempts, globalAttempts, granularity, calibration }: SearchParameters,
): Promise<number> {
  let best = 0;
  let worst = Infinity;
  for (let rate = firstRate; worst - best > 2 * granularity; rate = worst === Infinity ? rate * 1.5 : (best + worst) / 2) {
    if (await succeeds(Math.round(rate), localAttempts)) best = Math.round(rate);
    else worst = Math.round(rate);
  }
  for (let rate = best; rate > granularity; rate = Math.floor(rate * (1 - calibration))) {
    if (await succeeds(rate, globalAttempts)) return rate;
  }
  return 0;
}
