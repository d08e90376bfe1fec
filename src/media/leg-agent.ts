import type { AgentAnswer } from '../contracts/agent.js';
import type { AudioCodec, LegEvent, LegFigures } from '../contracts/media.js';

/** What an agent may ask of the leg that it is on. */
export interface AgentHost {
  /** Tells the call; nothing once the agent was let go. */
  emit(event: Extract<LegEvent, { type: 'agent-hangup' | 'agent-lost' | 'agent-request' }>): void;
  /** Presses a key towards the caller; false when there is no leg, telephone-events were not negotiated, or too many wait. */
  press(event: number, durationMs: number): boolean;
  /** The leg as it is now; `null`: there is none yet. */
  view(): LegView | null;
}

export interface LegView {
  readonly figures: LegFigures;
  readonly codec: AudioCodec;
  readonly carrierSuite: string | null;
  /** What the jitter buffer holds, in milliseconds: the delay of an echo within the endpoint. */
  readonly bufferedMs: number;
}

/** Whoever speaks and listens on a leg: the built-in test line, an agent behind a WebSocket, or the test carrier's caller. */
export interface LegAgent {
  /** Gets ready to talk. Rejects with `AgentUnavailableError`. */
  connect(): Promise<void>;
  /** Audio may flow from now on. */
  start(): void;
  /** A key press, reported once (event codes of RFC 4733 §3.2). */
  digit(event: number): void;
  /**
   * One frame of 20 ms: `heard` is what came in, `spoken` is to be filled with what goes out. Both 16-bit linear at 8 kHz and
   * reused for the next frame. Not called before `start`, nor while the leg is held.
   */
  frame(heard: Int16Array, spoken: Int16Array): void;
  /** The answer to a request. */
  tell(answer: AgentAnswer): void;
  /** The call is over; nothing is called afterwards. */
  close(): void;
}
