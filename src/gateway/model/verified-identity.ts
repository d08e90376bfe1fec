import { z } from 'zod';

/** The result of verifying the caller (RFC 8224 §6.2). */
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
const ATTESTATIONS = ['A', 'B', 'C'] as const;
export type Attestation = (typeof ATTESTATIONS)[number];

/** What the Identity header of a call says, and whether it is true. */
export const identitySchema = z
  .object({
    verdict: z.enum(IDENTITY_VERDICTS).describe('docs/stir-shaken.md explains each'),
    detail: z.string().nullable().describe('Why it is not `valid`; null: it is valid'),
    attestation: z.enum(ATTESTATIONS).nullable().describe('As claimed: trust it only if `valid`'),
    origid: z.string().nullable().describe("SHAKEN's id of the call's origin; as claimed"),
    signer: z.string().nullable().describe('Subject of the certificate; null: not checked'),
  })
  .describe('Result of STIR/SHAKEN verification');

export type VerifiedIdentity = Readonly<z.output<typeof identitySchema>>;
