import { decodeRecord, type RecordTypes, type RedisConnection } from '../redis.js';
import type { LRUCache } from 'lru-cache';
import { recentlyUsed } from '../../../../lib/recently-used.js';
import type { E164 } from '../../../model/e164.js';
import type { Route } from '../../../model/records.js';
import { agentKey, numberKey, numberOfKey, orgKey } from '../keys.js';

/** The stored texts of a route: a tenth of the memory that the objects would take. */
interface RouteTexts {
  readonly number: string;
  readonly org: string;
  readonly agent: string | null;
}

interface Remembered {
  readonly texts: RouteTexts;
  readonly orgId: string;
  readonly agentId: string | null;
  /** When it was last known to be true. */
  atMs: number;
  /** The subscription to changes under which it was read. */
  readonly subscription: number;
}

/** A look-up under way: the subscription under which it began, and the changes that are told meanwhile. */
export interface Watch {
  readonly subscription: number;
  readonly changed: Set<string>;
}

/**
 * Results of the last look-up of each number. They are valid while every change is announced, or while Redis is away; otherwise they only
 * say what to ask for. A changed entry is dropped.
 */
export class RouteCache {
  readonly #byNumber: LRUCache<E164, Remembered>;
  readonly #watches = new Set<Watch>();
  #subscription = 0;

  constructor(maxNumbers: number) {
    this.#byNumber = recentlyUsed(maxNumbers);
  }

  get(number: E164): Readonly<Remembered> | undefined {
    return this.#byNumber.get(number);
  }

  /** What is remembered of a number, if every change since it was read was told. @param atMs now */
  getTrue(number: E164, atMs: number): Readonly<Remembered> | undefined {
    const known = this.#byNumber.get(number);
    if (known?.subscription !== this.#subscription) return undefined;
    known.atMs = atMs;
    return known;
  }

  /** Changes may have been missed. What was read before tells what to ask for, and stands in for Redis, and no more. */
  onGap(): void {
    this.#subscription += 1;
  }

  /** Begins a look-up. Its answer may be older than a change that is told meanwhile. */
  watch(): Watch {
    const watch: Watch = { subscription: this.#subscription, changed: new Set() };
    this.#watches.add(watch);
    return watch;
  }

  endWatch(watch: Watch): void {
    this.#watches.delete(watch);
  }

  /** Keeps what a look-up found, unless some of it changed meanwhile. */
  keep(route: Route, texts: RouteTexts, atMs: number, watch: Watch): void {
    const { phone_number: number, org_id: orgId, inbound } = route.number;
    const { subscription, changed } = watch;
    const remembered = { texts, orgId, agentId: inbound?.agent_id ?? null, atMs, subscription };
    if (keysOf(number, remembered).some((key) => changed.has(key))) this.forget(number);
    else this.#byNumber.set(number, remembered);
  }

  forget(number: E164): void {
    this.#byNumber.delete(number);
  }

  /** The record under this key is another one now. */
  onChange(key: string): void {
    for (const { changed } of this.#watches) changed.add(key);
    const number = numberOfKey(key);
    if (number !== null) return this.forget(number);
    for (const [one, remembered] of [...this.#byNumber]) if (keysOf(one, remembered).includes(key)) this.forget(one);
  }

  /** Every key whose record is remembered, with the record. */
  records(): Map<string, string | null> {
    const records = new Map<string, string | null>();
    for (const [number, { texts, orgId, agentId }] of this.#byNumber) {
      records.set(numberKey(number), texts.number).set(orgKey(orgId), texts.org);
      if (agentId !== null) records.set(agentKey(agentId), texts.agent);
    }
    return records;
  }
}

function keysOf(number: E164, { orgId, agentId }: Remembered): string[] {
  return [numberKey(number), orgKey(orgId), ...(agentId === null ? [] : [agentKey(agentId)])];
}

/** `null` without the organization: a number that nobody owns any more is attached to nothing. */
export function routeOf(texts: { readonly [K in keyof RouteTexts]: string | null }, records: RecordCache): Route | null {
  const number = records.decode('number', texts.number);
  const org = records.decode('org', texts.org);
  const agent = records.decode('agent', texts.agent);
  if (number === null || number.inbound === null || org === null) return null;
  return { number, org, agent: agent?.org_id === org.org_id ? agent : null };
}

/** Records that calls read again and again, decoded once for as long as their text stays the same. Nobody may change them. */
export class RecordCache {
  readonly #byText: { readonly [K in 'number' | 'org' | 'agent']: LRUCache<string, RecordTypes[K]> };

  /** @param maxRecords of each kind */
  constructor(maxRecords: number) {
    this.#byText = {
      number: recentlyUsed(maxRecords),
      org: recentlyUsed(maxRecords),
      agent: recentlyUsed(maxRecords),
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

const READ_AT_ONCE = 500;

/** After a gap in Redis' announcements: drops cached records that have changed. */
export async function dropOutdated(redis: RedisConnection, remembered: RouteCache): Promise<void> {
  const records = [...remembered.records()];
  for (let from = 0; from < records.length; from += READ_AT_ONCE) {
    const batch = records.slice(from, from + READ_AT_ONCE);
    const texts = await redis.pipeline(batch.map(([key]) => ['get', key]));
    batch.forEach(([key, text], index) => {
      if (texts[index] !== text) remembered.onChange(key);
    });
  }
}
