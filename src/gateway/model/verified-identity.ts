/** What came of verifying who calls (RFC 8224 §6.2). */
export const IDENTITY_VERDICTS = [
  /** Signed by a trusted credential, for this caller and this number. */
  'valid',
  /** There is no Identity header that could be verified. */
  'missing',
  /** Signed too long ago, or in the future. */
  'stale',
  /** The certificate could not be fetched. */
  'bad-info',
  /** The certificate is not trusted, or not for this number. */
  'credential',
  /** The header, its signature, or what it says of the call is wrong. */
  'invalid',
  /** No roots are configured: nothing was verified. */
  'unverified',
] as const;

export type IdentityVerdict = (typeof IDENTITY_VERDICTS)[number];

/** SHAKEN's levels (RFC 8588 §4): A the caller and the right to the number are known, B the caller, C neither. */
export type Attestation = 'A' | 'B' | 'C';

/** What the Identity header of a call says, and whether it is true. */
export interface VerifiedIdentity {
  readonly verdict: IdentityVerdict;
  /** Why it is not `valid`, in a sentence; `null`: it is. */
  readonly detail: string | null;
  /** As the header claims: to be believed when the verdict is `valid` alone. */
  readonly attestation: Attestation | null;
  /** SHAKEN's id of where the call came into the network; as claimed. */
  readonly origid: string | null;
  /** Who signed: the subject of the certificate; `null`: it was not looked at. */
  readonly signer: string | null;
}
