import type { Route } from '../contracts/records.js';
import type { Clock } from '../lib/clock.js';
import { NO_LOAD, type Load } from './policy/admission.js';

const SECOND_MS = 1_000;

interface NumberCount {
  calls: number;
  /** When calls of the last second were admitted, the oldest first. */
  admittedMs: number[];
}

/** Calls in progress and calls a second, as far as this process knows of them. Keeps nothing of a number that is quiet. */
export class CallCounters {
  readonly #numbers = new Map<string, NumberCount>();
  readonly #orgs = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** What is counted at the moment; zero for numbers and organizations without calls. */
  load(route: Route | null): Load {
    if (route === null) return NO_LOAD;
    const count = this.#numbers.get(route.number.phone_number);
    return {
      numberCalls: count?.calls ?? 0,
      numberCallsLastSecond: count === undefined ? 0 : this.#lastSecond(count).length,
      orgCalls: this.#orgs.get(route.org.org_id) ?? 0,
    };
  }

  /** Counts an admitted call; the returned function takes it back, once. */
  admit(route: Route): () => void {
    const { phone_number: number } = route.number;
    const { org_id: org } = route.org;
    const count = this.#numbers.get(number) ?? { calls: 0, admittedMs: [] };
    count.calls += 1;
    // Only a limit makes the times worth keeping, and no more of them than the limit looks at.
    const rate = route.number.inbound?.options.max_calls_per_second ?? null;
    if (rate !== null) count.admittedMs = [...this.#lastSecond(count), this.clock.nowMs()].slice(-rate);
    this.#numbers.set(number, count);
    this.#orgs.set(org, (this.#orgs.get(org) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      count.calls -= 1;
      if (count.calls === 0) this.#forgetWhenQuiet(number, count);
      const left = (this.#orgs.get(org) ?? 1) - 1;
      if (left > 0) this.#orgs.set(org, left);
      else this.#orgs.delete(org);
    };
  }

  /** The times of the last second outlive the calls: a number is forgotten when they are over as well. */
  #forgetWhenQuiet(number: string, count: NumberCount): void {
    if (this.#lastSecond(count).length > 0) this.clock.setTimer(SECOND_MS, () => this.#forgetWhenQuiet(number, count));
    else if (count.calls === 0) this.#numbers.delete(number);
  }

  /** Numbers that something is kept of. */
  get size(): number {
    return this.#numbers.size;
  }

  #lastSecond(count: NumberCount): number[] {
    const since = this.clock.nowMs() - SECOND_MS;
    return count.admittedMs.filter((at) => at > since);
  }
}
