import type { AgentAnswer } from './agent.js';
import type { MediaDirection } from './media.js';

/** What a call wants of its media leg or its agent, without an answer. It has one form from the call's effect to the leg. */
export type LegCommand =
  /** The ACK came: audio and the agent start. */
  | { readonly do: 'start' }
  /** The caller's direction from now on: nothing is sent to one that holds, and who promises no packets is not watched. */
  | { readonly do: 'direct'; readonly direction: MediaDirection }
  /** The caller hears a ring-back tone wherever the agent says nothing. */
  | { readonly do: 'ring-back'; readonly isOn: boolean }
  /** Caller, agent and second party all talk with each other; nothing without a conference. */
  | { readonly do: 'three-way' }
  /** The caller may be gone, though the peer keeps the call: receiver reports alone are no sign of them. */
  | { readonly do: 'need-packets' }
  /** A key press that the caller told by SIP INFO; one that also comes as a telephone-event is reported once. Event codes of RFC 4733 §3.2. */
  | { readonly do: 'take-digit'; readonly event: number; readonly durationMs: number }
  /** A telephone-event for the caller; nothing if they were not negotiated. */
  | { readonly do: 'send-digit'; readonly event: number; readonly durationMs: number }
  /** Ends a copy of the call's audio; nothing when there is none. */
  | { readonly do: 'stop-fork'; readonly streamSid: string }
  /** Answers a request of the agent; nothing when it is gone. */
  | { readonly do: 'notify-agent'; readonly answer: AgentAnswer };
