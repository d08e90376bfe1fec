import type { Route } from '../model/records.js';
import type { IdentityVerdict, VerifiedIdentity } from '../model/verified-identity.js';
import { isInBlocks } from '../../lib/address.js';
import { err, ok, type Result } from '../../lib/result.js';
import { brokenLimit, type ConcurrentUsage } from './admission.js';
import type { Reason } from '../model/reasons.js';
import { isReachable, readOffer, type CarrierMedia } from '../sdp/sdp-read.js';

/** The input of the decision on an INVITE. */
export interface DecisionInput {
  /** `null`: the number is not attached inbound. */
  readonly route: Route | null;
  /** Address of the INVITE's connection, never from a header; `null`: do not check. */
  readonly sourceAddress: string | null;
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
export function identityRefusal(identity: VerifiedIdentity | null, refused: readonly IdentityVerdict[]): Reason | null {
  if (identity === null || !refused.includes(identity.verdict)) return null;
  return REFUSALS[identity.verdict] ?? null;
}
