import type { Clock } from '../../../../lib/clock.js';
import { errorText } from '../../../../lib/result.js';
import type { Log } from '../../../../lib/log.js';
import { SWEEP_LOCK_KEY } from '../keys.js';
import type { RedisConnection } from '../redis.js';
import type { NumberStore } from '../../../ports/stores.js';

const EVERY_MS = 3_600_000;
/** Gateways that start together do not ask together. */
const JITTER_MS = 600_000;
/** Shorter than any pause between two sweeps of one gateway, so that a single one is never kept from its next. */
const LOCK_MS = EVERY_MS - JITTER_MS - 60_000;

export interface SweepParts {
  readonly redis: RedisConnection;
  readonly numbers: Pick<NumberStore, 'sweep'>;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  /** 0 to 1. */
  readonly random?: () => number;
}

/** Sweeps the indexes of numbers every hour, on one gateway of all. Returns what ends it. */
export function scheduleSweep(parts: SweepParts): () => void {
  const { clock, random = Math.random } = parts;
  const next = (): (() => void) =>
    clock.setTimer(EVERY_MS + (2 * random() - 1) * JITTER_MS, () => {
      cancel = next();
      void sweep(parts);
    });
  let cancel = next();
  return () => cancel();
}

async function sweep({ redis, numbers, instance, log }: SweepParts): Promise<void> {
  try {
    // Never given back: it says that a sweep was made lately as well as that one is being made.
    const lock = await redis.run((client) => client.set(SWEEP_LOCK_KEY, instance, 'PX', LOCK_MS, 'NX'));
    if (lock !== 'OK') return;
    log.info({ ...(await numbers.sweep()) }, 'numbers.swept');
  } catch (error) {
    log.warn({ error: errorText(error) }, 'numbers.sweep_failed');
  }
}
