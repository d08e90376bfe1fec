/** RFC 3261 §17 and Table 4, in milliseconds. */
export interface TimerSettings {
  readonly t1Ms: number;
  readonly t2Ms: number;
  readonly t4Ms: number;
}

export const DEFAULT_TIMERS: TimerSettings = { t1Ms: 500, t2Ms: 4_000, t4Ms: 5_000 };

/** Timers, and properties of the transport. */
export interface TransactionContext extends TimerSettings {
  /** TCP and TLS: no retransmission, so none to absorb. */
  readonly reliable: boolean;
}

/** What the runner must do, in order. Timer names are those of RFC 3261 and RFC 6026. */
export type TransactionEffect<Timer extends string, User> =
  | { readonly do: 'send'; readonly text: string }
  | { readonly do: 'start'; readonly timer: Timer; readonly delayMs: number }
  | { readonly do: 'stop'; readonly timer: Timer }
  /** Notify the transaction user. */
  | { readonly do: 'notify'; readonly user: User }
  | { readonly do: 'terminate' };

export interface Step<State, Timer extends string, User> {
  readonly state: State;
  readonly effects: readonly TransactionEffect<Timer, User>[];
}
