import type { E164 } from '../../../model/e164.js';
import type { NumberRecord, OrgRecord } from '../../../model/records.js';
import type { Clock } from '../../../../lib/clock.js';
import { numberKey, orgKey } from '../keys.js';
import type { RedisConnection } from '../redis.js';
import type { RecordCache, RouteCache } from '../routes/route-cache.js';

/** Number and organization that a placed call comes from: without a round trip where they are remembered, and no change was missed. */
export class DialRecords {
  constructor(
    private readonly redis: RedisConnection,
    private readonly remembered: RouteCache,
    private readonly records: RecordCache,
    private readonly freshness: { readonly isFresh: boolean },
    private readonly clock: Clock,
  ) {}

  /** `number`: of this organization. Rejects with `StoreUnavailableError`. */
  async read(orgId: string, from: E164): Promise<{ readonly number: NumberRecord | null; readonly org: OrgRecord | null }> {
    const { remembered, records, clock } = this;
    const known = this.freshness.isFresh ? remembered.getTrue(from, clock.nowMs()) : undefined;
    if (known?.orgId === orgId)
      return { number: records.decode('number', known.texts.number), org: records.decode('org', known.texts.org) };
    const watch = remembered.watch();
    try {
      const [numberText = null, orgText = null] = await this.redis.getMany([numberKey(from), orgKey(orgId)]);
      const [number, org] = [records.decode('number', numberText), records.decode('org', orgText)];
      if (numberText !== null && orgText !== null && number?.org_id === orgId && org !== null)
        remembered.keep({ number, org, agent: null }, { number: numberText, org: orgText, agent: null }, clock.nowMs(), watch);
      return { number: number?.org_id === orgId ? number : null, org };
    } finally {
      remembered.endWatch(watch);
    }
  }
}
