import { NamedTimers, type TimerQueue } from '../../lib/timers.js';
import {
  RETRANSMIT_START,
  stepRetransmit,
  type RetransmitEvent,
  type RetransmitState,
  type RetransmitTimer,
  type RetransmitTimes,
} from './retransmission.js';
import type { Flow } from '../transport/flow.js';

/** A response on its way, as often as it takes. */
export class RetransmittedResponse {
  readonly #timers: NamedTimers<RetransmitTimer>;
  #state: RetransmitState = RETRANSMIT_START;

  /** It has been sent once. `onGaveUp`: the peer has not acknowledged it within 64·T1. */
  constructor(
    private readonly text: string,
    private readonly flow: Flow,
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

  /** It is of no use any more. */
  end(): void {
    this.#timers.stopAll();
  }

  #step(event: RetransmitEvent): void {
    const { state, effects } = stepRetransmit(this.#state, event, this.times);
    this.#state = state;
    for (const effect of effects) {
      switch (effect.do) {
        case 'resend':
          this.flow.send(this.text);
          break;
        case 'start':
          this.#timers.start(effect.timer, effect.delayMs);
          break;
        case 'stop-timers':
          this.#timers.stopAll();
          break;
        case 'gave-up':
          this.onGaveUp();
          break;
      }
    }
  }
}
