import { NamedTimers, type TimerQueue } from '../../lib/timers.js';
import { assertNever } from '../../lib/result.js';

/**
 * A response that the user agent retransmits on every transport: a 2xx to INVITE until the ACK (RFC 3261 §13.3.1.4), a reliable provisional
 * response until the PRACK (RFC 3262 §3).
 */
interface RetransmitState {
  readonly name: 'Waiting' | 'Acknowledged' | 'GaveUp';
  readonly intervalMs: number;
}

type RetransmitTimer = 'retransmit' | 'give-up';

export type RetransmitEvent =
  | { readonly type: 'sent' }
  | { readonly type: 'acknowledged' }
  | { readonly type: 'timer'; readonly timer: RetransmitTimer };

type RetransmitEffect =
  | { readonly do: 'resend' }
  | { readonly do: 'start'; readonly timer: RetransmitTimer; readonly delayMs: number }
  | { readonly do: 'stop-timers' }
  | { readonly do: 'gave-up' };

interface RetransmitTimes {
  readonly t1Ms: number;
  /** Upper bound of the doubled interval: T2 for a 2xx, none for a provisional response. */
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

export class RetransmittedResponse {
  readonly #timers: NamedTimers<RetransmitTimer>;
  #state: RetransmitState = RETRANSMIT_START;

  /** After the first send. `onGaveUp`: no acknowledgement within 64·T1. */
  constructor(
    private readonly resend: () => void,
    private readonly times: RetransmitTimes,
    timers: TimerQueue,
    private readonly onGaveUp: () => void,
  ) {
    this.#timers = new NamedTimers(timers, (timer) => this.#step({ type: 'timer', timer }));
    this.#step({ type: 'sent' });
  }

  acknowledged(): void {
    this.#step({ type: 'acknowledged' });
  }

  end(): void {
    this.#timers.close();
  }

  #step(event: RetransmitEvent): void {
    const { state, effects } = stepRetransmit(this.#state, event, this.times);
    this.#state = state;
    for (const effect of effects) {
      switch (effect.do) {
        case 'resend':
          this.resend();
          break;
        case 'start':
          this.#timers.start(effect.timer, effect.delayMs);
          break;
        case 'stop-timers':
          this.#timers.close();
          break;
        case 'gave-up':
          this.onGaveUp();
          break;
      }
    }
  }
}
