import type { CallRecord } from './call-record.js';

type Told = 'call_id' | 'transcript' | 'analysis' | 'from' | 'to' | 'reason' | 'started_at' | 'answered_at' | 'ended_at' | 'quality';

/** What the call-completion webhook tells (§6 of the interface). */
export interface CompletionPayload extends Pick<CallRecord, Told> {
  /** The agent's. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** A webhook that is due. */
export interface Completion {
  readonly url: string;
  readonly payload: CompletionPayload;
}
