import type { AudioPacket } from '../../rtp/audio-packet.js';
import type { AgentAnswer, AgentDescription } from '../model/agent.js';
import type { LegEvent, LegFigures } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';

/** What an agent may request of its leg. */
export interface AgentHost {
  /** Sends an event to the call; does nothing after the agent's release. */
  emit(
    event: Extract<
      LegEvent,
      {
        type:
          | 'agent-hangup'
          | 'agent-finished'
          | 'agent-away'
          | 'agent-lost'
          | 'agent-note'
          | 'agent-marks'
          | 'agent-request'
          | 'provider-tokens'
          | 'stream-started'
          | 'conversation-ended';
      }
    >,
  ): void;
  /** Queues a digit for the caller; false without a leg or negotiated telephone-events, or if too many wait. */
  sendDtmf(event: number, durationMs: number): boolean;
  /** Speech has come, of which a frame leaves at once if one is due. False: none is, and it waits. */
  speak(): boolean;
  /** The leg's current state; `null` before it opens. */
  view(): LegView | null;
}

export interface LegView {
  readonly figures: LegFigures;
  readonly codec: AudioCodec;
  readonly carrierSuite: string | null;
  /** The caller's audio in the agent's buffer, in milliseconds. */
  readonly bufferedMs: number;
}

/**
 * `ready`: a frame of speech waits. `expected`: the last frame was speech, and the rest is probably on its way. `none`: the next frame is
 * silence, unless the agent begins to speak.
 */
export type Speech = 'ready' | 'expected' | 'none';

/**
 * An agent on a leg, in terms of packets: behind a WebSocket, or one that works on samples behind `SampleLegAgent`.
 * Times are the endpoint's monotonic clock, in milliseconds.
 */
export interface LegAgent {
  /** The caller's audio that waits, in milliseconds. */
  readonly bufferedMs: number;
  /** The caller's packets that arrived after their time to be played. */
  readonly latePackets: number;
  /** Connects. Rejects with `AgentUnavailableError`. */
  connect(): Promise<void>;
  /** It was connected before the call was here: what it is told as it starts is this. */
  describe?(description: AgentDescription): void;
  /** Starts audio; outgoing frames use this codec. */
  start(codec: AudioCodec, nowMs: number): void;
  /** A digit, reported once (event codes of RFC 4733 §3.2). It may precede `start`. */
  digit(event: number): void;
  /** One packet of the caller. It may precede `start`. */
  hear(packet: AudioPacket): void;
  /** The next frame of 20 ms is due: fill `payload`, 160 bytes of the leg's codec. */
  fill(payload: Uint8Array, nowMs: number): void;
  /** What there is for the next frame. Left out: each frame leaves as its time comes. */
  readonly speech?: Speech;
  /**
   * The time of `frames` frames passed without sending: the leg is held, or a stall skipped them. A held leg calls this with each packet of
   * the caller, and about once a second.
   */
  pass(nowMs: number, frames: number): void;
  /** The answer to a request. */
  notify(answer: AgentAnswer): void;
  /** The call ended; no other method is called afterwards. */
  close(): void;
}

/** A copy of a leg's audio that goes elsewhere, beside its agent. */
export interface LegFork {
  start(codec: AudioCodec, nowMs: number): void;
  /** One packet of the caller. */
  hear: LegAgent['hear'];
  /** One frame that the peer was sent: 160 bytes of the codec, valid only during the call of this method. */
  sent(codec: AudioCodec, payload: Uint8Array, nowMs: number): void;
  /** The time of `frames` frames passed without sending. */
  pass(nowMs: number, frames: number): void;
  close(): void;
}

/** Counters of the agents of a thread, since its start. */
export interface AgentCounters {
  reconnects: number;
  droppedInboundMs: number;
  droppedOutboundMs: number;
}

export function noAgentCounters(): AgentCounters {
  return { reconnects: 0, droppedInboundMs: 0, droppedOutboundMs: 0 };
}
