import { assertNever } from '../../lib/assert-never.js';

/** One reliable provisional response that waits for its PRACK (RFC 3262 §3). */
export interface ReliableState {
  readonly name: 'AwaitingPrack' | 'Acknowledged' | 'GaveUp';
  readonly intervalMs: number;
}

export type ReliableTimer = 'retransmit' | 'give-up';

export type ReliableEvent =
  { readonly type: 'sent' } | { readonly type: 'prack' } | { readonly type: 'timer'; readonly timer: ReliableTimer };

export type ReliableEffect =
  | { readonly do: 'resend' }
  | { readonly do: 'start'; readonly timer: ReliableTimer; readonly delayMs: number }
  | { readonly do: 'stop-timers' }
  | { readonly do: 'gave-up' };

export const RELIABLE_START: ReliableState = { name: 'AwaitingPrack', intervalMs: 0 };

const NOTHING: readonly ReliableEffect[] = [];

export function stepReliable(
  state: ReliableState,
  event: ReliableEvent,
  t1Ms: number,
): { readonly state: ReliableState; readonly effects: readonly ReliableEffect[] } {
  if (state.name !== 'AwaitingPrack') return { state, effects: NOTHING };
  switch (event.type) {
    case 'sent':
      return {
        state: { ...state, intervalMs: t1Ms },
        effects: [
          { do: 'start', timer: 'retransmit', delayMs: t1Ms },
          { do: 'start', timer: 'give-up', delayMs: 64 * t1Ms },
        ],
      };
    case 'prack':
      return { state: { ...state, name: 'Acknowledged' }, effects: [{ do: 'stop-timers' }] };
    case 'timer': {
      if (event.timer === 'give-up') return { state: { ...state, name: 'GaveUp' }, effects: [{ do: 'stop-timers' }, { do: 'gave-up' }] };
      // Doubles without a cap, unlike timer G.
      const intervalMs = 2 * state.intervalMs;
      return { state: { ...state, intervalMs }, effects: [{ do: 'resend' }, { do: 'start', timer: 'retransmit', delayMs: intervalMs }] };
    }
    default:
      return assertNever(event);
  }
}
