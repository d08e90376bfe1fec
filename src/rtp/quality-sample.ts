/** How audio of one direction was since the sample before. */
export interface StreamSample {
  /** Percent of the expected packets, 0 to 100. */
  readonly lost_percent: number;
  /** RFC 3550 §6.4.1, at the end of it. */
  readonly jitter_ms: number;
  /** Mean opinion score by the E-model, 1.0 to 4.5. */
  readonly mos: number;
}

/** How a call sounded at one moment of it. */
export interface QualitySample {
  /** Milliseconds after audio began. */
  readonly at_ms: number;
  /** `null`: nothing came since the sample before, because the call was held, say. */
  readonly from_caller: StreamSample | null;
  /** By the caller's RTCP reports; `null`: none came since the sample before. */
  readonly to_caller: StreamSample | null;
  /** By RTCP; `null`: not known. */
  readonly round_trip_ms: number | null;
}
