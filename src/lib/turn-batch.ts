/**
 * Gathers what is sent in one turn of the event loop into one batch, in order: for channels whose cost is by the message, as that
 * between threads.
 */
export class TurnBatch<T> {
  #items: T[] = [];
  readonly #flush = (): void => this.flush();

  constructor(private readonly send: (items: readonly T[]) => void) {}

  push(item: T): void {
    if (this.#items.push(item) === 1) setImmediate(this.#flush);
  }

  /** Sends at once what waits. */
  flush(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    this.send(items);
  }
}
