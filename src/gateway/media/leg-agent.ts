import type { AgentAnswer } from '../model/agent.js';
import type { LegEvent, LegFigures } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';

/** What an agent may ask of the leg that it is on. */
export interface AgentHost {
  /** Tells the call; nothing once the agent was let go. */
  emit(event: Extract<LegEvent, { type: 'agent-hangup' | 'agent-lost' | 'agent-note' | 'agent-request' }>): void;
  /** Presses a key towards the caller; false when there is no leg, telephone-events were not negotiated, or too many wait. */
  sendDtmf(event: number, durationMs: number): boolean;
  /** The leg as it is now; `null`: there is none yet. */
  view(): LegView | null;
}

export interface LegView {
  readonly figures: LegFigures;
  readonly codec: AudioCodec;
  readonly carrierSuite: string | null;
  /** What the agent's buffer holds of the caller's audio, in milliseconds. */
  readonly bufferedMs: number;
}

/**
 * Whoever speaks and listens on a leg, in terms of packets: an agent behind a WebSocket, or one that works on samples behind
 * `SampleLegAgent`. Times are the endpoint's monotonic clock, in milliseconds.
 */
export interface LegAgent {
  /** What waits of the caller's audio, in milliseconds. */
  readonly bufferedMs: number;
  /** Packets of the caller that came after their time to be played. */
  readonly latePackets: number;
  /** Gets ready to talk. Rejects with `AgentUnavailableError`. */
  connect(): Promise<void>;
  /** Audio may flow from now on; what goes out is of this codec. */
  start(codec: AudioCodec, nowMs: number): void;
  /** A key press, reported once (event codes of RFC 4733 §3.2). It may come before `start`. */
  digit(event: number): void;
  /**
   * One packet of the caller, as it came: late, twice, out of order or never. `buffer[offset, offset + lengthBytes)` is G.711 of
   * `codec`, and is not the agent's after the call. It may come before `start`.
   */
  hear(codec: AudioCodec, ssrc: number, rtpTimestamp: number, buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): void;
  /** The next frame of 20 ms is due: fills `payload`, 160 bytes of the leg's codec. */
  fill(payload: Uint8Array, nowMs: number): void;
  /** The time of a frame passes in which nothing can be sent: the leg is held, or the frame was lost to a stall. */
  pass(nowMs: number): void;
  /** The answer to a request. */
  notify(answer: AgentAnswer): void;
  /** The call is over; nothing is called afterwards. */
  close(): void;
}

/** What agents on a thread's legs went through, since the start. */
export interface AgentCounters {
  reconnects: number;
  droppedInboundMs: number;
  droppedOutboundMs: number;
}

export function noAgentCounters(): AgentCounters {
  return { reconnects: 0, droppedInboundMs: 0, droppedOutboundMs: 0 };
}
