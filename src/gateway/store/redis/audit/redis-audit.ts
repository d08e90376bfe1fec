import type { AuditChange, AuditEntry } from '../../../model/audit-entry.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { orgAuditKey } from '../keys.js';
import type { RedisConnection } from '../redis.js';
import { MAX_AUDIT_ENTRIES, type AuditLog } from '../../../ports/stores.js';

/** One stream an organization; its ids are those of the entries. */
export class RedisAuditLog implements AuditLog {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
  ) {}

  async append(orgId: string, change: AuditChange): Promise<void> {
    const text = JSON.stringify({ at: isoNow(this.clock), ...change });
    await this.redis.run((client) => client.xadd(orgAuditKey(orgId), 'MAXLEN', '~', MAX_AUDIT_ENTRIES, '*', 'entry', text));
  }

  async list(
    orgId: string,
    { take, before }: { readonly take: number; readonly before?: string },
  ): Promise<readonly Omit<AuditEntry, 'org_id'>[]> {
    const from = before === undefined ? '+' : `(${before}`;
    const found = await this.redis.run((client) => client.xrevrange(orgAuditKey(orgId), from, '-', 'COUNT', take));
    return found.map(([id, [, text = '{}']]) => ({ id, ...(JSON.parse(text) as Omit<AuditEntry, 'id' | 'org_id'>) }));
  }
}
