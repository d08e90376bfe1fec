import type { IdentityVerdict, VerifiedIdentity } from '../model/verified-identity.js';
import type { Reason } from '../model/reasons.js';

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
