import { assertNever } from '../../lib/result.js';

/** One target of a forwarded request. `Abandoned`: given up, awaiting its final response. */
interface Branch {
  readonly id: number;
  readonly name: 'Calling' | 'Proceeding' | 'Abandoned' | 'Done';
  /** Its final response, or our 408 or 503. */
  readonly status: number | null;
}

/** The response context (RFC 3261 §16.7): targets tried, their responses, targets left. */
export interface ForkingState {
  readonly isInvite: boolean;
  readonly isSerial: boolean;
  readonly followsRedirects: boolean;
  readonly waiting: readonly string[];
  readonly branches: readonly Branch[];
  /** We sent the caller a final response. */
  readonly isAnswered: boolean;
  readonly isDone: boolean;
}

export type ForkingTimer = 'provisional' | 'final';

export type ForkingEvent =
  | { readonly type: 'start' }
  /** `contacts`: of a 3xx, best first. */
  | { readonly type: 'response'; readonly branch: number; readonly status: number; readonly contacts: readonly string[] }
  /** No response (408), or unreachable (503). */
  | { readonly type: 'failed'; readonly branch: number; readonly status: 408 | 503 }
  | { readonly type: 'timer'; readonly branch: number; readonly timer: ForkingTimer }
  /** The caller sent CANCEL. */
  | { readonly type: 'cancel' };

export type ForkingEffect =
  | { readonly do: 'launch'; readonly branch: number; readonly target: string }
  | { readonly do: 'cancel'; readonly branch: number }
  | { readonly do: 'restart-final-timer' | 'stop-provisional-timer' | 'stop-timers'; readonly branch: number }
  /** Forward a provisional response or 2xx to the caller. */
  | { readonly do: 'forward' }
  /** Send the caller the best final response, that of this branch; `null`: there is none. */
  | { readonly do: 'answer'; readonly branch: number | null; readonly status: number }
  /** Every target has a final response. */
  | { readonly do: 'done' };

export interface ForkingStep {
  readonly state: ForkingState;
  readonly effects: readonly ForkingEffect[];
}

/** Bounds the targets that redirections add. */
const MAX_BRANCHES = 32;

export function forkingStart(options: {
  readonly isInvite: boolean;
  readonly isSerial: boolean;
  readonly followsRedirects: boolean;
  readonly targets: readonly string[];
}): ForkingState {
  const { targets, ...rest } = options;
  return { ...rest, waiting: targets, branches: [], isAnswered: false, isDone: false };
}

export function stepForking(state: ForkingState, event: ForkingEvent): ForkingStep {
  // A 2xx may be retransmitted, or come from a downstream fork, after the end.
  if (state.isDone && event.type !== 'response') return { state, effects: [] };
  switch (event.type) {
    case 'start':
      return proceed(state, []);
    case 'response':
      return onResponse(state, event.branch, event.status, event.contacts);
    case 'failed': {
      const branch = find(state, event.branch);
      if (branch === undefined || branch.name === 'Done') return { state, effects: [] };
      return proceed(withBranch(state, { ...branch, name: 'Done', status: event.status }), [{ do: 'stop-timers', branch: branch.id }]);
    }
    case 'timer':
      return onTimer(state, event.branch, event.timer);
    case 'cancel':
      return proceed({ ...state, waiting: [] }, cancelAll(state));
    default:
      return assertNever(event);
  }
}

function onResponse(state: ForkingState, id: number, status: number, contacts: readonly string[]): ForkingStep {
  const branch = find(state, id);
  if (branch === undefined) return { state, effects: [] };
  if (status < 200) {
    if (branch.name === 'Done' || state.isAnswered) return { state, effects: [] };
    const effects: ForkingEffect[] = [
      { do: 'stop-provisional-timer', branch: id },
      { do: 'restart-final-timer', branch: id },
    ];
    const next = branch.name === 'Calling' ? withBranch(state, { ...branch, name: 'Proceeding' }) : state;
    return { state: next, effects: [...effects, { do: 'forward' }] };
  }
  // RFC 3261 §16.7 step 5: forwards every 2xx to an INVITE, however late.
  if (branch.name === 'Done') return { state, effects: status < 300 && state.isInvite ? [{ do: 'forward' }] : [] };
  const stop: ForkingEffect = { do: 'stop-timers', branch: id };
  // We gave up and cancelled a slow target (RFC 3261 §16.8): its 487 would mislead a caller who did not cancel.
  const counted = branch.name === 'Abandoned' && status === 487 ? 408 : status;
  const settled = withBranch(state, { ...branch, name: 'Done', status: counted });
  if (status < 300) {
    const forward: ForkingEffect[] = state.isInvite || !state.isAnswered ? [{ do: 'forward' }] : [];
    return proceed({ ...settled, waiting: [], isAnswered: true }, [stop, ...forward, ...cancelAll(settled)]);
  }
  if (status >= 600) return proceed({ ...settled, waiting: [] }, [stop, ...cancelAll(settled)]);
  if (status < 400 && state.followsRedirects && !state.isAnswered) {
    const room = Math.max(0, MAX_BRANCHES - state.branches.length - state.waiting.length);
    return proceed({ ...settled, waiting: [...contacts.slice(0, room), ...state.waiting] }, [stop]);
  }
  return proceed(settled, [stop]);
}

function onTimer(state: ForkingState, id: number, timer: ForkingTimer): ForkingStep {
  const branch = find(state, id);
  if (branch === undefined || branch.name === 'Done' || branch.name === 'Abandoned') return { state, effects: [] };
  if (timer === 'provisional' && branch.name !== 'Calling') return { state, effects: [] };
  // A non-INVITE request cannot be cancelled; an INVITE only after a provisional response (§9.1).
  const effects: ForkingEffect[] = [{ do: 'stop-timers', branch: id }];
  if (state.isInvite) effects.push({ do: 'cancel', branch: id });
  return proceed(withBranch(state, { ...branch, name: 'Abandoned', status: 408 }), effects);
}

/** Starts waiting targets, or answers and ends when none are left. */
function proceed(state: ForkingState, before: readonly ForkingEffect[]): ForkingStep {
  const effects = [...before];
  let next = state;
  const isBusy = (): boolean => next.branches.some(({ name }) => name === 'Calling' || name === 'Proceeding');
  while (next.waiting.length > 0 && !next.isAnswered && !(next.isSerial && isBusy())) {
    const [target = '', ...waiting] = next.waiting;
    const branch: Branch = { id: next.branches.length, name: 'Calling', status: null };
    next = { ...next, waiting, branches: [...next.branches, branch] };
    effects.push({ do: 'launch', branch: branch.id, target });
  }
  if (!isBusy() && next.waiting.length === 0 && !next.isAnswered) {
    const best = bestOf(next.branches);
    next = { ...next, isAnswered: true };
    effects.push(best ?? { do: 'answer', branch: null, status: 487 });
  }
  if (next.isAnswered && next.branches.every(({ name }) => name === 'Done')) {
    next = { ...next, isDone: true };
    effects.push({ do: 'done' });
  }
  return { state: next, effects };
}

/**
 * RFC 3261 §16.7 step 6: a 6xx, else the lowest class; among 4xx, first those that let the caller correct the request. A target's 503
 * becomes 500: the trouble is not ours.
 */
function bestOf(branches: readonly Branch[]): ForkingEffect | undefined {
  let best: Branch | undefined;
  for (const branch of branches) if (best === undefined || rank(branch.status ?? 408) < rank(best.status ?? 408)) best = branch;
  if (best === undefined) return undefined;
  const status = best.status ?? 408;
  return { do: 'answer', branch: best.id, status: status === 503 ? 500 : status };
}

const TELLING = new Set([401, 407, 415, 420, 484]);

function rank(status: number): number {
  if (status >= 600) return 0;
  if (status < 400) return 1;
  if (TELLING.has(status)) return 2;
  if (status < 500) return status === 408 ? 4 : 3;
  return 5;
}

function cancelAll(state: ForkingState): ForkingEffect[] {
  if (!state.isInvite) return [];
  return state.branches
    .filter(({ name }) => name === 'Calling' || name === 'Proceeding')
    .map(({ id }): ForkingEffect => ({ do: 'cancel', branch: id }));
}

function find(state: ForkingState, id: number): Branch | undefined {
  return state.branches[id];
}

function withBranch(state: ForkingState, branch: Branch): ForkingState {
  return { ...state, branches: state.branches.map((other) => (other.id === branch.id ? branch : other)) };
}
