// Batches of calls and their logs (§2.2, §4.6 of the interface).

/** What a writer tells of a batch. */
export interface BatchEvent {
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Left out: now. */
  readonly timestamp?: string | undefined;
}

export interface BatchRecord {
  /** UUID. */
  readonly batch_id: string;
  readonly org_id: string;
  readonly name: string;
  readonly created_at: string;
}

export interface BatchLogEntry {
  /** UUID. */
  readonly id: string;
  readonly batch_id: string;
  readonly org_id: string;
  readonly event_type: string;
  readonly timestamp: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
