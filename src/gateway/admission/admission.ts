import type { Route } from '../model/records.js';
import type { IdentityVerdict, VerifiedIdentity } from '../model/verified-identity.js';
import type { CredentialsVerdict } from './challenge.js';
import { isInBlocks } from '../../lib/address.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { Reason } from '../model/reasons.js';
import { isReachable, readOffer, type CarrierMedia } from '../sdp/sdp-read.js';

/** The input of the decision on an INVITE. */
export interface DecisionInput {
  /** `null`: the number is not attached inbound. */
  readonly route: Route | null;
  /** Address of the INVITE's connection, never from a header; `null`: do not check. */
  readonly sourceAddress: string | null;
  /** The answer to the number's challenge; `null`: it has none, or do not check. */
  readonly credentials: CredentialsVerdict | null;
  /** The caller by a signature; `null`: do not check. */
  readonly identity: VerifiedIdentity | null;
  /** The verdicts that refuse a call. */
  readonly refusedVerdicts: readonly IdentityVerdict[];
  /** '' without an offer. */
  readonly sdp: string;
  /** The media relay's address on the carrier side; `null` before it answers. */
  readonly relayAddress: string | null;
  readonly load: ConcurrentUsage;
}

/** Accept with our choice from the offer (`null`: no offer, so ours goes out in the 200), or refuse with a reason. */
export type Decision = Result<CarrierMedia | null, Reason>;

/** The whole decision, without IO: the same for an INVITE and for a dry run. */
export function decide(input: DecisionInput): Decision {
  const { route } = input;
  if (route === null || route.number.inbound === null) return err('NUMBER_NOT_ATTACHED');
  if (route.org.disabled) return err('ORG_DISABLED');
  if (!route.org.sip_enabled) return err('ORG_NOT_ENTITLED');
  const { options } = route.number.inbound;
  for (const allowed of [route.org.allowed_sources, options.allowed_sources])
    if (input.sourceAddress !== null && !isSourceAllowed(allowed, input.sourceAddress)) return err('SOURCE_NOT_ALLOWED');
  if (input.credentials !== null && input.credentials !== 'right') return err('CREDENTIALS_REQUIRED');
  const unproven = identityRefusal(input.identity, input.refusedVerdicts);
  if (unproven !== null) return err(unproven);
  // The owner's agent no longer exists: an answer by another would surprise the owner.
  if (route.number.inbound.agent_id !== null && route.agent === null) return err('AGENT_UNAVAILABLE');
  const limit = brokenLimit(route, input.load);
  if (limit !== null) return err(limit);
  if (input.sdp === '') return ok(null);
  const media = readOffer(input.sdp, options.media_encryption);
  if (!media.ok || input.relayAddress === null || isReachable(media.value.address, input.relayAddress)) return media;
  return err('ADDRESS_FAMILY_UNSUPPORTED');
}

/** Whether an address is in a list of addresses and CIDR blocks; an empty list allows any. */
export function isSourceAllowed(allowed: readonly string[], address: string): boolean {
  return allowed.length === 0 || isInBlocks(allowed, address);
}

/** RFC 8224 §6.2.2. */
const REFUSALS: Readonly<Partial<Record<IdentityVerdict, Reason>>> = {
  missing: 'IDENTITY_REQUIRED',
  stale: 'IDENTITY_STALE',
  'bad-info': 'IDENTITY_INFO_BAD',
  credential: 'IDENTITY_CREDENTIAL_UNSUPPORTED',
  invalid: 'IDENTITY_INVALID',
};

/** Why the verdict on the Identity header refuses a call; `null`: it does not. */
function identityRefusal(identity: VerifiedIdentity | null, refused: readonly IdentityVerdict[]): Reason | null {
  if (identity === null || !refused.includes(identity.verdict)) return null;
  return REFUSALS[identity.verdict] ?? null;
}

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
  /** What is overloaded (event loop, media threads, CPU, the relay's commands): the figure and its limit, for a person; `null`: nothing. */
  readonly overload: string | null;
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

/** Why a call is refused. */
export interface Refusal {
  readonly reason: Reason;
  /** What the reason's sentence does not say: a figure and its limit. `null`: nothing. */
  readonly detail: string | null;
}

/** Why this gateway refuses calls; `null`: it accepts them. OPTIONS gets the same answer. */
export function notReady(edge: EdgeState, { maxCalls }: EdgePolicy): Refusal | null {
  if (edge.isDraining) return { reason: 'DRAINING', detail: null };
  if (edge.overload !== null) return overloaded(edge.overload);
  if (maxCalls !== null && edge.calls >= maxCalls) return overloaded(`calls in progress: ${String(edge.calls)}, limit ${String(maxCalls)}`);
  if (!edge.isRelayUp) return { reason: 'MEDIA_UNAVAILABLE', detail: 'no rtpengine answers' };
  if (edge.mediaHeadroom === null || edge.mediaHeadroom > 0) return null;
  return { reason: 'MEDIA_UNAVAILABLE', detail: 'every media port is in use' };
}

export function overloaded(detail: string): Refusal {
  return { reason: 'OVERLOADED', detail };
}

/** Whether the trunk accepts requests from this source. */
export function isTrusted(policy: EdgePolicy, source: RequestSource): boolean {
  if (!isSourceAllowed(policy.allowedSources, source.address)) return false;
  if (policy.allowedIdentities.length === 0) return true;
  // `DNS:sip.example.com`, or `sip.example.com` for a name of any type.
  const names = new Set(source.identities.flatMap((name) => [name.toLowerCase(), name.toLowerCase().replace(/^[a-z]+:/, '')]));
  return policy.allowedIdentities.some((name) => names.has(name.toLowerCase()));
}

/** Current use of a number and its organization, over all gateways. */
export interface ConcurrentUsage {
  readonly numberCalls: number;
  /** Calls admitted in the last second. */
  readonly numberCallsLastSecond: number;
  readonly orgCalls: number;
  readonly orgCallsLastSecond: number;
}

export const NO_USAGE: ConcurrentUsage = { numberCalls: 0, numberCallsLastSecond: 0, orgCalls: 0, orgCallsLastSecond: 0 };

/** The limit that one more call would exceed; `null`: none. `take-slots.lua` has the same rule: docs/adr/0005-the-limit-rule-stands-twice.md. */
export function brokenLimit(
  route: Route,
  load: ConcurrentUsage,
): Extract<Reason, 'NUMBER_CALL_LIMIT' | 'NUMBER_RATE_LIMIT' | 'ORG_CALL_LIMIT' | 'ORG_RATE_LIMIT'> | null {
  const { max_concurrent_calls: calls = null, max_calls_per_second: rate = null } = route.number.inbound?.options ?? {};
  if (calls !== null && load.numberCalls >= calls) return 'NUMBER_CALL_LIMIT';
  if (rate !== null && load.numberCallsLastSecond >= rate) return 'NUMBER_RATE_LIMIT';
  const { max_concurrent_calls: orgCalls, max_calls_per_second: orgRate } = route.org;
  if (orgCalls !== null && load.orgCalls >= orgCalls) return 'ORG_CALL_LIMIT';
  return orgRate !== null && load.orgCallsLastSecond >= orgRate ? 'ORG_RATE_LIMIT' : null;
}
