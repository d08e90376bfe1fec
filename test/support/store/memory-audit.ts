import { isoNow, type Clock } from '../../../src/lib/clock.js';
import type { AuditChange, AuditEntry } from '../../../src/gateway/model/audit-entry.js';
import { MAX_AUDIT_ENTRIES, type AuditLog } from '../../../src/gateway/ports/stores.js';

type Logged = Omit<AuditEntry, 'org_id'>;

export class MemoryAuditLog implements AuditLog {
  /** Newest first. */
  readonly #byOrg = new Map<string, readonly Logged[]>();
  readonly #clock: Clock;
  #written = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  append(orgId: string, change: AuditChange): Promise<void> {
    this.#written += 1;
    const entry: Logged = { id: `${String(this.#clock.wallMs())}-${String(this.#written)}`, at: isoNow(this.#clock), ...change };
    this.#byOrg.set(orgId, [entry, ...(this.#byOrg.get(orgId) ?? [])].slice(0, MAX_AUDIT_ENTRIES));
    return Promise.resolve();
  }

  list(orgId: string, { take, before }: { readonly take: number; readonly before?: string }): Promise<readonly Logged[]> {
    const entries = this.#byOrg.get(orgId) ?? [];
    const from = before === undefined ? 0 : entries.findIndex(({ id }) => id === before) + 1;
    return Promise.resolve(before !== undefined && from === 0 ? [] : entries.slice(from, from + take));
  }
}
