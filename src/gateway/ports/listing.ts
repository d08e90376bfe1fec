import type { BeginningCall, CallInProgress } from '../model/live-calls.js';
import type { OrgRecord } from '../model/records.js';
import type { ApiKeyRecord } from './stores.js';

// How the stores list things, the same in both adapters: their orders, the members of their indexes, and calls in progress.

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

/** A call as it stands in its organization's list of those in progress. */
export interface LiveEntry {
  readonly callId: string;
  readonly member: string;
  readonly text: string;
}

type Listed = Omit<CallInProgress, 'org_id' | 'answer'>;

/** The index member's id is what stands behind the time: see `recordMember`. */
export function liveMemberOf({ started_at: startedAt, call_id: callId }: BeginningCall): string {
  return recordMember(startedAt, callId);
}

export function liveEntry(call: BeginningCall, to: string, gateway: string): LiveEntry {
  const listed: Listed = { ...call, to, gateway };
  return { callId: call.call_id, member: liveMemberOf(call), text: JSON.stringify(listed) };
}

export function readLiveEntry(orgId: string, text: string): CallInProgress {
  // An earlier version lists no direction.
  return { direction: 'inbound', ...(JSON.parse(text) as Omit<Listed, 'direction'>), org_id: orgId, answer: null };
}
