import { HANG_GUARD_MS } from './hang-guard.js';

/** What came so far, in order, and the means to wait for more. */
export class Arrivals<T> {
  readonly all: T[] = [];
  readonly #waiting = new Set<() => void>();

  add(item: T): void {
    this.all.push(item);
    for (const look of [...this.#waiting]) look();
  }

  /** Resolves with what `look` returns as soon as that is not `undefined`; looks at each arrival. */
  async until<R>(look: (all: readonly T[]) => R | undefined, limitMs = HANG_GUARD_MS): Promise<R> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(once);
        reject(new Error(`not within ${String(limitMs)} ms: ${String(this.all.length)} came`));
      }, limitMs);
      const once = (): void => {
        const found = look(this.all);
        if (found === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(once);
        resolve(found);
      };
      this.#waiting.add(once);
      once();
    });
  }

  /** The one at this place, once it is there. */
  at(index: number, limitMs = HANG_GUARD_MS): Promise<T> {
    return this.until((all) => all[index], limitMs);
  }
}
