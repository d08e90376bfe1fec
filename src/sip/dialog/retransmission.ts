import { assertNever } from '../../lib/result.js';

/**
 * A response that the user agent itself repeats until the peer says that it has it, on every transport: a 2xx to an INVITE until its ACK
 * (RFC 3261 §13.3.1.4), a reliable provisional response until its PRACK (RFC 3262 §3).
 */
export interface RetransmitState {
  readonly name: 'Waiting' | 'Acknowledged' | 'GaveUp';
  readonly intervalMs: number;
}

export type RetransmitTimer = 'retransmit' | 'give-up';

export type RetransmitEvent =
  { readonly type: 'sent' } | { readonly type: 'acknowledged' } | { readonly type: 'timer'; readonly timer: RetransmitTimer };

export type RetransmitEffect =
  | { readonly do: 'resend' }
  | { readonly do: 'start'; readonly timer: RetransmitTimer; readonly delayMs: number }
  | { readonly do: 'stop-timers' }
  | { readonly do: 'gave-up' };

export interface RetransmitTimes {
  readonly t1Ms: number;
  /** The interval doubles up to this: T2 for a 2xx, without end for a provisional response. */
  readonly longestMs: number;
}

export const RETRANSMIT_START: RetransmitState = { name: 'Waiting', intervalMs: 0 };

const NOTHING: readonly RetransmitEffect[] = [];
const STOP: readonly RetransmitEffect[] = [{ do: 'stop-timers' }];
const GIVE_UP: readonly RetransmitEffect[] = [{ do: 'stop-timers' }, { do: 'gave-up' }];

export function stepRetransmit(
  state: RetransmitState,
  event: RetransmitEvent,
  times: RetransmitTimes,
): { readonly state: RetransmitState; readonly effects: readonly RetransmitEffect[] } {
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
