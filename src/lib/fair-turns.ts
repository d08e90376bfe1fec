import pLimit, { type LimitFunction } from 'p-limit';

/** Those of one owner wait for each other, and those of several take turns: who sends much waits for himself. */
export interface TurnLimits {
  /** Pieces of work at the same time, each of another owner. */
  readonly atOnce: number;
  /** Sum of the sizes of what an owner has running and waiting. */
  readonly maxSize: number;
}

/** Runs pieces of work of several owners, so that none waits for more than one piece of each other owner. */
export class FairTurns {
  readonly #turn: LimitFunction;
  readonly #byOwner = new Map<string, { readonly own: LimitFunction; size: number }>();

  constructor(private readonly limits: TurnLimits) {
    this.#turn = pLimit(limits.atOnce);
  }

  /**
   * @param size of the work, in the unit of `maxSize`
   * @returns `null`: the owner has too much waiting, and the work does not run
   */
  run<T>(owner: string, size: number, work: () => Promise<T>): Promise<T> | null {
    const queue = this.#byOwner.get(owner) ?? { own: pLimit(1), size: 0 };
    if (queue.size + size > this.limits.maxSize) return null;
    this.#byOwner.set(owner, queue);
    queue.size += size;
    return queue
      .own(() => this.#turn(work))
      .finally(() => {
        queue.size -= size;
        if (queue.size === 0) this.#byOwner.delete(owner);
      });
  }
}
