/** One thing that happened in a call. Keys and secrets in `text` are masked. */
export interface TraceEntry {
  /** ISO 8601, UTC, with milliseconds. */
  readonly at: string;
  readonly source: 'sip' | 'rtpengine' | 'agent' | 'gateway';
  /** As the gateway sees it: towards it, or from it; `null`: within it. */
  readonly direction: 'in' | 'out' | null;
  /** One line, such as `INVITE sip:+15551234567@192.0.2.1` or `offer, 3.1 ms`. */
  readonly summary: string;
  /** The message in full; `null`: the summary is all there is. */
  readonly text: string | null;
}
