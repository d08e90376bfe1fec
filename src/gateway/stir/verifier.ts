import type { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { compactVerify } from 'jose';
import type { Config } from '../../config/schema.js';
import type { IdentityVerdict, VerifiedIdentity } from '../model/verified-identity.js';
import type { IdentityClaim, IdentityVerifier } from '../ports/ports.js';
import type { Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import { certificatesOf } from './credential.js';
import { CertificateRepository } from './certificate-repository.js';
import { identityHeaderValues, type IdentityHeaderValue } from './identity-header.js';
import { readPassport, type CallIdentity, type Passport } from './passport.js';

const BASE: Omit<VerifiedIdentity, 'verdict' | 'detail'> = { attestation: null, origid: null, signer: null };

export interface VerifierOptions {
  /** `null`: no roots are configured, so nothing is verified. */
  readonly certificates: CertificateRepository | null;
  /** How far a PASSporT's time may be from now. */
  readonly maxAgeMs: number;
  readonly clock: Clock;
}

/** RFC 8224 §6.2 for one request: of several PASSporTs SHAKEN's counts, else the first readable one. */
export class StirVerifier implements IdentityVerifier {
  constructor(private readonly options: VerifierOptions) {}

  async verify(claim: IdentityClaim): Promise<VerifiedIdentity | null> {
    const { certificates } = this.options;
    const values = claim.header === undefined ? [] : identityHeaderValues(claim.header);
    // RFC 8224 §6.2: ignore an unknown type.
    const known = values.filter((value) => value !== null && (value.ppt === null || value.ppt === 'shaken'));
    const value = known.find((one) => one?.ppt === 'shaken') ?? known[0] ?? null;
    if (value === null) {
      if (values.includes(null)) return { ...BASE, verdict: 'invalid', detail: 'The Identity header is malformed.' };
      return certificates === null ? null : { ...BASE, verdict: 'missing', detail: 'The call has no Identity header.' };
    }
    const passport = readPassport(value, callOf(claim), dateSeconds(claim.date));
    if (!passport.ok) return { ...BASE, verdict: 'invalid', detail: passport.error };
    const { attestation, origid } = passport.value;
    const said = { ...BASE, attestation, origid };
    if (certificates === null) return { ...said, verdict: 'unverified', detail: 'No roots are configured (stir.roots_file).' };
    return { ...said, ...(await this.#judge(value, passport.value, certificates)) };
  }

  async #judge(
    value: IdentityHeaderValue,
    passport: Passport,
    certificates: CertificateRepository,
  ): Promise<Pick<VerifiedIdentity, 'detail' | 'signer'> & { readonly verdict: IdentityVerdict }> {
    const nowMs = this.options.clock.wallMs();
    if (value.alg !== 'ES256') return { verdict: 'credential', detail: 'The Identity header is not signed with ES256.', signer: null };
    // Before any fetch: a stale PASSporT is refused, whatever its content.
    if (Math.abs(nowMs - passport.iatS * 1_000) > this.options.maxAgeMs)
      return { verdict: 'stale', detail: 'The Identity header was signed too long ago, or in the future.', signer: null };
    const found = await certificates.find(value.info);
    if (!found.ok) return { ...found.error, signer: null };
    const { subject: signer, key, notAfterMs, notBeforeMs, maySignFor } = found.value;
    if (nowMs < notBeforeMs || nowMs > notAfterMs) return { verdict: 'credential', detail: 'The certificate has expired.', signer };
    try {
      await compactVerify(passport.jws, key, { algorithms: ['ES256'] });
    } catch {
      return { verdict: 'invalid', detail: 'The signature of the Identity header is invalid.', signer };
    }
    if (!maySignFor(passport.origin))
      return { verdict: 'credential', detail: "The certificate does not cover the caller's number.", signer };
    return { verdict: 'valid', detail: null, signer };
  }

  async close(): Promise<void> {
    await this.options.certificates?.close();
  }
}

/** Rejects with a message for the operator if the roots cannot be read. */
export async function openStirVerifier(settings: Config['stir'], caPem: string | null, clock: Clock): Promise<StirVerifier> {
  const { roots_file: file, allow_private: allowPrivate, certificate_timeout_ms: timeoutMs, max_age_ms: maxAgeMs } = settings;
  const certificates =
    file === null ? null : new CertificateRepository({ roots: await rootsOf(file), allowPrivate, caPem, timeoutMs, clock });
  return new StirVerifier({ certificates, maxAgeMs, clock });
}

async function rootsOf(file: string): Promise<X509Certificate[]> {
  try {
    return certificatesOf(await readFile(file, 'utf8'));
  } catch (error) {
    throw new Error(`stir.roots_file ${file} cannot be used: ${errorText(error)}`, { cause: error });
  }
}

/** RFC 8224 §8.3: digits, without the plus and visual separators. */
function callOf({ callers, called }: IdentityClaim): CallIdentity {
  return { callers: callers.map(digitsOf).filter((number) => number !== ''), called: digitsOf(called) };
}

function digitsOf(number: string): string {
  return number
    .replace(/^(?:sips?|tel):/i, '')
    .replace(/[@;].*$/s, '')
    .replace(/[\s().+-]/g, '');
}

function dateSeconds(date: string | undefined): number | null {
  const ms = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(ms) ? null : Math.floor(ms / 1_000);
}
