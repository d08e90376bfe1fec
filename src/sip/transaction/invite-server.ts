import { assertNever } from '../../lib/result.js';
import type { Step, TransactionContext, TransactionEffect } from './timers.js';

// RFC 3261 §17.2.1 with RFC 6026 §7.1 (Accepted, timer L).
export interface InviteServerState {
  readonly name: 'Proceeding' | 'Accepted' | 'Completed' | 'Confirmed' | 'Terminated';
  /** The last response sent, as on the wire, for retransmissions. */
  readonly response: string | null;
  /** Current interval of timer G. */
  readonly intervalMs: number;
}

export type InviteServerTimer = 'G' | 'H' | 'I' | 'L';

export type InviteServerEvent =
  | { readonly type: 'invite' }
  | { readonly type: 'ack' }
  | { readonly type: 'respond'; readonly status: number; readonly text: string }
  | { readonly type: 'timer'; readonly timer: InviteServerTimer }
  | { readonly type: 'transport-error' };

/** `ack`: the ACK to a 2xx, for the dialog. `ack-timeout`: no ACK to a final error. */
export type InviteServerUser = 'ack' | 'ack-timeout' | 'transport-error';

type InviteServerStep = Step<InviteServerState, InviteServerTimer, InviteServerUser>;
type Effect = TransactionEffect<InviteServerTimer, InviteServerUser>;

export const INVITE_SERVER_START: InviteServerState = { name: 'Proceeding', response: null, intervalMs: 0 };

const NOTHING: readonly Effect[] = [];

export function stepInviteServer(state: InviteServerState, event: InviteServerEvent, context: TransactionContext): InviteServerStep {
  switch (event.type) {
    case 'invite':
      return { state, effects: resend(state) };
    case 'ack':
      return onAck(state, context);
    case 'respond':
      return onRespond(state, event.status, event.text, context);
    case 'timer':
      return onTimer(state, event.timer, context);
    case 'transport-error':
      // RFC 6026 §8.7: in Accepted the user retransmits the 2xx; a failed send changes nothing.
      if (state.name === 'Accepted' || state.name === 'Terminated') return { state, effects: NOTHING };
      return terminated(state, [{ do: 'notify', user: 'transport-error' }]);
    default:
      return assertNever(event);
  }
}

/** Answers a retransmitted INVITE with the last response in Proceeding and Completed; absorbs it elsewhere. */
function resend(state: InviteServerState): readonly Effect[] {
  if (state.response === null || (state.name !== 'Proceeding' && state.name !== 'Completed')) return NOTHING;
  return [{ do: 'send', text: state.response }];
}

function onAck(state: InviteServerState, context: TransactionContext): InviteServerStep {
  if (state.name === 'Accepted') return { state, effects: [{ do: 'notify', user: 'ack' }] };
  if (state.name !== 'Completed') return { state, effects: NOTHING };
  const stop: Effect[] = [
    { do: 'stop', timer: 'G' },
    { do: 'stop', timer: 'H' },
  ];
  if (context.reliable) return terminated(state, stop);
  return { state: { ...state, name: 'Confirmed' }, effects: [...stop, { do: 'start', timer: 'I', delayMs: context.t4Ms }] };
}

function onRespond(state: InviteServerState, status: number, text: string, context: TransactionContext): InviteServerStep {
  const send: Effect = { do: 'send', text };
  if (state.name === 'Accepted') {
    // RFC 6026 §7.1: further 2xx pass through.
    return { state, effects: status >= 200 && status < 300 ? [send] : NOTHING };
  }
  if (state.name !== 'Proceeding') return { state, effects: NOTHING };
  if (status < 200) return { state: { ...state, response: text }, effects: [send] };
  const longest = 64 * context.t1Ms;
  if (status < 300) {
    return { state: { ...state, name: 'Accepted', response: null }, effects: [send, { do: 'start', timer: 'L', delayMs: longest }] };
  }
  const effects: Effect[] = [send, { do: 'start', timer: 'H', delayMs: longest }];
  if (!context.reliable) effects.push({ do: 'start', timer: 'G', delayMs: context.t1Ms });
  return { state: { name: 'Completed', response: text, intervalMs: context.t1Ms }, effects };
}

function onTimer(state: InviteServerState, timer: InviteServerTimer, context: TransactionContext): InviteServerStep {
  switch (timer) {
    case 'G': {
      if (state.name !== 'Completed' || state.response === null) return { state, effects: NOTHING };
      const intervalMs = Math.min(2 * state.intervalMs, context.t2Ms);
      return {
        state: { ...state, intervalMs },
        effects: [
          { do: 'send', text: state.response },
          { do: 'start', timer: 'G', delayMs: intervalMs },
        ],
      };
    }
    case 'H':
      if (state.name !== 'Completed') return { state, effects: NOTHING };
      return terminated(state, [
        { do: 'stop', timer: 'G' },
        { do: 'notify', user: 'ack-timeout' },
      ]);
    case 'I':
      return state.name === 'Confirmed' ? terminated(state) : { state, effects: NOTHING };
    case 'L':
      return state.name === 'Accepted' ? terminated(state) : { state, effects: NOTHING };
    default:
      return assertNever(timer);
  }
}

function terminated(state: InviteServerState, before: readonly Effect[] = NOTHING): InviteServerStep {
  return { state: { ...state, name: 'Terminated', response: null }, effects: [...before, { do: 'terminate' }] };
}
