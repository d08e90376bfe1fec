import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import type { TimerQueue } from '../lib/timers.js';
import type { Endpoint, TransportName } from '../sip/transport/flow.js';

/** What the broker needs besides the user agent. */
export interface BrokerOptions {
  readonly log: Log;
  readonly timers: TimerQueue;
  /** Wall clock time in frame format. */
  readonly time: () => string;
  /** Address in Contact and for `@localhost`, by transport. */
  readonly advertised: (transport: TransportName) => Endpoint;
  /** Whether a host and port are ours. */
  readonly isSelf: (host: string, port: number | null) => boolean;
  /** Exact User-Agents whose OPTIONS outside dialogs the server answers with 200. */
  readonly optionsUserAgents: readonly string[];
  /** The Allow of our own 405 and 501; unset: the methods that applications routed. */
  readonly allow?: string | null;
  /** Time without any response from the application before the caller gets 500. */
  readonly silenceTimeoutMs: number;
  /** An application further behind gets no new calls. */
  readonly maxApplicationDelayMs: number;
  readonly clock: Clock;
  /** When an unanswered non-INVITE request gets 100 (RFC 4320 §4.1). */
  readonly tryingAfterMs: number;
  /** How long calls of a disconnected application with an instance id wait for it. */
  readonly graceMs: number;
  /** How long calls wait for the next process; later ones end. */
  readonly parkMs: number;
}
