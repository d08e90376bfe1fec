import type { Clock } from '../../lib/clock.js';
import { Standstill } from '../../lib/standstill.js';

/** Within this time after Redis answers, the SIP server says which calls another host took. */
const TOLD_MS = 1_000;

/** Holds the events of calls while this process, which stood still, does not know whether another host took them. */
export class AwakeGate {
  readonly #held = new Set<() => void>();
  readonly #standstill: Standstill;
  #answeredMs: number | null = null;

  /** @param ask resolves when Redis answers */
  constructor(
    private readonly clock: Clock,
    private readonly ask: () => Promise<unknown>,
  ) {
    this.#standstill = new Standstill(clock, (wokeMs) => this.#onTick(wokeMs));
  }

  /** True: it is called later. */
  holds(work: () => void): boolean {
    if (this.#standstill.wokeMs === null) return false;
    this.#held.add(work);
    return true;
  }

  close(): void {
    this.#standstill.close();
  }

  #onTick(wokeMs: number | null): void {
    if (wokeMs === null) return;
    const nowMs = this.clock.nowMs();
    if (this.#answeredMs === null || this.#answeredMs < wokeMs) {
      this.ask().then(
        () => (this.#answeredMs ??= this.clock.nowMs()),
        () => undefined,
      );
      this.#answeredMs = null;
      return;
    }
    if (nowMs - this.#answeredMs < TOLD_MS) return;
    this.#answeredMs = null;
    this.#standstill.confirm(nowMs);
    const held = [...this.#held];
    this.#held.clear();
    for (const work of held) work();
  }
}
