import { isDeepStrictEqual } from 'node:util';
import type { AgentRecord, AgentSettings, ToolRecord } from './agent-record.js';
import { err, ok, type Result } from '../../lib/result.js';
import { isMeant, revisedAt, type IfMatch } from './revision.js';

// The rules of changing and deleting agents and tools, apart from where they are kept.

/** What an owner may change of an agent. */
export type AgentContent = AgentSettings & { readonly name: string };

/** `not-found`: none, or of another organization. `mismatch`: another version than the change was meant for. */
export type RecordRefusal = 'not-found' | 'mismatch';

export interface AgentUpdate<F> {
  readonly orgId: string;
  readonly decide: (current: AgentRecord) => Result<AgentContent, F>;
  readonly ifMatch: IfMatch;
}

export function decideAgentUpdate<F>(
  current: AgentRecord | null,
  { orgId, decide, ifMatch }: AgentUpdate<F>,
  nowMs: number,
): Result<AgentRecord, F | RecordRefusal> {
  if (current?.org_id !== orgId) return err('not-found');
  if (!isMeant(current, ifMatch)) return err('mismatch');
  const decided = decide(current);
  return decided.ok ? ok({ ...current, ...decided.value, updated_at: revisedAt(nowMs, current) }) : decided;
}

export function decideDelete<T extends AgentRecord | ToolRecord>(
  current: T | null,
  orgId: string,
  ifMatch: IfMatch,
): Result<T, RecordRefusal> {
  if (current?.org_id !== orgId) return err('not-found');
  return isMeant(current, ifMatch) ? ok(current) : err('mismatch');
}

/** Ids of the tools that an agent names; those that it has in full are none. */
export function namedTools(agent: AgentRecord | null): string[] {
  return [...new Set(agent?.tools.filter((tool) => typeof tool === 'string'))];
}

/** Names of what an owner set otherwise than before. */
export function changedFields(before: AgentRecord, after: AgentRecord): string[] {
  const names = Object.keys(after) as (keyof AgentRecord)[];
  return names.filter((name) => name !== 'updated_at' && !isDeepStrictEqual(before[name], after[name]));
}
