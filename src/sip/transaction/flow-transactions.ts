interface Placed {
  /** Among the transactions of its connection. */
  place: number;
}

/** The transactions of one connection. Each knows its place, and leaves without being looked for. */
export class FlowTransactions<Transaction extends Placed> {
  readonly #all: Transaction[] = [];

  get size(): number {
    return this.#all.length;
  }

  all(): Transaction[] {
    return [...this.#all];
  }

  /** It is in no other. */
  add(transaction: Transaction): void {
    transaction.place = this.#all.length;
    this.#all.push(transaction);
  }

  /** Nothing when it left already. */
  delete(transaction: Transaction): void {
    const { place } = transaction;
    if (this.#all[place] !== transaction) return;
    const last = this.#all.pop();
    if (last === undefined || last === transaction) return;
    this.#all[place] = last;
    last.place = place;
  }
}
