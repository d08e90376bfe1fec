import type { OrgRecord } from '../model/records.js';
import type { ApiKeyRecord } from './stores.js';

// The orders in which the stores list things; the same in both adapters.

/** The order of `OrgStore.list`. */
export function byName(a: OrgRecord, b: OrgRecord): number {
  return a.name.localeCompare(b.name, 'en') || (a.org_id < b.org_id ? -1 : 1);
}

/** The order of `ApiKeyStore.list`. */
export function newestFirst(a: ApiKeyRecord, b: ApiKeyRecord): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1;
  return a.key_id < b.key_id ? -1 : 1;
}

/** Where a record stands in an index of its organization: text order is time order. @param at ISO 8601 */
export function recordMember(at: string, id: string): string {
  return `${callIndexTime(Date.parse(at))}:${id}`;
}

/** The id in a member of such an index. */
export function idOfMember(member: string): string {
  return member.slice(member.indexOf(':') + 1);
}

/** @param epochMs milliseconds since the Unix epoch */
export function callIndexTime(epochMs: number): string {
  return String(Math.max(0, Math.trunc(Number.isNaN(epochMs) ? 0 : epochMs))).padStart(15, '0');
}
