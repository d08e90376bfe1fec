/** How long a receiver that does not take a webhook is tried. All in milliseconds. */
export interface RetrySchedule {
  /** From the first failure to the second attempt; each further one waits twice as long. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** From the first attempt on; then it is given up. */
  readonly giveUpMs: number;
}

/** A part of each wait that is left to chance, so that what failed together does not come back together. */
const JITTER = 0.2;

/**
 * When to try again; `null`: not any more.
 * @param attempts those that failed, 1 or more
 * @param ageMs since the first
 * @param askedMs the receiver's Retry-After; `null`: none
 * @param chance 0 to 1
 */
export function nextAttemptInMs(
  { firstMs, maxMs, giveUpMs }: RetrySchedule,
  { attempts, ageMs, askedMs, chance }: { attempts: number; ageMs: number; askedMs: number | null; chance: number },
): number | null {
  const doubled = Math.min(maxMs, firstMs * 2 ** Math.min(attempts - 1, 40));
  const spread = doubled * (1 - JITTER + 2 * JITTER * chance);
  const waitMs = Math.round(Math.max(spread, Math.min(askedMs ?? 0, maxMs)));
  return ageMs + waitMs > giveUpMs ? null : waitMs;
}
