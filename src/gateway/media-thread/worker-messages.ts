import type { AgentConnectionLimits, AgentDescription, ForkSettings } from '../model/agent.js';
import type { LegCommand } from '../model/leg-command.js';
import type { LegChange, LegDescription, LegEvent, LegFigures, MediaDelays } from '../model/media.js';
import type { LogFields } from '../../lib/log.js';
import type { RtcpSeen } from '../../lib/observed.js';
import type { EndpointCounters } from '../media/endpoint.js';

/** A worker thread's start parameters. */
export interface WorkerSettings {
  readonly address: string;
  readonly rtpPorts: readonly number[];
  readonly mediaTimeoutMs: number;
  /** Path or name of the speech program. */
  readonly speechCommand: string;
  readonly agents: AgentConnectionLimits;
  /** `<Play>` may name private and loopback addresses. */
  readonly webhooksAllowPrivate: boolean;
  /** It loads everything, and binds its sockets when it gets `bind`. */
  readonly waitsToBind: boolean;
  /** The worker sends its legs' RTCP. */
  readonly tellsRtcp: boolean;
}

/** To a worker. */
export type WorkerCommand = { readonly type: 'bind'; readonly isWhenFree: boolean } | CallCommand;

/** A request has an id, which its one reply repeats. */
export type CallCommand =
  | {
      readonly type: 'connect-agent';
      readonly requestId: number;
      readonly callId: string;
      readonly agent: AgentDescription;
      /** Another process still has the call. */
      readonly isAhead: boolean;
    }
  | { readonly type: 'leg'; readonly callId: string; readonly command: LegCommand }
  | { readonly type: 'start-fork'; readonly callId: string; readonly fork: ForkSettings }
  /** A leg that cannot be opened is lost at once. */
  | { readonly type: 'open'; readonly leg: LegDescription }
  /** Another process still has the call. */
  | { readonly type: 'open-ahead'; readonly leg: LegDescription }
  | { readonly type: 'change'; readonly requestId: number; readonly callId: string; readonly change: LegChange }
  | { readonly type: 'figures'; readonly requestId: number; readonly callId: string }
  | { readonly type: 'close'; readonly requestId: number; readonly callId: string }
  | { readonly type: 'counters'; readonly requestId: number }
  /** Another process has the calls. */
  | { readonly type: 'leave'; readonly requestId: number }
  | { readonly type: 'shut-down' };

export type WorkerReply =
  | { readonly type: 'agent-connected' }
  | { readonly type: 'agent-unavailable'; readonly message: string }
  | { readonly type: 'changed' }
  | { readonly type: 'left' }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'figures'; readonly figures: LegFigures | null }
  | { readonly type: 'counted'; readonly counters: EndpointCounters };

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** From a worker. */
export type WorkerMessage =
  /** The sockets of these ports are bound. */
  | { readonly type: 'ready'; readonly rtpPorts: readonly number[] }
  /** No socket could be bound; the worker ends. */
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'reply'; readonly requestId: number; readonly reply: WorkerReply }
  | { readonly type: 'leg-event'; readonly callId: string; readonly event: LegEvent }
  /** Also sent for a closed leg: its last report is an RTCP BYE. */
  | { readonly type: 'rtcp'; readonly seen: RtcpSeen }
  | { readonly type: 'delays'; readonly delays: MediaDelays }
  | { readonly type: 'log'; readonly level: LogLevel; readonly fields: LogFields; readonly event: string };
