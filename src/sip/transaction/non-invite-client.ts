import { assertNever } from '../../lib/result.js';
import type { Step, TransactionContext, TransactionEffect } from './timers.js';

// RFC 3261 §17.1.2.
export interface NonInviteClientState {
  readonly name: 'Trying' | 'Proceeding' | 'Completed' | 'Terminated';
  readonly request: string;
  readonly intervalMs: number;
}

export type NonInviteClientTimer = 'E' | 'F' | 'K';

export type NonInviteClientEvent =
  | { readonly type: 'start' }
  | { readonly type: 'response'; readonly status: number }
  | { readonly type: 'timer'; readonly timer: NonInviteClientTimer }
  | { readonly type: 'transport-error' };

export type NonInviteClientUser = 'response' | 'timeout' | 'transport-error';

type NonInviteClientStep = Step<NonInviteClientState, NonInviteClientTimer, NonInviteClientUser>;
type Effect = TransactionEffect<NonInviteClientTimer, NonInviteClientUser>;

const NOTHING: readonly Effect[] = [];
const NOTIFY: Effect = { do: 'notify', user: 'response' };

export function nonInviteClientStart(request: string): NonInviteClientState {
  return { name: 'Trying', request, intervalMs: 0 };
}

export function stepNonInviteClient(
  state: NonInviteClientState,
  event: NonInviteClientEvent,
  context: TransactionContext,
): NonInviteClientStep {
  switch (event.type) {
    case 'start': {
      const effects: Effect[] = [
        { do: 'send', text: state.request },
        { do: 'start', timer: 'F', delayMs: 64 * context.t1Ms },
      ];
      if (!context.reliable) effects.push({ do: 'start', timer: 'E', delayMs: context.t1Ms });
      return { state: { ...state, intervalMs: context.t1Ms }, effects };
    }
    case 'response':
      return onResponse(state, event.status, context);
    case 'timer':
      return onTimer(state, event.timer, context);
    case 'transport-error':
      if (state.name === 'Terminated' || state.name === 'Completed') return { state, effects: NOTHING };
      return terminated(state, [{ do: 'notify', user: 'transport-error' }]);
    default:
      return assertNever(event);
  }
}

function onResponse(state: NonInviteClientState, status: number, context: TransactionContext): NonInviteClientStep {
  if (state.name === 'Completed' || state.name === 'Terminated') return { state, effects: NOTHING };
  if (status < 200) return { state: { ...state, name: 'Proceeding' }, effects: [NOTIFY] };
  const done: Effect[] = [{ do: 'stop', timer: 'E' }, { do: 'stop', timer: 'F' }, NOTIFY];
  if (context.reliable) return terminated(state, done);
  return {
    state: { ...state, name: 'Completed', request: '' },
    effects: [...done, { do: 'start', timer: 'K', delayMs: context.t4Ms }],
  };
}

function onTimer(state: NonInviteClientState, timer: NonInviteClientTimer, context: TransactionContext): NonInviteClientStep {
  switch (timer) {
    case 'E': {
      if (state.name !== 'Trying' && state.name !== 'Proceeding') return { state, effects: NOTHING };
      // §17.1.2.2: doubling up to T2 in Trying, always T2 in Proceeding.
      const intervalMs = state.name === 'Proceeding' ? context.t2Ms : Math.min(2 * state.intervalMs, context.t2Ms);
      return {
        state: { ...state, intervalMs },
        effects: [
          { do: 'send', text: state.request },
          { do: 'start', timer: 'E', delayMs: intervalMs },
        ],
      };
    }
    case 'F':
      if (state.name !== 'Trying' && state.name !== 'Proceeding') return { state, effects: NOTHING };
      return terminated(state, [
        { do: 'stop', timer: 'E' },
        { do: 'notify', user: 'timeout' },
      ]);
    case 'K':
      return state.name === 'Completed' ? terminated(state) : { state, effects: NOTHING };
    default:
      return assertNever(timer);
  }
}

function terminated(state: NonInviteClientState, before: readonly Effect[] = NOTHING): NonInviteClientStep {
  return { state: { ...state, name: 'Terminated', request: '' }, effects: [...before, { do: 'terminate' }] };
}
