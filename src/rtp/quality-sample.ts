/** Audio of one direction since the previous sample. */
export interface StreamSample {
  /** Percent of the expected packets, 0 to 100. */
  readonly lost_percent: number;
  /** RFC 3550 §6.4.1, at the end of the interval. */
  readonly jitter_ms: number;
  /** Mean opinion score by the E-model, 1.0 to 4.5. */
  readonly mos: number;
}

/** A call's quality at one moment. */
export interface QualitySample {
  /** Milliseconds after audio began. */
  readonly at_ms: number;
  /** `null`: no packet since the previous sample, for example during hold. */
  readonly from_caller: StreamSample | null;
  /** By the caller's RTCP reports; `null`: none since the previous sample. */
  readonly to_caller: StreamSample | null;
  /** By RTCP. */
  readonly round_trip_ms: number | null;
}
