import type { E164 } from '../contracts/e164.js';
import type { NumberRecord, Route } from '../contracts/records.js';
import type { RouteStore } from '../gateway/ports.js';
import { agentKey, numberKey, orgKey } from './keys.js';
import { LruMap } from './lru.js';
import { decodeRecord, type RedisConnection } from './redis.js';

/** Whose number it was at the last look-up. Only tells what to ask for: what it names is read again each time. */
interface Hint {
  readonly orgId: string;
  readonly agentId: string | null;
}

const DEFAULT_HINTS = 50_000;

/** What a call needs, in one round trip when the hint is right and in two when it is wrong or missing. */
export class RedisRouteStore implements RouteStore {
  readonly #redis: RedisConnection;
  readonly #hints: LruMap<E164, Hint>;

  constructor(redis: RedisConnection, maxHints = DEFAULT_HINTS) {
    this.#redis = redis;
    this.#hints = new LruMap(maxHints);
  }

  async lookup(number: E164): Promise<Route | null> {
    const hint = this.#hints.get(number);
    const [numberText = null, orgText = null, agentText = null] = await this.#getAll([
      numberKey(number),
      ...(hint === undefined ? [] : keysOf(hint)),
    ]);
    const record = decodeRecord('number', numberText);
    if (record === null || record.inbound === null) {
      this.#hints.delete(number);
      return null;
    }
    const wanted: Hint = { orgId: record.org_id, agentId: record.inbound.agent_id };
    if (hint?.orgId === wanted.orgId && hint.agentId === wanted.agentId) return route(record, orgText, agentText);
    const [org = null, agent = null] = await this.#getAll(keysOf(wanted));
    this.#hints.set(number, wanted);
    return route(record, org, agent);
  }

  async #getAll(keys: readonly string[]): Promise<(string | null)[]> {
    return this.#redis.run(async (client) => {
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.get(key);
      const answers = (await pipeline.exec()) ?? [];
      return answers.map(([error, value]) => {
        if (error !== null) throw error;
        return typeof value === 'string' ? value : null;
      });
    });
  }
}

function keysOf(hint: Hint): string[] {
  return hint.agentId === null ? [orgKey(hint.orgId)] : [orgKey(hint.orgId), agentKey(hint.agentId)];
}

/** `null` without the organization: a number that nobody owns any more is attached to nothing. */
function route(number: NumberRecord, orgText: string | null, agentText: string | null): Route | null {
  const org = decodeRecord('org', orgText);
  const agent = decodeRecord('agent', agentText);
  return org === null ? null : { number, org, agent: agent?.org_id === org.org_id ? agent : null };
}
