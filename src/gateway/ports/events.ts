import type { CredentialsVerdict } from '../admission/challenge.js';
import type { AgentDescription } from '../model/agent.js';
import { channel, subscribe as subscribeTo, unsubscribe, type Channel } from 'node:diagnostics_channel';
import type { RtcpSeen } from '../../lib/observed.js';
import type { EndedCall } from './ports.js';

/** Events of a gateway for its observers. Publishers import no observer, and pay nothing while there is none. */
export interface GatewayEvents {
  /** The 200 of a call left, or that of a call that we placed arrived. */
  readonly 'call.answered': {
    readonly direction: 'inbound' | 'outbound';
    /** Since its INVITE. */
    readonly tookMs: number;
  };
  /** An INVITE to a number with a challenge. */
  readonly 'call.challenged': { readonly verdict: CredentialsVerdict };
  /** A call ended or was refused; its record is not stored yet. */
  readonly 'call.ended': EndedCall;
  /** Redis, or the spool, has the record of a call. */
  readonly 'call.stored': EndedCall;
  /** The person pressed a key; a character of 0-9, *, # and A-D. */
  readonly 'call.digit': { readonly callId: string; readonly digit: string };
  readonly 'agent.connect': { readonly agent: AgentDescription['kind']; readonly isConnected: boolean; readonly tookMs: number };
  /** RTCP of a leg, as sent or received. */
  readonly 'rtcp.seen': RtcpSeen;
  readonly 'tool.run': { readonly outcome: 'ok' | 'TOOL_BAD_INPUT' | 'TOOL_FAILED' | 'TOOL_TIMEOUT'; readonly tookMs: number };
  readonly 'webhook.attempt': {
    readonly callId: string;
    /** From 1. */
    readonly attempt: number;
    readonly outcome: 'delivered' | 'failed' | 'refused' | 'aborted';
    /** HTTP; `null`: there was no answer. */
    readonly status: number | null;
    /** Epoch milliseconds. */
    readonly startedMs: number;
    readonly tookMs: number;
  };
  readonly 'webhook.dead_letter': { readonly deliveryId: string };
  readonly 'api.request': ServedRequest;
  /** One command, script or pipeline. */
  readonly 'redis.command': { readonly tookMs: number; readonly isAnswered: boolean };
  readonly 'rtpengine.command': {
    /** `host:port` */
    readonly node: string;
    /** The name of the ng command, such as `offer`. */
    readonly command: string;
    readonly tookMs: number;
    /** `null`: rtpengine answered. */
    readonly failure: 'timeout' | 'refused' | 'closed' | null;
  };
}

/** A request to the control API that was answered. */
export interface ServedRequest {
  readonly method: string;
  /** The pattern of its route, such as `/agents/:id`; `null`: no route takes it. */
  readonly route: string | null;
  readonly status: number;
  readonly durationMs: number;
}

type EventName = keyof GatewayEvents;

/** A channel that nobody refers to is forgotten, and its subscribers with it. */
const channels = new Map<EventName, Channel>();

/** Any module of the process can subscribe to `trunkline:` and the name. */
const fullName = (name: EventName): string => `trunkline:${name}`;

function channelOf(name: EventName): Channel {
  let known = channels.get(name);
  if (known === undefined) channels.set(name, (known = channel(fullName(name))));
  return known;
}

/** Hands an event to all observers before it returns. */
export function publish<Name extends EventName>(name: Name, event: GatewayEvents[Name]): void {
  const found = channelOf(name);
  if (found.hasSubscribers) found.publish(event);
}

/**
 * @param observe must not throw: what it throws ends the process
 * @returns ends the subscription
 */
export function subscribe<Name extends EventName>(name: Name, observe: (event: GatewayEvents[Name]) => void): () => void {
  const listener = (event: unknown): void => observe(event as GatewayEvents[Name]);
  channelOf(name);
  subscribeTo(fullName(name), listener);
  return () => {
    unsubscribe(fullName(name), listener);
  };
}
