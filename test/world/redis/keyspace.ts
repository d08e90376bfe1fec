import type { Clock } from '../../../src/lib/clock.js';
import { RedisError } from './reply.js';
import { SortedSet } from './sorted-set.js';
import { Stream } from './stream.js';

type Value = string | Map<string, string> | Set<string> | string[] | SortedSet | Stream;

/** A type of value, as TYPE names it. */
export interface Kind<T extends Value> {
  readonly name: string;
  readonly is: (value: Value) => value is T;
  readonly create: () => T;
}

export const STRING: Kind<string> = { name: 'string', is: (value) => typeof value === 'string', create: () => '' };
export const HASH: Kind<Map<string, string>> = { name: 'hash', is: (value) => value instanceof Map, create: () => new Map() };
export const LIST: Kind<string[]> = { name: 'list', is: (value) => Array.isArray(value), create: () => [] };
export const SET: Kind<Set<string>> = { name: 'set', is: (value) => value instanceof Set, create: () => new Set() };
export const SORTED_SET: Kind<SortedSet> = { name: 'zset', is: (value) => value instanceof SortedSet, create: () => new SortedSet() };
export const STREAM: Kind<Stream> = { name: 'stream', is: (value) => value instanceof Stream, create: () => new Stream() };

const KINDS = [STRING, HASH, LIST, SET, SORTED_SET, STREAM];

interface Entry {
  /** Counts all keys that there ever were: a scan goes on behind the last one that it found. */
  readonly place: number;
  value: Value;
  /** Epoch milliseconds; `null`: it stays. */
  expiresMs: number | null;
}

/** The keys of one Redis. One is gone, for everybody, in the millisecond after that in which it expires. */
export class Keyspace {
  readonly #entries = new Map<string, Entry>();
  #places = 0;

  constructor(private readonly clock: Pick<Clock, 'wallMs'>) {}

  get nowMs(): number {
    return Math.floor(this.clock.wallMs());
  }

  /** Throws WRONGTYPE when the key is of another type. */
  find<T extends Value>(key: string, kind: Kind<T>): T | undefined {
    const entry = this.#live(key);
    if (entry === undefined) return undefined;
    if (!kind.is(entry.value)) throw new RedisError('WRONGTYPE Operation against a key holding the wrong kind of value');
    return entry.value;
  }

  /** As `find`; what is not there is made. What stays empty is to be dropped again (`dropEmpty`). */
  open<T extends Value>(key: string, kind: Kind<T>): T {
    const found = this.find(key, kind);
    if (found !== undefined) return found;
    const value = kind.create();
    this.#add(key, value, null);
    return value;
  }

  /** Sets a string, whatever the key was. */
  setString(key: string, value: string, expiresMs: number | null): void {
    const entry = this.#live(key);
    if (entry === undefined) return this.#add(key, value, expiresMs);
    entry.value = value;
    entry.expiresMs = expiresMs;
  }

  /** What has no members is no key. */
  dropEmpty(key: string): void {
    const value = this.#live(key)?.value;
    if (value === undefined || typeof value === 'string' || value instanceof Stream) return;
    if ((Array.isArray(value) ? value.length : value.size) === 0) this.#entries.delete(key);
  }

  delete(key: string): boolean {
    return this.#live(key) !== undefined && this.#entries.delete(key);
  }

  has(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  /** `none`: there is no such key. */
  type(key: string): string {
    const value = this.#live(key)?.value;
    return value === undefined ? 'none' : (KINDS.find((kind) => kind.is(value))?.name ?? 'none');
  }

  /** Epoch milliseconds; `null`: it stays; `undefined`: there is no such key. */
  expiresMs(key: string): number | null | undefined {
    return this.#live(key)?.expiresMs;
  }

  /** @param atMs `null`: it stays */
  expire(key: string, atMs: number | null): void {
    const entry = this.#live(key);
    if (entry !== undefined) entry.expiresMs = atMs;
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Keys and their places, of those behind a place, in the order in which they were made. */
  *keys(behind = 0): Generator<readonly [key: string, place: number]> {
    const { nowMs } = this;
    for (const [key, { place, expiresMs }] of this.#entries)
      if (place > behind && (expiresMs === null || expiresMs >= nowMs)) yield [key, place];
  }

  #add(key: string, value: Value, expiresMs: number | null): void {
    this.#places += 1;
    this.#entries.set(key, { place: this.#places, value, expiresMs });
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresMs === null || entry.expiresMs >= this.nowMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}
