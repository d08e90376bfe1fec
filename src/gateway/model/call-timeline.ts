import type { Clock } from '../../lib/clock.js';

/** A piece of work of a call. Milliseconds of the epoch. */
export interface TimedStep {
  readonly name: string;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly isFailed: boolean;
}

export interface Timeline {
  readonly steps: readonly TimedStep[];
  readonly moments: readonly { readonly name: string; readonly atMs: number }[];
}

/** Per call: steps, and moments. */
const MAX_KEPT = 100;

/** When the steps of one call ran, for traces across services. Keeps nothing while nobody wants it. */
export class CallTimeline {
  readonly #steps: TimedStep[] = [];
  readonly #moments: { readonly name: string; readonly atMs: number }[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly isOn: boolean,
  ) {}

  step<T>(name: string, work: Promise<T>): Promise<T> {
    if (!this.isOn) return work;
    const startedMs = this.clock.wallMs();
    const keep = (isFailed: boolean): void => {
      if (this.#steps.length < MAX_KEPT) this.#steps.push({ name, startedMs, endedMs: this.clock.wallMs(), isFailed });
    };
    work.then(
      () => keep(false),
      () => keep(true),
    );
    return work;
  }

  moment(name: string): void {
    if (this.isOn && this.#moments.length < MAX_KEPT) this.#moments.push({ name, atMs: this.clock.wallMs() });
  }

  read(): Timeline {
    return { steps: this.#steps, moments: this.#moments };
  }
}
