import type { OrgRecord } from '../../../model/records.js';
import { StoreUnavailableError } from '../../../ports/ports.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { orgKey, ORGS_KEY } from '../keys.js';
import { newOrgRecord } from '../../new-records.js';
import { byName } from '../../../ports/ordering.js';
import { decodeRecord, type RedisConnection } from '../redis.js';
import type { NewOrg, OrgChange, OrgStore } from '../../../ports/stores.js';

const MAX_ATTEMPTS = 50;

export class RedisOrgStore implements OrgStore {
  readonly #redis: RedisConnection;
  readonly #clock: Clock;

  constructor(redis: RedisConnection, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  async create(org: NewOrg): Promise<OrgRecord> {
    const record = newOrgRecord(org, isoNow(this.#clock));
    // The list first: an id in it without a record is skipped, a record that is in no list would be lost.
    await this.#redis.run((client) => client.sadd(ORGS_KEY, record.org_id));
    const existing = await this.#redis.compareAndSet(orgKey(record.org_id), null, JSON.stringify(record));
    return decodeRecord('org', existing) ?? record;
  }

  async get(orgId: string): Promise<OrgRecord | null> {
    return decodeRecord('org', await this.#redis.run((client) => client.get(orgKey(orgId))));
  }

  async change(orgId: string, change: OrgChange): Promise<OrgRecord | null> {
    const key = orgKey(orgId);
    let raw = await this.#redis.run((client) => client.get(key));
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const current = decodeRecord('org', raw);
      if (current === null) return null;
      const changed: OrgRecord = { ...current, ...change };
      const now = await this.#redis.compareAndSet(key, raw, JSON.stringify(changed));
      if (now === undefined) return changed;
      raw = now;
    }
    throw new StoreUnavailableError('too many writers on one organization');
  }

  async list(): Promise<readonly OrgRecord[]> {
    const ids = await this.#redis.run((client) => client.smembers(ORGS_KEY));
    const texts = await this.#redis.getMany(ids.map(orgKey));
    return texts.flatMap((text) => decodeRecord('org', text) ?? []).sort(byName);
  }
}
