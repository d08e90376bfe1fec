import type { CallRecord } from './call-record.js';

type Told = 'call_id' | 'transcript' | 'analysis' | 'from' | 'to' | 'reason' | 'started_at' | 'answered_at' | 'ended_at' | 'quality';

/** What the call-completion webhook tells (§6 of the interface). */
export interface CompletionPayload extends Pick<CallRecord, Told> {
  /** Why there is no analysis that was to be made; else left out. */
  readonly analysis_error?: string;
  /** The agent's. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** What is due after a call. */
export interface Completion {
  /** `null`: the agent has no webhook. */
  readonly url: string | null;
  readonly payload: CompletionPayload;
  /** For an agent that sent a transcript and no analysis; `null`: nothing is to be found in it. */
  readonly analysisSchema: Readonly<Record<string, string>> | null;
}
