import { within, type Clock } from './clock.js';

type Closer = () => void | Promise<void>;

/** What happened to one closer that did not end well. */
export interface ScopeFailure {
  readonly name: string;
  readonly error: unknown;
}

/**
 * Owns resources and closes them once, in the reverse order of their opening, each within a time limit.
 * A closer that fails or hangs is reported and does not keep the others from closing.
 */
export class Scope {
  readonly #limitMs: number;
  readonly #closers: { name: string; close: Closer }[] = [];
  #closing: Promise<readonly ScopeFailure[]> | undefined;
  #isClosed = false;

  /** @param limitMs longest time that one closer may take, in milliseconds */
  constructor(
    private readonly clock: Clock,
    limitMs = 5_000,
  ) {
    this.#limitMs = limitMs;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Adds a resource. In a scope that is closing already it is closed at once. */
  defer(name: string, close: Closer): void {
    if (this.#closing !== undefined) {
      this.#closing = this.#closing.then(async (failures) => [...failures, ...(await this.#closeOne(name, close))]);
      return;
    }
    this.#closers.push({ name, close });
  }

  /** Closes everything; a second call waits for the first one. Returns what failed. */
  close(): Promise<readonly ScopeFailure[]> {
    this.#isClosed = true;
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<readonly ScopeFailure[]> {
    const failures: ScopeFailure[] = [];
    for (let next = this.#closers.pop(); next !== undefined; next = this.#closers.pop()) {
      failures.push(...(await this.#closeOne(next.name, next.close)));
    }
    return failures;
  }

  async #closeOne(name: string, close: Closer): Promise<ScopeFailure[]> {
    try {
      const closing = close();
      if (closing === undefined || (await within(this.clock, this.#limitMs, closing))) return [];
      return [{ name, error: new Error(`not closed within ${String(this.#limitMs)} ms`) }];
    } catch (error) {
      return [{ name, error }];
    }
  }
}
