/**
 * Gathers what is written in one turn of the event loop into one write: a write costs as much as the work of a message, on both ends.
 * (Gathering over a millisecond saved a sixth of the CPU at half load, and cost twice the latency: docs/performance.md.)
 */
export class TurnWriter {
  #texts: string[] = [];
  readonly #flush = (): void => this.flush();

  constructor(private readonly write: (text: string) => void) {}

  push(text: string): void {
    // It goes out when everything that has arrived was looked at.
    if (this.#texts.push(text) === 1) setImmediate(this.#flush);
  }

  /** Writes at once what waits. */
  flush(): void {
    if (this.#texts.length === 0) return;
    const text = this.#texts.length === 1 ? (this.#texts[0] ?? '') : this.#texts.join('');
    this.#texts = [];
    this.write(text);
  }

  /** What waits is not written any more. */
  clear(): void {
    this.#texts = [];
  }
}
