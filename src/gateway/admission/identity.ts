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

/** The verdicts that a call may be refused for. */
export const REFUSABLE_VERDICTS = ['missing', 'stale', 'bad-info', 'credential', 'invalid'] as const satisfies readonly IdentityVerdict[];

/** Why a call is refused for what its Identity header is worth; `null`: it is not. */
export function identityRefusal(identity: VerifiedIdentity | null, refused: readonly IdentityVerdict[]): Reason | null {
  if (identity === null || !refused.includes(identity.verdict)) return null;
  return REFUSALS[identity.verdict] ?? null;
}
