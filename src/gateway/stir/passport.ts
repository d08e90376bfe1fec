import { z } from 'zod';
import type { Attestation } from '../model/verified-identity.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { IdentityHeaderValue } from './identity-header.js';

/** The call's own numbers: digits, without the plus. */
export interface CallIdentity {
  /** Numbers of From and P-Asserted-Identity, one of which must be the signed number. */
  readonly callers: readonly string[];
  readonly called: string;
}

/** A PASSporT before the check of its signature. */
export interface Passport {
  /** The signed text: `header.payload.signature`. */
  readonly jws: string;
  readonly origin: string;
  readonly iatS: number;
  readonly attestation: Attestation | null;
  readonly origid: string | null;
}

const text = z.string().max(256);
const tn = text.transform((value, context) => {
  const digits = value.replace(/[\s().+-]/g, '');
  if (/^\d{3,15}$/.test(digits)) return digits;
  context.addIssue('is not a telephone number');
  return z.NEVER;
});

// RFC 8225 §4; unknown members are allowed everywhere.
const headSchema = z.object({ typ: z.literal('passport'), alg: text, x5u: z.string().max(2_048), ppt: text.optional() });
const claimsSchema = z.object({
  iat: z.number().int().positive(),
  orig: z.object({ tn }),
  dest: z.object({ tn: z.array(tn).min(1).max(100) }),
  // RFC 8588 §4, §5
  attest: z.enum(['A', 'B', 'C']).optional(),
  origid: z.uuid().optional(),
});

/** Reads a PASSporT and compares it with its header and its call; an error is a sentence. */
export function readPassport(value: IdentityHeaderValue, call: CallIdentity, dateS: number | null): Result<Passport, string> {
  const full = value.token.startsWith('..') ? expanded(value, call, dateS) : ok(value.token);
  if (!full.ok) return full;
  const [headPart = '', claimsPart = ''] = full.value.split('.');
  const head = headSchema.safeParse(jsonOf(headPart));
  const claims = claimsSchema.safeParse(jsonOf(claimsPart));
  if (!head.success || !claims.success) return err('The Identity header contains no valid PASSporT (RFC 8225).');
  // RFC 8224 §6.2: the header's parameters must equal what was signed.
  if (head.data.x5u !== value.info) return err('The certificate URL in the Identity header is not the signed one.');
  if (head.data.alg !== value.alg || (head.data.ppt ?? null) !== value.ppt)
    return err('The algorithm or type in the Identity header is not the signed one.');
  const { orig, dest, iat, attest = null, origid = null } = claims.data;
  // RFC 8588 §4, §5: both claims are mandatory.
  if (value.ppt === 'shaken' && (attest === null || origid === null)) return err('The SHAKEN attestation or origid is missing.');
  if (!call.callers.includes(orig.tn)) return err('The signed caller is not the caller of the call.');
  if (!dest.tn.includes(call.called)) return err('The signed called number is not the called number.');
  return ok({ jws: full.value, origin: orig.tn, iatS: iat, attestation: attest, origid });
}

/** RFC 8224 §4.1.1: header and claims of the compact form come from the request. SHAKEN has no compact form (RFC 8588 §3). */
function expanded(
  { token, info, alg, ppt }: IdentityHeaderValue,
  { callers, called }: CallIdentity,
  dateS: number | null,
): Result<string, string> {
  const [caller] = callers;
  if (ppt !== null) return err('The compact form of this type of PASSporT is not allowed.');
  if (dateS === null || caller === undefined) return err('The compact form needs a Date header and a caller with a number.');
  // RFC 8225 §9: members in lexicographic order, no white space.
  const head = { alg, typ: 'passport', x5u: info };
  const claims = { dest: { tn: [called] }, iat: dateS, orig: { tn: caller } };
  return ok(`${base64url(head)}.${base64url(claims)}.${token.slice(2)}`);
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function jsonOf(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
