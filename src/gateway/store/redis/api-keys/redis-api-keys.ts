import { recentlyUsed } from '../../../../lib/recently-used.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { apiKeyIdKey, apiKeyKey, OPERATOR_KEYS_KEY, orgKeysKey } from '../keys.js';
import { apiKeyDigest, newApiKey, newApiKeyRecord, sameDigest, TOUCH_INTERVAL_MS } from '../../new-records.js';
import { newestFirst } from '../../../ports/listing.js';
import type { RedisConnection } from '../redis.js';
import type { ApiKeyRecord, ApiKeyStore } from '../../../ports/stores.js';

const TOUCHED_KEYS = 10_000;

// A hash, not JSON: noting a use writes one field and so cannot undo a revocation that happens at the same time.
type Fields = Record<string, string>;

export class RedisApiKeyStore implements ApiKeyStore {
  readonly #touchedAtMs = recentlyUsed<string, number>(TOUCHED_KEYS);

  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
  ) {}

  async create(orgId: string | null, name: string): Promise<{ readonly key: string; readonly record: ApiKeyRecord }> {
    const key = newApiKey();
    return { key, record: await this.restore(orgId, name, key) };
  }

  async restore(orgId: string | null, name: string, key: string): Promise<ApiKeyRecord> {
    const digest = apiKeyDigest(key);
    const existing = await this.#read(digest);
    const record = existing ?? newApiKeyRecord(orgId, name, isoNow(this.clock));
    // The ways to the key first: a key that works and can neither be listed nor revoked must not exist.
    await this.redis.run((client) => client.sadd(keysKeyOf(record.org_id), digest));
    await this.redis.run((client) => client.set(apiKeyIdKey(record.key_id), digest));
    if (existing === null) await this.redis.run((client) => client.hset(apiKeyKey(digest), toFields(record, digest)));
    return record;
  }

  async find(key: string): Promise<ApiKeyRecord | null> {
    const digest = apiKeyDigest(key);
    const record = await this.#read(digest);
    return record === null || record.revoked_at !== null ? null : record;
  }

  async touch(record: ApiKeyRecord): Promise<void> {
    const nowMs = this.clock.wallMs();
    const lastMs = this.#touchedAtMs.get(record.key_id) ?? (record.last_used_at === null ? -Infinity : Date.parse(record.last_used_at));
    if (nowMs - lastMs < TOUCH_INTERVAL_MS) return;
    this.#touchedAtMs.set(record.key_id, nowMs);
    const digest = await this.redis.run((client) => client.get(apiKeyIdKey(record.key_id)));
    if (digest === null) return;
    await this.redis.run((client) => client.hset(apiKeyKey(digest), 'last_used_at', new Date(nowMs).toISOString()));
  }

  async list(orgId: string | null): Promise<readonly ApiKeyRecord[]> {
    const digests = await this.redis.run((client) => client.smembers(keysKeyOf(orgId)));
    const found = await Promise.all(digests.map((digest) => this.#read(digest)));
    return found.filter((record) => record !== null).sort(newestFirst);
  }

  async revoke(keyId: string): Promise<ApiKeyRecord | null> {
    const digest = await this.redis.run((client) => client.get(apiKeyIdKey(keyId)));
    const record = digest === null ? null : await this.#read(digest);
    if (digest === null || record === null) return null;
    // hsetnx: the time of the first revocation stays.
    await this.redis.run((client) => client.hsetnx(apiKeyKey(digest), 'revoked_at', isoNow(this.clock)));
    return this.#read(digest);
  }

  async #read(digest: string): Promise<ApiKeyRecord | null> {
    return fromFields(await this.redis.run((client) => client.hgetall(apiKeyKey(digest))), digest);
  }
}

function keysKeyOf(orgId: string | null): string {
  return orgId === null ? OPERATOR_KEYS_KEY : orgKeysKey(orgId);
}

function toFields(record: ApiKeyRecord, digest: string): Fields {
  return { digest, key_id: record.key_id, org_id: record.org_id ?? '', name: record.name, created_at: record.created_at };
}

function fromFields(fields: Fields, digest: string): ApiKeyRecord | null {
  const { key_id, org_id, name, created_at } = fields;
  if (key_id === undefined || org_id === undefined || name === undefined || created_at === undefined) return null;
  // Found by its digest, so equal already; compared all the same, in constant time, so that no change of the look-up can
  // ever let a key in that only begins like another.
  if (!sameDigest(fields.digest ?? '', digest)) return null;
  return {
    key_id,
    org_id: org_id === '' ? null : org_id,
    name,
    created_at,
    last_used_at: fields.last_used_at ?? null,
    revoked_at: fields.revoked_at ?? null,
  };
}
