interface Cell<V> {
  value: V;
}

/**
 * A map whose entries come and go: calls, requests that wait. A `Map` leaves its entries in each table that it outgrows, and V8 keeps such a
 * table until a full collection, with all that came after it: half of what its collections of young objects copied. Here a table holds
 * cells, and `delete` empties the cell.
 */
export class PassingMap<K, V> implements ReadonlyMap<K, V> {
  readonly #cells = new Map<K, Cell<V>>();

  constructor(entries: Iterable<readonly [K, V]> = []) {
    for (const [key, value] of entries) this.set(key, value);
  }

  get size(): number {
    return this.#cells.size;
  }

  has(key: K): boolean {
    return this.#cells.has(key);
  }

  get(key: K): V | undefined {
    return this.#cells.get(key)?.value;
  }

  set(key: K, value: V): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { value });
    else cell.value = value;
  }

  /** For a key that the map does not have: it is not looked for. */
  add(key: K, value: V): void {
    this.#cells.set(key, { value });
  }

  /** False: it had none. */
  delete(key: K): boolean {
    return this.#empty(key, this.#cells.get(key));
  }

  /** False: it had not this value. */
  deleteOnly(key: K, value: V): boolean {
    const cell = this.#cells.get(key);
    return cell?.value === value && this.#empty(key, cell);
  }

  #empty(key: K, cell: Cell<V | undefined> | undefined): boolean {
    if (cell === undefined) return false;
    cell.value = undefined;
    return this.#cells.delete(key);
  }

  clear(): void {
    for (const key of this.#cells.keys()) this.delete(key);
  }

  keys(): MapIterator<K> {
    return this.#cells.keys();
  }

  *values(): Generator<V, undefined> {
    for (const [, value] of this) yield value;
  }

  entries(): Generator<[K, V], undefined> {
    return this[Symbol.iterator]();
  }

  *[Symbol.iterator](): Generator<[K, V], undefined> {
    for (const [key, { value }] of this.#cells) yield [key, value];
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) visit(value, key, this);
  }
}
