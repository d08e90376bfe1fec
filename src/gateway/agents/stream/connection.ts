import { assertNever } from '../../../lib/result.js';

// The life of an agent's WebSocket, without the socket.

export interface ConnectionState {
  readonly name:
    /** Not asked yet. */
    | 'Idle'
    /** The first connection is being made, before the call is answered. */
    | 'Dialling'
    /** Connected; the call is not acknowledged yet. */
    | 'Ready'
    /** Audio flows both ways. */
    | 'Streaming'
    /** The connection broke: the next attempt is due in a moment, */
    | 'Waiting'
    /** or under way. */
    | 'Redialling'
    | 'Closed';
  /** Attempts since the connection broke that came to nothing, or to nothing that lasted. */
  readonly attempts: number;
  /** `running`: reconnecting, or the new connection is recent. `over`: the grace is used up; another break ends the call. */
  readonly recovery: 'none' | 'running' | 'over';
  /** The call was acknowledged: audio flows as soon as there is a connection. */
  readonly isStarted: boolean;
  /** How often audio began to flow. */
  readonly streams: number;
}

export type ConnectionEvent =
  | { readonly type: 'connect' }
  | { readonly type: 'opened' }
  /** The connection could not be made; what for, for a person. */
  | { readonly type: 'failed'; readonly message: string }
  /** The WebSocket was closed; 1006: without a close frame. */
  | { readonly type: 'closed'; readonly code: number }
  /** Pings are not answered any more. */
  | { readonly type: 'silent' }
  /** The call was answered and acknowledged. */
  | { readonly type: 'started' }
  | { readonly type: 'timer'; readonly timer: ConnectionTimer }
  /** The call is over. */
  | { readonly type: 'released' };

export type ConnectionTimer = 'connect' | 'retry' | 'grace' | 'settled';

export type ConnectionEffect =
  | { readonly do: 'dial' }
  | { readonly do: 'accepted' }
  | { readonly do: 'refused'; readonly message: string }
  /** `connected` and `start`. `reconnects`: how often audio flowed before. */
  | { readonly do: 'announce'; readonly reconnects: number }
  /** The connection broke before the ACK, and is made again: a call that is not answered yet need not wait. */
  | { readonly do: 'away' }
  /** `stop`, and the socket is closed. */
  | { readonly do: 'say-stop' }
  /** Closes the socket, or gives the attempt up, without a close frame. */
  | { readonly do: 'abandon' }
  | { readonly do: 'hang-up' }
  | { readonly do: 'lost' }
  | { readonly do: 'start-timer'; readonly timer: ConnectionTimer; readonly delayMs: number }
  | { readonly do: 'stop-timer'; readonly timer: ConnectionTimer };

export interface ConnectionLimits {
  readonly connectTimeoutMs: number;
  readonly reconnectGraceMs: number;
}

interface ConnectionStep {
  readonly state: ConnectionState;
  readonly effects: readonly ConnectionEffect[];
}

export const IDLE_CONNECTION: ConnectionState = { name: 'Idle', attempts: 0, recovery: 'none', isStarted: false, streams: 0 };

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 2_000;
/** A bot that fails at `start` is there each time that it is tried. */
const SETTLED_MS = 2_000;
/** Nothing was said (1005 stands for no code at all), or the connection is not to blame on the agent's will: RFC 6455 §7.4.1, IANA. */
const BROKEN: ReadonlySet<number> = new Set([1006, 1011, 1012, 1013, 1014, 1015]);

const NOTHING: readonly ConnectionEffect[] = [];
const STOP_TIMERS: readonly ConnectionEffect[] = (['connect', 'retry', 'grace', 'settled'] as const).map((timer) => ({
  do: 'stop-timer',
  timer,
}));

/** Total: an event with no meaning in a state changes nothing. */
export function stepConnection(state: ConnectionState, event: ConnectionEvent, limits: ConnectionLimits): ConnectionStep {
  const stay = { state, effects: NOTHING };
  if (state.name === 'Closed') return stay;
  switch (event.type) {
    case 'connect':
      return state.name === 'Idle' ? dial(state, 'Dialling', limits) : stay;
    case 'opened':
      return onOpened(state);
    case 'failed':
      return onFailed(state, event.message);
    case 'closed':
      return onClosed(state, BROKEN.has(event.code));
    case 'silent':
      return isConnected(state) ? broken(state, [{ do: 'abandon' }], limits) : stay;
    case 'started':
      if (state.isStarted) return stay;
      return state.name === 'Ready' ? stream({ ...state, isStarted: true }) : { ...stay, state: { ...state, isStarted: true } };
    case 'timer':
      return onTimer(state, event.timer, limits);
    case 'released':
      return { state: closed(state), effects: [...STOP_TIMERS, { do: state.name === 'Streaming' ? 'say-stop' : 'abandon' }] };
    default:
      return assertNever(event);
  }

  function onClosed(from: ConnectionState, isBroken: boolean): ConnectionStep {
    if (!isConnected(from)) return onFailed(from, 'the connection was closed at once');
    if (isBroken) return broken(from, [], limits);
    return { state: closed(from), effects: [...STOP_TIMERS, { do: 'hang-up' }] };
  }
}

function dial(state: ConnectionState, name: 'Dialling' | 'Redialling', limits: ConnectionLimits): ConnectionStep {
  return {
    state: { ...state, name },
    effects: [{ do: 'start-timer', timer: 'connect', delayMs: limits.connectTimeoutMs }, { do: 'dial' }],
  };
}

function onOpened(state: ConnectionState): ConnectionStep {
  if (state.name !== 'Dialling' && state.name !== 'Redialling') return { state, effects: NOTHING };
  const ready: ConnectionStep = state.isStarted ? stream(state) : { state: { ...state, name: 'Ready' }, effects: NOTHING };
  const said: ConnectionEffect =
    state.name === 'Dialling' ? { do: 'accepted' } : { do: 'start-timer', timer: 'settled', delayMs: SETTLED_MS };
  return { state: ready.state, effects: [{ do: 'stop-timer', timer: 'connect' }, said, ...ready.effects] };
}

/** Audio flows. */
function stream(state: ConnectionState): ConnectionStep {
  const { streams } = state;
  return { state: { ...state, name: 'Streaming', streams: streams + 1 }, effects: [{ do: 'announce', reconnects: streams }] };
}

function onFailed(state: ConnectionState, message: string): ConnectionStep {
  if (state.name === 'Dialling') return { state: closed(state), effects: [...STOP_TIMERS, { do: 'refused', message }] };
  return state.name === 'Redialling' ? waitToRedial(state, 'connect') : { state, effects: NOTHING };
}

function waitToRedial(state: ConnectionState, timer: ConnectionTimer): ConnectionStep {
  const delayMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** state.attempts);
  return {
    state: { ...state, name: 'Waiting', attempts: state.attempts + 1 },
    effects: [
      { do: 'stop-timer', timer },
      { do: 'start-timer', timer: 'retry', delayMs },
    ],
  };
}

function broken(state: ConnectionState, before: readonly ConnectionEffect[], limits: ConnectionLimits): ConnectionStep {
  if (limits.reconnectGraceMs === 0 || state.recovery === 'over') {
    return { state: closed(state), effects: [...before, ...STOP_TIMERS, { do: 'lost' }] };
  }
  const first: readonly ConnectionEffect[] = state.isStarted ? before : [...before, { do: 'away' }];
  if (state.recovery === 'running') {
    const step = waitToRedial(state, 'settled');
    return { ...step, effects: [...first, ...step.effects] };
  }
  const step = dial({ ...state, recovery: 'running' }, 'Redialling', limits);
  return { ...step, effects: [...first, { do: 'start-timer', timer: 'grace', delayMs: limits.reconnectGraceMs }, ...step.effects] };
}

function onTimer(state: ConnectionState, timer: ConnectionTimer, limits: ConnectionLimits): ConnectionStep {
  switch (timer) {
    case 'connect': {
      if (state.name !== 'Dialling' && state.name !== 'Redialling') return { state, effects: NOTHING };
      const step = onFailed(state, `no answer within ${String(limits.connectTimeoutMs)} ms`);
      return { ...step, effects: [{ do: 'abandon' }, ...step.effects] };
    }
    case 'retry':
      return state.name === 'Waiting' ? dial(state, 'Redialling', limits) : { state, effects: NOTHING };
    case 'settled':
      if (!isConnected(state)) return { state, effects: NOTHING };
      return { state: { ...state, attempts: 0, recovery: 'none' }, effects: [{ do: 'stop-timer', timer: 'grace' }] };
    case 'grace':
      // The connection that there is may still last.
      if (isConnected(state)) return { state: { ...state, recovery: 'over' }, effects: NOTHING };
      if (state.name !== 'Waiting' && state.name !== 'Redialling') return { state, effects: NOTHING };
      return { state: closed(state), effects: [...STOP_TIMERS, { do: 'abandon' }, { do: 'lost' }] };
    default:
      return assertNever(timer);
  }
}

function isConnected({ name }: ConnectionState): boolean {
  return name === 'Ready' || name === 'Streaming';
}

function closed(state: ConnectionState): ConnectionState {
  return { ...state, name: 'Closed' };
}
