import type { Reason } from '../model/reasons.js';
import { isSourceAllowed } from './decide.js';

/** Limits of the whole trunk, for all numbers. */
export interface EdgePolicy {
  /** CIDR blocks or addresses that INVITEs may come from; empty: any. */
  readonly allowedSources: readonly string[];
  /** One of these names must be in the peer's verified client certificate; empty: no check. */
  readonly allowedIdentities: readonly string[];
  /** Calls in progress on this gateway; `null`: no limit. */
  readonly maxCalls: number | null;
}

/** The gateway's current state. */
export interface EdgeState {
  readonly isDraining: boolean;
  /** Overloaded: event loop, media threads or CPU. */
  readonly isOverloaded: boolean;
  readonly calls: number;
  /** At least one media relay responds. */
  readonly isRelayUp: boolean;
  /** Calls with media that still fit; `null`: unknown. */
  readonly mediaHeadroom: number | null;
}

/** The source of a request. */
export interface RequestSource {
  readonly address: string;
  /** Names in the peer's verified certificate, from the SIP server. */
  readonly identities: readonly string[];
}

/** Why this gateway refuses calls; `null`: it accepts them. OPTIONS gets the same answer. */
export function notReady(edge: EdgeState, policy: EdgePolicy): Extract<Reason, 'DRAINING' | 'OVERLOADED' | 'MEDIA_UNAVAILABLE'> | null {
  if (edge.isDraining) return 'DRAINING';
  const isFull = policy.maxCalls !== null && edge.calls >= policy.maxCalls;
  if (edge.isOverloaded || isFull) return 'OVERLOADED';
  return !edge.isRelayUp || (edge.mediaHeadroom !== null && edge.mediaHeadroom <= 0) ? 'MEDIA_UNAVAILABLE' : null;
}

/** Whether the trunk accepts requests from this source. */
export function isTrusted(policy: EdgePolicy, source: RequestSource): boolean {
  if (!isSourceAllowed(policy.allowedSources, source.address)) return false;
  if (policy.allowedIdentities.length === 0) return true;
  // `DNS:sip.example.com`, or `sip.example.com` for a name of any type.
  const names = new Set(source.identities.flatMap((name) => [name.toLowerCase(), name.toLowerCase().replace(/^[a-z]+:/, '')]));
  return policy.allowedIdentities.some((name) => names.has(name.toLowerCase()));
}
