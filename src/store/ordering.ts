import type { AgentRecord, ToolRecord } from '../contracts/agent-record.js';
import type { OrgRecord } from '../contracts/records.js';
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

/** The order of `AgentStore.list`. */
export function oldestFirst(a: AgentRecord, b: AgentRecord): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.agent_id < b.agent_id ? -1 : 1;
}

/** The order of `ToolStore.list`. */
export function oldestToolFirst(a: ToolRecord, b: ToolRecord): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.tool_id < b.tool_id ? -1 : 1;
}

/** Where a call stands in its organization's index: text order is time order. */
export function callIndexMember(startedAt: string, callId: string): string {
  return `${callIndexTime(Date.parse(startedAt))}:${callId}`;
}

/** @param epochMs milliseconds since the Unix epoch */
export function callIndexTime(epochMs: number): string {
  return String(Math.max(0, Math.trunc(Number.isNaN(epochMs) ? 0 : epochMs))).padStart(15, '0');
}
