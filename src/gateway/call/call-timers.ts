import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { CallTimer } from './state.js';

/** One call's timers, each of them once at a time. */
export class CallTimers {
  readonly #timers = new Map<CallTimer, CancelTimer>();

  constructor(
    private readonly clock: Clock,
    private readonly onTimer: (timer: CallTimer) => void,
  ) {}

  start(timer: CallTimer, delayMs: number): void {
    this.stop(timer);
    this.#timers.set(
      timer,
      this.clock.setTimer(delayMs, () => this.onTimer(timer)),
    );
  }

  stop(timer: CallTimer): void {
    this.#timers.get(timer)?.();
    this.#timers.delete(timer);
  }

  close(): void {
    for (const timer of [...this.#timers.keys()]) this.stop(timer);
  }
}

/** Waits for the work, but no longer than this. */
export async function within(clock: Clock, limitMs: number, work: Promise<void>): Promise<void> {
  let cancel: CancelTimer | undefined;
  const limit = new Promise<void>((resolve) => {
    cancel = clock.setTimer(limitMs, resolve);
  });
  await Promise.race([work, limit]);
  cancel?.();
}
