/** A webhook under way, or given up. */
export interface Delivery {
  /** UUID, the same at each attempt: that of the call. */
  readonly delivery_id: string;
  readonly org_id: string;
  /** `null`: nobody is told; the analysis alone is due. */
  readonly url: string | null;
  /** JSON, byte for byte what is signed and sent. */
  readonly body: string;
  /** ISO 8601: the first attempt, or the first after it was sent again by hand. */
  readonly created_at: string;
  readonly attempts: number;
  /** Why the last attempt failed, a sentence; `null`: none did. */
  readonly last_error: string | null;
  /** Data points that a text model is to find in the transcript first; left out: none, or it is done. */
  readonly analysis_schema?: Readonly<Record<string, string>>;
}

/** A delivery that somebody is to be told. */
export type AddressedDelivery = Delivery & { readonly url: string };

/** A delivery that was given up. */
export interface DeadLetter extends AddressedDelivery {
  /** ISO 8601. */
  readonly died_at: string;
}
