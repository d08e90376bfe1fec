import type { TranscriptEntry } from './agent.js';
import type { QualitySample } from '../../rtp/quality-sample.js';
import type { VerifiedIdentity } from './verified-identity.js';

/** Who calls, by the headers of the INVITE. What the caller asked to keep private is not here. */
export interface CallerIdentity {
  /** The From header's number (E.164 when it is one) or user part; `anonymous` when it is withheld. */
  readonly number: string;
  readonly display_name: string | null;
  /** P-Asserted-Identity (RFC 3325): URIs. Empty under `Privacy: id`. */
  readonly asserted: readonly string[];
  /** Remote-Party-ID, the older header: a URI. */
  readonly remote_party: string | null;
  /** Diversion (RFC 5806), the latest first. */
  readonly diversions: readonly { readonly uri: string; readonly reason: string | null }[];
  /** History-Info (RFC 7044), in order. */
  readonly history: readonly { readonly uri: string; readonly index: string | null }[];
  /** Values of Privacy (RFC 3323). */
  readonly privacy: readonly string[];
  /** User-to-User (RFC 7433), as it came. */
  readonly user_to_user: string | null;
  /** X- headers by their name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The connection that the INVITE came by. */
export interface CallSource {
  readonly ip: string;
  readonly port: number;
  /** `tls`, `tcp`, `udp`. */
  readonly transport: string;
  /** As far as the SIP server tells. */
  readonly tls_version: string | null;
  readonly tls_cipher: string | null;
}

/** Milliseconds; `null`: did not happen. */
export interface CallTimings {
  /** From the INVITE to the 180. */
  readonly ring_ms: number | null;
  /** From the INVITE to the 200. */
  readonly answer_ms: number | null;
  /** From the ACK to the caller's first audio. */
  readonly first_audio_ms: number | null;
  /** From the 200 to the end. */
  readonly talk_ms: number | null;
}

/** What the media endpoint saw of the leg towards the relay. Counts are RTP packets. */
export interface EndpointQuality {
  readonly packets_sent: number;
  readonly packets_received: number;
  readonly packets_lost: number;
  /** RFC 3550 §6.4.1. */
  readonly jitter_ms: number;
  /** From RTCP; `null`: no report came. */
  readonly round_trip_ms: number | null;
  readonly digits_received: number;
}

/** What the relay saw of one side's RTP; `null`: no RTCP report came by. */
export interface StreamQuality {
  readonly packets: number;
  readonly bytes: number;
  /** Packets that could not be relayed. */
  readonly errors: number;
  readonly lost: number | null;
  readonly jitter_ms: number | null;
  readonly round_trip_ms: number | null;
  /** Mean opinion score, 1.0 to 4.5. */
  readonly mos: number | null;
}

export interface CallQuality {
  readonly endpoint: EndpointQuality | null;
  readonly relay: { readonly from_carrier: StreamQuality; readonly from_agent: StreamQuality } | null;
}

/** What is kept of a call that ended or was refused. */
export interface CallRecord {
  /** UUID. */
  readonly call_id: string;
  /** `null`: the number was not known. */
  readonly org_id: string | null;
  readonly agent_id: string | null;
  readonly sip_call_id: string;
  /** `caller.number`. */
  readonly from: string;
  readonly to: string;
  readonly caller: CallerIdentity;
  readonly source: CallSource;
  /** What the Identity header is worth; `null`: nothing was verified. */
  readonly identity: VerifiedIdentity | null;
  /** A code of the reason table. */
  readonly reason: string;
  readonly sip_status: number;
  readonly codec: string | null;
  /** SRTP suite of the carrier's leg; `null`: plain RTP, or nothing was chosen. */
  readonly crypto_suite: string | null;
  /** ISO 8601; `null`: did not happen. */
  readonly started_at: string;
  readonly answered_at: string | null;
  readonly ended_at: string;
  readonly timings: CallTimings;
  readonly quality: CallQuality;
  /** How it sounded over time, oldest first; empty where calls are listed. */
  readonly samples: readonly QualitySample[];
  /** What was said, as the agent tells; empty where calls are listed. */
  readonly transcript: readonly TranscriptEntry[];
  /** What the agent found out; `null`: it told nothing. */
  readonly analysis: Readonly<Record<string, unknown>> | null;
  /** What it told that does not fit the agent's `analysis_schema`, as it came; `null`: nothing, and where calls are listed. */
  readonly analysis_rejected: Readonly<Record<string, unknown>> | null;
  /** What went wrong with the connection to the agent last: where, what, after how long; `null`: nothing. */
  readonly agent_error: string | null;
  /** Decided on what was remembered of the number, because the store was away. */
  readonly stale_route: boolean;
  /** The gateway was killed during the call and took it up again so many times. */
  readonly resumed: number;
}
