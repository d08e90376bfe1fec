import { isoNow, type Clock } from '../../lib/clock.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from './agent-record.js';

/** What one call has in place of its agent's settings; `null`: nothing. */
export interface CallSettings {
  readonly metadata: AgentRecord['metadata'];
  /** Minutes. */
  readonly max_duration: number | null;
  readonly webhook: string | null;
}

/**
 * The agent of one call.
 * @param agent `null`: the operator's default, whose calls last as long as the operator allows (`longestMinutes`), whatever else is given
 */
export function agentOfCall(
  agent: AgentRecord | null,
  orgId: string,
  settings: CallSettings,
  { clock, longestMinutes }: { readonly clock: Clock; readonly longestMinutes: number },
): AgentRecord | null {
  const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null)) as Partial<AgentRecord>;
  if (Object.keys(given).length === 0) return agent;
  return { ...(agent ?? { ...agentOfNoStore(orgId, clock), max_duration: longestMinutes }), ...given };
}

/** An agent that is in no store: it has no id. */
export function agentOfNoStore(orgId: string, clock: Clock): AgentRecord {
  const now = isoNow(clock);
  return { ...DEFAULT_AGENT_SETTINGS, agent_id: '', org_id: orgId, name: '', created_at: now, updated_at: now };
}
