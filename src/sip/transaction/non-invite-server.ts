import { assertNever } from '../../lib/result.js';
import type { Step, TransactionContext, TransactionEffect } from './timers.js';

// RFC 3261 §17.2.2, RFC 4320.
export interface NonInviteServerState {
  readonly name: 'Trying' | 'Proceeding' | 'Completed' | 'Terminated';
  readonly response: string | null;
}

export type NonInviteServerTimer = 'J';

export type NonInviteServerEvent =
  | { readonly type: 'request' }
  | { readonly type: 'respond'; readonly status: number; readonly text: string }
  /** RFC 4320 §4.2: send no response. */
  | { readonly type: 'abandon' }
  | { readonly type: 'timer'; readonly timer: NonInviteServerTimer }
  | { readonly type: 'transport-error' };

type NonInviteServerStep = Step<NonInviteServerState, NonInviteServerTimer, 'transport-error'>;
type Effect = TransactionEffect<NonInviteServerTimer, 'transport-error'>;

export const NON_INVITE_SERVER_START: NonInviteServerState = { name: 'Trying', response: null };

const NOTHING: readonly Effect[] = [];

export function stepNonInviteServer(
  state: NonInviteServerState,
  event: NonInviteServerEvent,
  context: TransactionContext,
): NonInviteServerStep {
  switch (event.type) {
    case 'request':
      return {
        state,
        effects: state.response === null || state.name === 'Terminated' ? NOTHING : [{ do: 'send', text: state.response }],
      };
    case 'respond':
      return onRespond(state, event.status, event.text, context);
    case 'abandon':
      return state.name === 'Trying' || state.name === 'Proceeding' ? terminated(state) : { state, effects: NOTHING };
    case 'timer':
      return state.name === 'Completed' ? terminated(state) : { state, effects: NOTHING };
    case 'transport-error':
      if (state.name === 'Terminated') return { state, effects: NOTHING };
      return terminated(state, [{ do: 'notify', user: 'transport-error' }]);
    default:
      return assertNever(event);
  }
}

function onRespond(state: NonInviteServerState, status: number, text: string, context: TransactionContext): NonInviteServerStep {
  if (state.name === 'Completed' || state.name === 'Terminated') return { state, effects: NOTHING };
  const send: Effect = { do: 'send', text };
  if (status < 200) return { state: { name: 'Proceeding', response: text }, effects: [send] };
  if (context.reliable) return terminated(state, [send]);
  return { state: { name: 'Completed', response: text }, effects: [send, { do: 'start', timer: 'J', delayMs: 64 * context.t1Ms }] };
}

function terminated(state: NonInviteServerState, before: readonly Effect[] = NOTHING): NonInviteServerStep {
  return { state: { ...state, name: 'Terminated' }, effects: [...before, { do: 'terminate' }] };
}
