import type { OrgRecord } from '../../../model/records.js';
import { err, ok, type Result } from '../../../../lib/result.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { orgKey, ORGS_KEY } from '../keys.js';
import { newOrgRecord } from '../../new-records.js';
import { byName } from '../../../ports/listing.js';
import { updateRecord } from '../optimistic-update.js';
import { decodeRecord, type RedisConnection } from '../redis.js';
import type { NewOrg, OrgChange, OrgStore } from '../../../ports/stores.js';

export class RedisOrgStore implements OrgStore {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
  ) {}

  async create(org: NewOrg): Promise<OrgRecord> {
    const record = newOrgRecord(org, isoNow(this.clock));
    // The list first: an id in it without a record is skipped, a record that is in no list would be lost.
    await this.redis.run((client) => client.sadd(ORGS_KEY, record.org_id));
    const existing = await this.redis.compareAndSet(orgKey(record.org_id), null, JSON.stringify(record));
    return decodeRecord('org', existing) ?? record;
  }

  async get(orgId: string): Promise<OrgRecord | null> {
    return decodeRecord('org', await this.redis.run((client) => client.get(orgKey(orgId))));
  }

  async change(orgId: string, change: OrgChange): Promise<OrgRecord | null> {
    const changed = (current: OrgRecord | null): Result<OrgRecord, 'not-found'> =>
      current === null ? err('not-found') : ok({ ...current, ...change });
    const outcome = await updateRecord(this.redis, 'org', orgKey(orgId), changed);
    return outcome.ok ? outcome.value : null;
  }

  async list(): Promise<readonly OrgRecord[]> {
    const ids = await this.redis.run((client) => client.smembers(ORGS_KEY));
    const texts = await this.redis.getMany(ids.map(orgKey));
    return texts.flatMap((text) => decodeRecord('org', text) ?? []).sort(byName);
  }
}
