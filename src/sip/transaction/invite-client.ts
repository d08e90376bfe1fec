import { assertNever } from '../../lib/result.js';
import type { Step, TransactionContext, TransactionEffect } from './timers.js';

// RFC 3261 §17.1.1 with RFC 6026 §7.2 (Accepted, timer M).
export interface InviteClientState {
  readonly name: 'Calling' | 'Proceeding' | 'Accepted' | 'Completed' | 'Terminated';
  /** The INVITE, for retransmission. */
  readonly request: string;
  /** The ACK to a final error. */
  readonly ack: string | null;
  readonly intervalMs: number;
}

/** `cancel`: waits for a final response after CANCEL (§9.1). */
export type InviteClientTimer = 'A' | 'B' | 'D' | 'M' | 'cancel';

export type InviteClientEvent =
  | { readonly type: 'start' }
  /** CANCEL was sent. */
  | { readonly type: 'cancelled' }
  /** The user abandoned it, but cannot cancel before a provisional response (§9.1). */
  | { readonly type: 'abandoned' }
  /** `ack`: the ACK to a status of 300 or more (RFC 3261 §17.1.1.3). */
  | { readonly type: 'response'; readonly status: number; readonly ack: string }
  | { readonly type: 'timer'; readonly timer: InviteClientTimer }
  | { readonly type: 'transport-error' };

/** `response`: pass this event's response to the user. */
export type InviteClientUser = 'response' | 'timeout' | 'transport-error';

type InviteClientStep = Step<InviteClientState, InviteClientTimer, InviteClientUser>;
type Effect = TransactionEffect<InviteClientTimer, InviteClientUser>;

const NOTHING: readonly Effect[] = [];
const NOTIFY: Effect = { do: 'notify', user: 'response' };

export function inviteClientStart(request: string): InviteClientState {
  return { name: 'Calling', request, ack: null, intervalMs: 0 };
}

export function stepInviteClient(state: InviteClientState, event: InviteClientEvent, context: TransactionContext): InviteClientStep {
  switch (event.type) {
    case 'start': {
      const effects: Effect[] = [
        { do: 'send', text: state.request },
        { do: 'start', timer: 'B', delayMs: 64 * context.t1Ms },
      ];
      if (!context.reliable) effects.push({ do: 'start', timer: 'A', delayMs: context.t1Ms });
      return { state: { ...state, intervalMs: context.t1Ms }, effects };
    }
    case 'cancelled':
      return {
        state,
        effects: state.name === 'Proceeding' ? [{ do: 'start', timer: 'cancel', delayMs: 64 * context.t1Ms }] : NOTHING,
      };
    case 'abandoned':
      return { state, effects: state.name === 'Calling' ? [{ do: 'stop', timer: 'A' }] : NOTHING };
    case 'response':
      return onResponse(state, event.status, event.ack, context);
    case 'timer':
      return onTimer(state, event.timer);
    case 'transport-error':
      if (state.name === 'Terminated' || state.name === 'Accepted') return { state, effects: NOTHING };
      // RFC 3261 §17.1.1.2, figure 5: also in Completed, if the ACK could not be sent.
      return terminated(state, [{ do: 'notify', user: 'transport-error' }]);
    default:
      return assertNever(event);
  }
}

function onResponse(state: InviteClientState, status: number, ack: string, context: TransactionContext): InviteClientStep {
  switch (state.name) {
    case 'Calling':
    case 'Proceeding': {
      const stop: Effect[] = [
        { do: 'stop', timer: 'A' },
        { do: 'stop', timer: 'B' },
      ];
      if (status < 200) return { state: { ...state, name: 'Proceeding' }, effects: [...stop, NOTIFY] };
      if (status < 300) {
        return {
          state: { ...state, name: 'Accepted', request: '' },
          effects: [...stop, { do: 'start', timer: 'M', delayMs: 64 * context.t1Ms }, NOTIFY],
        };
      }
      const acknowledge: Effect[] = [...stop, { do: 'send', text: ack }, NOTIFY];
      if (context.reliable) return terminated(state, acknowledge);
      // Timer D: at least 32 s (RFC 3261 §17.1.1.2).
      return {
        state: { ...state, name: 'Completed', request: '', ack },
        effects: [...acknowledge, { do: 'start', timer: 'D', delayMs: Math.max(32_000, 64 * context.t1Ms) }],
      };
    }
    case 'Accepted':
      // A retransmitted or forked 2xx: the user acknowledges each.
      return { state, effects: status >= 200 && status < 300 ? [NOTIFY] : NOTHING };
    case 'Completed':
      return { state, effects: status >= 300 && state.ack !== null ? [{ do: 'send', text: state.ack }] : NOTHING };
    case 'Terminated':
      return { state, effects: NOTHING };
    default:
      return assertNever(state.name);
  }
}

function onTimer(state: InviteClientState, timer: InviteClientTimer): InviteClientStep {
  switch (timer) {
    case 'A': {
      if (state.name !== 'Calling') return { state, effects: NOTHING };
      const intervalMs = 2 * state.intervalMs;
      return {
        state: { ...state, intervalMs },
        effects: [
          { do: 'send', text: state.request },
          { do: 'start', timer: 'A', delayMs: intervalMs },
        ],
      };
    }
    case 'B':
      if (state.name !== 'Calling') return { state, effects: NOTHING };
      return terminated(state, [
        { do: 'stop', timer: 'A' },
        { do: 'notify', user: 'timeout' },
      ]);
    case 'cancel':
      // §9.1: no response to a cancelled INVITE within 64·T1 (allowed by RFC 2543): none will come.
      return state.name === 'Proceeding' ? terminated(state, [{ do: 'notify', user: 'timeout' }]) : { state, effects: NOTHING };
    case 'D':
      return state.name === 'Completed' ? terminated(state) : { state, effects: NOTHING };
    case 'M':
      return state.name === 'Accepted' ? terminated(state) : { state, effects: NOTHING };
    default:
      return assertNever(timer);
  }
}

function terminated(state: InviteClientState, before: readonly Effect[] = NOTHING): InviteClientStep {
  return { state: { ...state, name: 'Terminated', request: '' }, effects: [...before, { do: 'terminate' }] };
}
