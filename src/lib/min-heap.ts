/** An item's place in a heap; given back to remove the item. */
export interface HeapEntry<T> {
  readonly key: number;
  readonly value: T;
  index: number;
}

/** A binary min-heap that can drop any entry in O(log n): the one list of timers of a driver. */
export class MinHeap<T> {
  readonly #entries: HeapEntry<T>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  peek(): HeapEntry<T> | undefined {
    return this.#entries[0];
  }

  push(key: number, value: T): HeapEntry<T> {
    const entry: HeapEntry<T> = { key, value, index: this.#entries.length };
    this.#entries.push(entry);
    this.#up(entry);
    return entry;
  }

  pop(): HeapEntry<T> | undefined {
    const top = this.#entries[0];
    if (top !== undefined) this.remove(top);
    return top;
  }

  /** Drops an entry. False when it is gone already. */
  remove(entry: HeapEntry<T>): boolean {
    if (this.#entries[entry.index] !== entry) return false;
    const last = this.#entries.pop();
    const hole = entry.index;
    entry.index = -1;
    if (last === undefined || last === entry) return true;
    this.#place(last, hole);
    this.#up(last);
    this.#down(last);
    return true;
  }

  #place(entry: HeapEntry<T>, index: number): void {
    this.#entries[index] = entry;
    entry.index = index;
  }

  #up(entry: HeapEntry<T>): void {
    let index = entry.index;
    while (index > 0) {
      const parent = this.#entries[(index - 1) >> 1];
      if (parent === undefined || parent.key <= entry.key) break;
      const parentIndex = parent.index;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(entry, index);
  }

  #down(entry: HeapEntry<T>): void {
    let index = entry.index;
    for (;;) {
      const left = this.#entries[2 * index + 1];
      const right = this.#entries[2 * index + 2];
      const child = right !== undefined && left !== undefined && right.key < left.key ? right : left;
      if (child === undefined || child.key >= entry.key) break;
      const childIndex = child.index;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(entry, index);
  }
}
