/** A call in progress on this gateway. */
export interface LiveCall {
  readonly callId: string;
  readonly orgId: string | null;
  readonly from: string;
  readonly to: string;
  readonly startedAtMs: number;
  /** `null`: not answered yet. */
  readonly answeredAtMs: number | null;
}

export interface LiveCalls {
  /** `null`: it is not on this gateway, or not in progress. */
  find(callId: string): LiveCall | null;
  /** Ends a call on behalf of its agent; nothing when there is none. */
  hangUp(callId: string): void;
}
