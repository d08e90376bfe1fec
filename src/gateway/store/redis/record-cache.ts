import { LRUCache } from 'lru-cache';
import { decodeRecord, type RecordTypes } from './redis.js';

/** Records that calls read again and again, decoded once for as long as their text stays the same. Nobody may change them. */
export class RecordCache {
  readonly #byText: { readonly [K in 'number' | 'org' | 'agent']: LRUCache<string, RecordTypes[K]> };

  /** @param maxRecords of each kind */
  constructor(maxRecords: number) {
    this.#byText = {
      number: new LRUCache({ max: maxRecords }),
      org: new LRUCache({ max: maxRecords }),
      agent: new LRUCache({ max: maxRecords }),
    };
  }

  decode<K extends 'number' | 'org' | 'agent'>(kind: K, text: string | null): RecordTypes[K] | null {
    if (text === null) return null;
    const known = this.#byText[kind].get(text);
    if (known !== undefined) return known;
    const record = decodeRecord(kind, text);
    if (record !== null) this.#byText[kind].set(text, record);
    return record;
  }
}
