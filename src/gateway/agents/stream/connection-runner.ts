import type { AgentConnectionLimits } from '../../model/agent.js';
import { AgentUnavailableError } from '../../ports/ports.js';
import type { CancelTimer, Clock } from '../../../lib/clock.js';
import { IDLE_CONNECTION, stepConnection, type ConnectionEffect, type ConnectionEvent, type ConnectionTimer } from './connection.js';

/** What a connection does to the socket of its agent. */
export type ConnectionWork = Exclude<ConnectionEffect, { do: 'accepted' | 'refused' | 'start-timer' | 'stop-timer' }>;

interface ConnectionOwner {
  perform(work: ConnectionWork): void;
  /** Called before the step of the timer. */
  onTimer(timer: ConnectionTimer): void;
  /** Runs what a timer calls. */
  safely(work: () => void): void;
}

/** Runs `stepConnection`: its timers, and the promise of the first connection. */
export class ConnectionRunner {
  #state = IDLE_CONNECTION;
  #settle: { readonly resolve: () => void; readonly reject: (error: Error) => void } | null = null;
  readonly #timers = new Map<ConnectionTimer, CancelTimer>();

  constructor(
    private readonly clock: Clock,
    private readonly limits: AgentConnectionLimits,
    private readonly owner: ConnectionOwner,
  ) {}

  /** Rejects with `AgentUnavailableError`. */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.step({ type: 'connect' });
    });
  }

  step(event: ConnectionEvent): void {
    const { state, effects } = stepConnection(this.#state, event, this.limits);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
  }

  /** The call ended. */
  close(): void {
    this.step({ type: 'released' });
    this.#settle?.reject(new AgentUnavailableError('the call ended'));
    this.#settle = null;
  }

  #perform(effect: ConnectionEffect): void {
    switch (effect.do) {
      case 'accepted':
        this.#settle?.resolve();
        this.#settle = null;
        return;
      case 'refused':
        this.#settle?.reject(new AgentUnavailableError(effect.message));
        this.#settle = null;
        return;
      case 'start-timer':
        return this.#startTimer(effect.timer, effect.delayMs);
      case 'stop-timer':
        this.#timers.get(effect.timer)?.();
        this.#timers.delete(effect.timer);
        return;
      default:
        this.owner.perform(effect);
    }
  }

  #startTimer(timer: ConnectionTimer, delayMs: number): void {
    this.#timers.get(timer)?.();
    const fire = (): void => {
      this.owner.onTimer(timer);
      this.step({ type: 'timer', timer });
    };
    this.#timers.set(
      timer,
      this.clock.setTimer(delayMs, () => this.owner.safely(fire)),
    );
  }
}
