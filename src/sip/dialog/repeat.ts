import { assertNever } from '../../lib/assert-never.js';

/**
 * A response that the user agent itself repeats until the peer says that it has it, on every transport: a 2xx to an INVITE until its ACK
 * (RFC 3261 §13.3.1.4), a reliable provisional response until its PRACK (RFC 3262 §3).
 */
export interface RepeatState {
  readonly name: 'Waiting' | 'Acknowledged' | 'GaveUp';
  readonly intervalMs: number;
}

export type RepeatTimer = 'retransmit' | 'give-up';

export type RepeatEvent =
  { readonly type: 'sent' } | { readonly type: 'acknowledged' } | { readonly type: 'timer'; readonly timer: RepeatTimer };

export type RepeatEffect =
  | { readonly do: 'resend' }
  | { readonly do: 'start'; readonly timer: RepeatTimer; readonly delayMs: number }
  | { readonly do: 'stop-timers' }
  | { readonly do: 'gave-up' };

export interface RepeatTimes {
  readonly t1Ms: number;
  /** The interval doubles up to this: T2 for a 2xx, without end for a provisional response. */
  readonly longestMs: number;
}

export const REPEAT_START: RepeatState = { name: 'Waiting', intervalMs: 0 };

const NOTHING: readonly RepeatEffect[] = [];
const STOP: readonly RepeatEffect[] = [{ do: 'stop-timers' }];
const GIVE_UP: readonly RepeatEffect[] = [{ do: 'stop-timers' }, { do: 'gave-up' }];

export function stepRepeat(
  state: RepeatState,
  event: RepeatEvent,
  times: RepeatTimes,
): { readonly state: RepeatState; readonly effects: readonly RepeatEffect[] } {
  if (state.name !== 'Waiting') return { state, effects: NOTHING };
  switch (event.type) {
    case 'sent':
      return {
        state: { ...state, intervalMs: times.t1Ms },
        effects: [
          { do: 'start', timer: 'retransmit', delayMs: times.t1Ms },
          { do: 'start', timer: 'give-up', delayMs: 64 * times.t1Ms },
        ],
      };
    case 'acknowledged':
      return { state: { ...state, name: 'Acknowledged' }, effects: STOP };
    case 'timer': {
      if (event.timer === 'give-up') return { state: { ...state, name: 'GaveUp' }, effects: GIVE_UP };
      const intervalMs = Math.min(2 * state.intervalMs, times.longestMs);
      return { state: { ...state, intervalMs }, effects: [{ do: 'resend' }, { do: 'start', timer: 'retransmit', delayMs: intervalMs }] };
    }
    default:
      return assertNever(event);
  }
}
