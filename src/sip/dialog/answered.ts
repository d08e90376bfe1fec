import { assertNever } from '../../lib/assert-never.js';

/** A 2xx that waits for its ACK (RFC 3261 §13.3.1.4): retransmitted on every transport, because proxies may lie between. */
export interface AnsweredState {
  readonly name: 'AwaitingAck' | 'Acknowledged' | 'GaveUp';
  readonly intervalMs: number;
}

export type AnsweredTimer = 'retransmit' | 'give-up';

export type AnsweredEvent =
  { readonly type: 'answered' } | { readonly type: 'ack' } | { readonly type: 'timer'; readonly timer: AnsweredTimer };

export type AnsweredEffect =
  | { readonly do: 'resend' }
  | { readonly do: 'start'; readonly timer: AnsweredTimer; readonly delayMs: number }
  | { readonly do: 'stop'; readonly timer: AnsweredTimer }
  | { readonly do: 'acknowledged' }
  | { readonly do: 'gave-up' };

export const ANSWERED_START: AnsweredState = { name: 'AwaitingAck', intervalMs: 0 };

const NOTHING: readonly AnsweredEffect[] = [];
const STOP_BOTH: readonly AnsweredEffect[] = [
  { do: 'stop', timer: 'retransmit' },
  { do: 'stop', timer: 'give-up' },
];

export function stepAnswered(
  state: AnsweredState,
  event: AnsweredEvent,
  timers: { readonly t1Ms: number; readonly t2Ms: number },
): { readonly state: AnsweredState; readonly effects: readonly AnsweredEffect[] } {
  if (state.name !== 'AwaitingAck') return { state, effects: NOTHING };
  switch (event.type) {
    case 'answered':
      return {
        state: { ...state, intervalMs: timers.t1Ms },
        effects: [
          { do: 'start', timer: 'retransmit', delayMs: timers.t1Ms },
          { do: 'start', timer: 'give-up', delayMs: 64 * timers.t1Ms },
        ],
      };
    case 'ack':
      return { state: { ...state, name: 'Acknowledged' }, effects: [...STOP_BOTH, { do: 'acknowledged' }] };
    case 'timer': {
      if (event.timer === 'give-up') return { state: { ...state, name: 'GaveUp' }, effects: [...STOP_BOTH, { do: 'gave-up' }] };
      const intervalMs = Math.min(2 * state.intervalMs, timers.t2Ms);
      return { state: { ...state, intervalMs }, effects: [{ do: 'resend' }, { do: 'start', timer: 'retransmit', delayMs: intervalMs }] };
    }
    default:
      return assertNever(event);
  }
}
