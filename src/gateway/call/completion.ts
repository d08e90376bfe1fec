import type { AgentRecord } from '../model/agent-record.js';
import type { CallRecord } from '../model/call-record.js';
import type { Completion } from '../model/completion.js';

/** Whom to tell of a call that is over, and what; `null`: its agent has no webhook, or never had the call. */
export function completionOf(record: CallRecord, agent: AgentRecord | null): Completion | null {
  if (agent?.webhook === undefined || agent.webhook === null || record.answered_at === null) return null;
  const { call_id, transcript, analysis, from, to, reason, started_at, answered_at, ended_at, quality } = record;
  const payload = { call_id, transcript, analysis, metadata: agent.metadata, from, to, reason, started_at, answered_at, ended_at, quality };
  return { url: agent.webhook, payload };
}
