import pLimit, { type LimitFunction } from 'p-limit';
import type { Clock } from './clock.js';

export interface TurnLimits {
  /** Pieces of work at the same time. */
  readonly atOnce: number;
  /** Pieces of one owner at the same time. */
  readonly atOnceOfOne: number;
  /** Sum of the sizes of what an owner has running and waiting. */
  readonly maxSize: number;
  /** How many times as long as its work took an owner rests before its next. */
  readonly rest: number;
}

interface Owner {
  readonly own: LimitFunction;
  size: number;
}

/** Runs pieces of work of several owners in turns: before its own piece, an owner waits for `atOnceOfOne` pieces of each other one at most. */
export class FairTurns {
  readonly #turn: LimitFunction;
  readonly #owners = new Map<string, Owner>();

  constructor(
    private readonly limits: TurnLimits,
    private readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>,
  ) {
    this.#turn = pLimit(limits.atOnce);
  }

  /**
   * @param size of the work, in the unit of `maxSize`
   * @returns `null`: the owner has too much waiting, and the work does not run
   */
  run<T>(name: string, size: number, work: () => Promise<T>): Promise<T> | null {
    const owner = this.#owners.get(name) ?? { own: pLimit(this.limits.atOnceOfOne), size: 0 };
    if (owner.size + size > this.limits.maxSize) return null;
    this.#owners.set(name, owner);
    owner.size += size;
    return new Promise((resolve, reject) => {
      void owner.own(async () => {
        const tookMs = await this.#turn(async () => {
          const startedMs = this.clock.nowMs();
          await work().then(resolve, reject);
          return this.clock.nowMs() - startedMs;
        });
        owner.size -= size;
        if (tookMs * this.limits.rest > 0) await new Promise<void>((rested) => void this.clock.setTimer(tookMs * this.limits.rest, rested));
        if (owner.size === 0) this.#owners.delete(name);
      });
    });
  }
}
