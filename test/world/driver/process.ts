import { AsyncLocalStorage } from 'node:async_hooks';

const inside = new AsyncLocalStorage<WorldProcess>();

/** Something that a process has open, and loses when it is killed. */
export interface Possession {
  /** The process is gone: the other side hears of it, this side nothing. */
  cut(): void;
}

/** One of the product's processes. All run in the process of the test; whatever they open or wait for is noted as theirs, so that one can be killed. */
export class WorldProcess {
  #diedMs: number | null = null;
  readonly #possessions = new Set<Possession>();

  constructor(readonly name: string) {}

  get isDead(): boolean {
    return this.#diedMs !== null;
  }

  /** Wall time; `null`: it lives. */
  get diedMs(): number | null {
    return this.#diedMs;
  }

  run<T>(work: () => T): T {
    return inside.run(this, work);
  }

  opened(possession: Possession): void {
    this.#possessions.add(possession);
  }

  closed(possession: Possession): void {
    this.#possessions.delete(possession);
  }

  /** As `kill -9` does: it neither runs nor hears any more, and its connections are closed by the system. */
  kill(): void {
    this.#diedMs ??= Date.now();
    for (const possession of [...this.#possessions]) possession.cut();
    this.#possessions.clear();
  }
}

/** The process whose code runs now; `null`: the test's own, such as a carrier or a bot. */
export function currentProcess(): WorldProcess | null {
  return inside.getStore() ?? null;
}

/** Bound to the process that asks now: called from anywhere, it runs there, and not at all when that process is dead. */
export function boundToProcess<A extends readonly unknown[]>(work: (...given: A) => unknown): (...given: A) => void {
  const owner = currentProcess();
  if (owner === null) return (...given) => void inside.exit(() => work(...given));
  return (...given) => {
    if (!owner.isDead) owner.run(() => work(...given));
  };
}
