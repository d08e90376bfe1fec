import type { CancelTimer, Clock } from './clock.js';

const TICK_MS = 250;
/** Shorter than the lease after which another host takes a process's calls. */
const STOOD_STILL_MS = 1_500;

/** Notices that this process did not run for a while (SIGSTOP, a paused machine): what it believes may be old. */
export class Standstill {
  #tickedMs: number;
  #wokeMs: number | null = null;
  #cancel: CancelTimer | undefined;

  /** @param onTick called 4 times a second, with the time at which it woke; `null`: it is awake */
  constructor(
    private readonly clock: Clock,
    private readonly onTick: (wokeMs: number | null) => void = () => undefined,
  ) {
    this.#tickedMs = clock.nowMs();
    this.#tickLater();
  }

  /** When it woke and has not been told yet that nothing changed; `null`: it runs. */
  get wokeMs(): number | null {
    const nowMs = this.clock.nowMs();
    // Whichever timer comes first notices.
    if (nowMs - this.#tickedMs > STOOD_STILL_MS) this.#wokeMs = nowMs;
    this.#tickedMs = Math.max(this.#tickedMs, this.#wokeMs ?? -Infinity);
    return this.#wokeMs;
  }

  /** Who was asked at this time knows of no change. */
  confirm(askedMs: number): void {
    if (this.#wokeMs !== null && askedMs >= this.#wokeMs) this.#wokeMs = null;
  }

  close(): void {
    this.#cancel?.();
  }

  #tickLater(): void {
    this.#cancel = this.clock.setTimer(TICK_MS, () => {
      const { wokeMs } = this;
      this.#tickedMs = this.clock.nowMs();
      this.onTick(wokeMs);
      this.#tickLater();
    });
  }
}
