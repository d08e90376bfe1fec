import type { AnswererEvent } from '../../rtp/answerer/answerer-detector.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { SipHeaders } from '../../agent-protocol/sip-headers.js';
import type { AgentRequest } from './agent.js';
import type { QualitySample } from '../../rtp/quality.js';

/** `a=sendrecv` and so on, as a peer says it of itself (RFC 3264 §5.1). */
export type MediaDirection = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

/** Where the far side of a media leg receives. */
export interface MediaAddress {
  readonly address: string;
  readonly rtpPort: number;
  readonly rtcpPort: number;
}

/** Keys of one SRTP leg, AES_CM_128_HMAC_SHA1_80: 16 bytes of master key and 14 of master salt each. */
export interface SrtpKeys {
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
}

/** What the packets of a leg carry in both directions. RTP payload types, 0 to 127. */
export interface LegFormat {
  readonly codec: AudioCodec;
  /** The codec's static payload type (RFC 3551 §6), or the one that the carrier mapped to it. */
  readonly payloadType: number;
  /** telephone-event/8000, as it is sent; `null`: not negotiated. */
  readonly telephoneEventPayloadType: number | null;
  /** A second type under which the carrier may send it. */
  readonly otherTelephoneEventPayloadType?: number;
}

/** What a new offer and answer may change of an open leg. */
export interface LegChange {
  readonly remote: MediaAddress;
  /** `null`: plain RTP. */
  readonly srtp: SrtpKeys | null;
  readonly format: LegFormat;
}

/** One media leg between rtpengine and the endpoint. */
export interface LegDescription extends LegFormat {
  readonly callId: string;
  /** The carrier's Call-ID, under which the leg's RTCP is reported. */
  readonly sipCallId: string;
  /** The endpoint's own RTP port, which the far side knows already: reserved, or of before a restart. */
  readonly localRtpPort: number;
  readonly remote: MediaAddress;
  /** `null`: plain RTP. */
  readonly srtp: SrtpKeys | null;
  /** SRTP suite of the carrier's side, for agents that report it; `null`: plain RTP. */
  readonly carrierSuite: string | null;
  /** Finds out who answered; left out: a call that came in, or nobody wants to know. */
  readonly watchesAnswerer?: boolean;
  /** Its audio begins at once, with these directions, and is silent until an agent starts; left out: with `start`. */
  readonly startsAs?: MediaDirection;
}

/** What one leg saw by the time it closed. Times are milliseconds after `start`; packet counts are RTP packets. */
export interface LegFigures {
  readonly packetsSent: number;
  readonly packetsReceived: number;
  readonly packetsLost: number;
  /** RFC 3550 §6.4.1 interarrival jitter, in milliseconds. */
  readonly jitterMs: number;
  /** From RTCP; `null`: no report came. */
  readonly roundTripMs: number | null;
  /** The caller's first RTP packet; 0 when it came before `start`, `null` when none came. */
  readonly firstAudioMs: number | null;
  readonly digitsReceived: number;
  /** Frames that were not sent in their 20 ms, as the media thread had too much to do: sent later, or skipped. */
  readonly framesLate: number;
  /** The agent's first audio; `null`: it was never heard. */
  readonly agentAudioMs: number | null;
  /** For each turn, from the end of the caller's speech to the agent's first audio, in milliseconds. */
  readonly turnDelaysMs: readonly number[];
  /** How it sounded over time, oldest first: at each RTCP report of ours. */
  readonly samples: readonly QualitySample[];
}

export interface AgentNote {
  readonly type: 'agent-note';
  /** `closed`: the agent's connection was closed, by either side. `ignored`: a message of the agent was not valid. */
  readonly kind: 'closed' | 'ignored' | 'other';
  /** For a person: names the URL without secrets. */
  readonly text: string;
  /** It cost, or may cost, the call. */
  readonly isFailure: boolean;
}

/** What a leg tells the call that owns it. */
export type LegEvent =
  /** The first RTP packet of the caller arrived. */
  | { readonly type: 'media-started' }
  /** One key press, reported once. Event codes of RFC 4733 §3.2: 0-9, 10 `*`, 11 `#`, 12-15 A-D. */
  | { readonly type: 'digit'; readonly event: number; readonly durationMs: number }
  /** Who or what answered the call that we placed. */
  | { readonly type: 'answered-by'; readonly event: AnswererEvent }
  /** The agent ends the call. `sipHeaders`: of the BYE. */
  | { readonly type: 'agent-hangup'; readonly sipHeaders?: SipHeaders }
  /** The agent played everything, and gathered these digits. */
  | { readonly type: 'agent-finished'; readonly digits: string; readonly finishedOnKey: string }
  /** The application that the call exchanged text with has ended that, or is gone: why, for a person. */
  | { readonly type: 'conversation-ended'; readonly handoffData: string | null; readonly error: string | null }
  /** The agent's connection broke before the ACK, and is made again. */
  | { readonly type: 'agent-away' }
  /** The agent's connection broke and did not come back in time. */
  | { readonly type: 'agent-lost' }
  /** A WebSocket gets the call's audio from now on: the agent's, or a fork's. */
  | { readonly type: 'stream-started'; readonly streamSid: string }
  /** A fork ended by itself; `error`: why, for a person; `null`: its server closed it. */
  | { readonly type: 'fork-ended'; readonly streamSid: string; readonly error: string | null }
  /** What the connection to the agent met. */
  | AgentNote
  /** Marks of the agent's that were not played yet. */
  | { readonly type: 'agent-marks'; readonly names: readonly string[] }
  /** The provider reported how many tokens it counted. */
  | { readonly type: 'provider-tokens'; readonly tokens: number }
  /** The agent asks for something that is not the leg's business. */
  | { readonly type: 'agent-request'; readonly request: AgentRequest }
  /** The caller's sender reports claim packets of which none arrive. Said once, until a packet arrives. */
  | { readonly type: 'media-dead' }
  /**
   * No packet from the caller for the configured time, RTP or RTCP, but for sender reports that claim packets of which none arrive; not
   * while the caller's direction promises none.
   */
  | { readonly type: 'media-timeout' }
  /** The thread that carried the leg died; the leg and its agent are gone. */
  | { readonly type: 'media-lost' };

/** Whether an event is for the call's record alone, so that it counts after its agent was released. */
export function isNote(event: LegEvent): boolean {
  if (event.type === 'agent-request') return event.request.type === 'transcript' || event.request.type === 'analysis';
  return event.type === 'provider-tokens';
}

/** What rtpengine saw of one side's RTP. */
export interface StreamFigures {
  readonly packets: number;
  readonly bytes: number;
  readonly errors: number;
  /** From RTCP; `null`: no report came by. */
  readonly lost: number | null;
  readonly jitterMs: number | null;
  readonly roundTripMs: number | null;
  /** Mean opinion score, 1.0 to 4.5. */
  readonly mos: number | null;
}

/** What rtpengine saw of a call, from its answer to `delete`. */
export interface RelayFigures {
  readonly fromCarrier: StreamFigures;
  readonly fromAgent: StreamFigures;
}

/** In whole milliseconds. */
export interface MediaDelays {
  /** How late frames leave: `FrameDelay`. */
  readonly frameMs: number;
  /** How late callers' packets are read: the median over the legs of `ReceptionStatistics.takeDelayMs`. */
  readonly arrivalMs: number;
}
