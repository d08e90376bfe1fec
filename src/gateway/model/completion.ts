import type { TranscriptEntry } from './agent.js';
import type { CallQuality } from './call-record.js';

/** What the call-completion webhook tells (§6 of the interface). */
export interface CompletionPayload {
  /** UUID. */
  readonly call_id: string;
  readonly transcript: readonly TranscriptEntry[];
  /** What the agent found out, under the names of its `analysis_schema`; `null`: it told nothing. */
  readonly analysis: Readonly<Record<string, unknown>> | null;
  /** The agent's. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly from: string;
  readonly to: string;
  /** A code of the reason table. */
  readonly reason: string;
  /** ISO 8601, UTC. */
  readonly started_at: string;
  readonly answered_at: string | null;
  readonly ended_at: string;
  readonly quality: CallQuality;
}

/** A webhook that is due. */
export interface Completion {
  readonly url: string;
  readonly payload: CompletionPayload;
}
