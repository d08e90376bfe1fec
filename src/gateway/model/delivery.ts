/** A webhook under way, or given up. */
export interface Delivery {
  /** UUID, the same at each attempt: that of the call. */
  readonly delivery_id: string;
  readonly org_id: string;
  readonly url: string;
  /** JSON, byte for byte what is signed and sent. */
  readonly body: string;
  /** ISO 8601: the first attempt, or the first after it was sent again by hand. */
  readonly created_at: string;
  readonly attempts: number;
  /** Why the last attempt failed, a sentence; `null`: none did. */
  readonly last_error: string | null;
}

/** A delivery that was given up. */
export interface DeadLetter extends Delivery {
  /** ISO 8601. */
  readonly died_at: string;
}
