import type { CancelTimer, Clock } from './clock.js';

/** Real time. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(delayMs: number, fire: () => void): CancelTimer {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};
