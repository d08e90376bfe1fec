import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import type { TimerQueue } from '../lib/timers.js';
import type { Endpoint, TransportName } from '../sip/transport/flow.js';

/** What the broker needs besides the user agent. */
export interface BrokerOptions {
  readonly log: Log;
  readonly timers: TimerQueue;
  /** The wall clock as frames state it. */
  readonly time: () => string;
  /** What Contact and `@localhost` name for a transport. */
  readonly advertised: (transport: TransportName) => Endpoint;
  /** Whether a host and port are our own. */
  readonly isSelf: (host: string, port: number | null) => boolean;
  /** Whole User-Agents whose OPTIONS outside of dialogs get 200 here, without an application. */
  readonly optionsUserAgents: readonly string[];
  /** How long an application may leave a request without any answer before the caller gets 500. */
  readonly silenceTimeoutMs: number;
  /** An application that is further behind gets no new call. */
  readonly maxApplicationDelayMs: number;
  readonly clock: Clock;
  /** When a non-INVITE request without an answer gets 100 (RFC 4320 §4.1). */
  readonly tryingAfterMs: number;
  /** How long the calls of a lost application that said who it is wait for it to come back. */
  readonly graceMs: number;
}
