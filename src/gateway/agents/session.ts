import { assertNever } from '../../lib/result.js';

// The built-in test line: it greets, echoes the caller, reads back every digit, tells the call's figures on `*`, and says goodbye on `#`.

/** RFC 4733 §3.2. */
const STAR_EVENT = 10;
const POUND_EVENT = 11;
const MAX_PENDING = 64;

export type Phrase =
  | { readonly kind: 'greeting' }
  /** A digit read back: 0-9, 12-15 A-D. */
  | { readonly kind: 'digit'; readonly event: number }
  /** `*`: how the call is doing. */
  | { readonly kind: 'figures' }
  | { readonly kind: 'goodbye' };

export interface SessionState {
  /** `waiting`: not started. `echo`: callers hear their own voice. In all others the line speaks, or is silent for good (`ended`). */
  readonly phase: 'waiting' | 'greeting' | 'echo' | 'reading' | 'farewell' | 'ended';
  /** Digits that are still to be read back. */
  readonly pending: readonly number[];
  /** `#` came: goodbye follows the pending digits. */
  readonly isLeaving: boolean;
}

export type SessionEvent =
  | { readonly type: 'started' }
  | { readonly type: 'digit'; readonly event: number }
  /** The phrase asked for last was spoken to its end, or could not be. */
  | { readonly type: 'phrase-finished' };

export type SessionEffect =
  | { readonly type: 'say'; readonly phrase: Phrase }
  | { readonly type: 'stop-speaking' }
  | { readonly type: 'hang-up' };

export interface Step {
  readonly state: SessionState;
  readonly effects: readonly SessionEffect[];
}

export const INITIAL_SESSION: SessionState = { phase: 'waiting', pending: [], isLeaving: false };

/** Total: an event that means nothing in a state leaves it as it is. */
export function step(state: SessionState, event: SessionEvent): Step {
  switch (event.type) {
    case 'started':
      if (state.phase !== 'waiting') return { state, effects: [] };
      // Digits that were pressed before the line could speak count as barge-in.
      if (state.pending.length > 0 || state.isLeaving) return speakNext(state);
      return { state: { ...state, phase: 'greeting' }, effects: [{ type: 'say', phrase: { kind: 'greeting' } }] };
    case 'digit':
      return digit(state, event.event);
    case 'phrase-finished':
      return phraseFinished(state);
    default:
      return assertNever(event);
  }
}

function digit(state: SessionState, event: number): Step {
  if (state.isLeaving || state.phase === 'farewell' || state.phase === 'ended') return { state, effects: [] };
  const next: SessionState =
    event === POUND_EVENT ? { ...state, isLeaving: true } : { ...state, pending: [...state.pending, event].slice(0, MAX_PENDING) };
  switch (state.phase) {
    case 'waiting':
    case 'reading':
      return { state: next, effects: [] };
    case 'greeting': {
      const spoken = speakNext(next);
      return { state: spoken.state, effects: [{ type: 'stop-speaking' }, ...spoken.effects] };
    }
    case 'echo':
      return speakNext(next);
    default:
      return assertNever(state.phase);
  }
}

function phraseFinished(state: SessionState): Step {
  switch (state.phase) {
    case 'greeting':
    case 'reading':
      return speakNext(state);
    case 'farewell':
      return { state: { ...state, phase: 'ended' }, effects: [{ type: 'hang-up' }] };
    case 'waiting':
    case 'echo':
    case 'ended':
      return { state, effects: [] };
    default:
      return assertNever(state.phase);
  }
}

function speakNext(state: SessionState): Step {
  const [event, ...pending] = state.pending;
  if (event !== undefined) {
    const phrase: Phrase = event === STAR_EVENT ? { kind: 'figures' } : { kind: 'digit', event };
    return { state: { ...state, phase: 'reading', pending }, effects: [{ type: 'say', phrase }] };
  }
  if (state.isLeaving) return { state: { ...state, phase: 'farewell' }, effects: [{ type: 'say', phrase: { kind: 'goodbye' } }] };
  return { state: { ...state, phase: 'echo' }, effects: [] };
}
