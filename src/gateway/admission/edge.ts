import type { Reason } from '../model/reasons.js';
import { isSourceAllowed } from './decide.js';

/** What the whole trunk allows, whatever number is called. */
export interface EdgePolicy {
  /** CIDR blocks or addresses that INVITEs may come from; empty: any. */
  readonly allowedSources: readonly string[];
  /** Names of which one has to stand in the peer's checked client certificate; empty: none has to. */
  readonly allowedIdentities: readonly string[];
  /** Calls in progress on this gateway; `null`: no limit. */
  readonly maxCalls: number | null;
}

/** How this gateway is at the moment. */
export interface EdgeState {
  readonly isDraining: boolean;
  /** Busier than it can serve: event loop, CPU. */
  readonly isOverloaded: boolean;
  readonly calls: number;
  /** Another media relay answers. */
  readonly isRelayUp: boolean;
  /** Calls that there is media for; `null`: not known. */
  readonly mediaHeadroom: number | null;
}

/** Where a request comes from. */
export interface RequestSource {
  readonly address: string;
  /** Names in the peer's checked certificate, as the SIP server tells. */
  readonly identities: readonly string[];
}

/** Whether this gateway takes calls; what an OPTIONS asks, too. `null`: it does. */
export function notReady(edge: EdgeState, policy: EdgePolicy): Extract<Reason, 'DRAINING' | 'OVERLOADED' | 'MEDIA_UNAVAILABLE'> | null {
  if (edge.isDraining) return 'DRAINING';
  const isFull = policy.maxCalls !== null && edge.calls >= policy.maxCalls;
  if (edge.isOverloaded || isFull) return 'OVERLOADED';
  return !edge.isRelayUp || (edge.mediaHeadroom !== null && edge.mediaHeadroom <= 0) ? 'MEDIA_UNAVAILABLE' : null;
}

/** Whether the trunk takes requests of this source. */
export function isTrusted(policy: EdgePolicy, source: RequestSource): boolean {
  if (!isSourceAllowed(policy.allowedSources, source.address)) return false;
  if (policy.allowedIdentities.length === 0) return true;
  // `DNS:sip.example.com`, or `sip.example.com` for a name of any kind.
  const names = new Set(source.identities.flatMap((name) => [name.toLowerCase(), name.toLowerCase().replace(/^[a-z]+:/, '')]));
  return policy.allowedIdentities.some((name) => names.has(name.toLowerCase()));
}
