export interface ScoredMember {
  readonly member: string;
  readonly score: number;
}

/** Members by score, those of one score by their bytes. */
export class SortedSet {
  readonly #scores = new Map<string, number>();
  readonly #order: ScoredMember[] = [];

  get size(): number {
    return this.#scores.size;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  set(member: string, given: number): void {
    // Redis has no -0 in a small set.
    const score = given === 0 ? 0 : given;
    const before = this.#scores.get(member);
    if (before === score) return;
    if (before !== undefined) this.#order.splice(this.#place(member, before), 1);
    this.#scores.set(member, score);
    this.#order.splice(this.#place(member, score), 0, { member, score });
  }

  delete(member: string): boolean {
    const score = this.#scores.get(member);
    if (score === undefined) return false;
    this.#order.splice(this.#place(member, score), 1);
    return this.#scores.delete(member);
  }

  /** Its place, from 0. */
  rank(member: string): number | undefined {
    const score = this.#scores.get(member);
    return score === undefined ? undefined : this.#place(member, score);
  }

  slice(from: number, to: number): readonly ScoredMember[] {
    return this.#order.slice(from, to);
  }

  /** How many members come first for which this holds: it holds for none behind one for which it does not. */
  countWhile(holds: (one: ScoredMember) => boolean): number {
    let [low, high] = [0, this.#order.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const one = this.#order[middle];
      if (one !== undefined && holds(one)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #place(member: string, score: number): number {
    return this.countWhile((one) => one.score < score || (one.score === score && one.member < member));
  }
}
