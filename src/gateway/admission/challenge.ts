import { createHmac, timingSafeEqual } from 'node:crypto';
import { digestChallenges, isDigestRight, readDigestGiven, type DigestCredentials } from '../../lib/digest-access.js';

// The challenge of a number to calls that come in (RFC 3261 §22, RFC 8760). No state is kept of it: a nonce is a time and a MAC of it, whose
// key every gateway has, so that any gateway takes the answer to a challenge of any other.

/** What the credentials of an INVITE are worth. `stale`: right, but for a nonce that is too old, or not ours. */
export type CredentialsVerdict = 'right' | 'missing' | 'stale' | 'wrong';

export const CREDENTIALS_VERDICTS = ['right', 'missing', 'stale', 'wrong'] as const satisfies readonly CredentialsVerdict[];

/** How long a nonce is taken. */
const NONCE_MS = 5 * 60_000;
/** The clocks of two gateways differ by no more. */
const MAX_SKEW_MS = 60_000;

/** What a nonce is made for. */
export interface NonceScope {
  /** A secret of the organization that every gateway has. */
  readonly secret: string;
  /** The called number. */
  readonly number: string;
}

/** @param realm the host of the gateway that challenges @param nowMs wall time */
export function challengesOf(scope: NonceScope, realm: string, nowMs: number, isStale: boolean): string[] {
  return digestChallenges(realm, nonceOf(scope, realm, nowMs), isStale);
}

/**
 * @param values of `Authorization`, in order
 * @param uri the Request-URI; the one of the digest may have other parameters, as proxies change them
 * @param nowMs wall time
 */
export function judgeCredentials(
  values: readonly string[],
  uri: string,
  credentials: DigestCredentials,
  scope: NonceScope,
  nowMs: number,
): CredentialsVerdict {
  if (values.length === 0) return 'missing';
  const right = readDigestGiven(values).filter(
    (given) => withoutParameters(given.uri) === withoutParameters(uri) && isDigestRight(given, 'INVITE', credentials),
  );
  if (right.length === 0) return 'wrong';
  return right.some(({ nonce, realm }) => isFresh(nonce, scope, realm, nowMs)) ? 'right' : 'stale';
}

/** The realm is that of the challenge, whichever gateway sent it. */
function nonceOf({ secret, number }: NonceScope, realm: string, atMs: number): string {
  // A key of its own: the secret signs other things, too.
  const key = createHmac('sha256', secret).update('SIP challenge').digest();
  const mac = createHmac('sha256', key)
    .update(`${String(atMs)} ${number} ${realm}`)
    .digest('hex')
    .slice(0, 32);
  return `${String(atMs)}.${mac}`;
}

function isFresh(nonce: string, scope: NonceScope, realm: string, nowMs: number): boolean {
  const at = /^(\d{1,15})\.[0-9a-f]{32}$/.exec(nonce)?.[1];
  if (at === undefined) return false;
  const [given, own] = [Buffer.from(nonce), Buffer.from(nonceOf(scope, realm, Number(at)))];
  const ageMs = nowMs - Number(at);
  return given.length === own.length && timingSafeEqual(given, own) && ageMs >= -MAX_SKEW_MS && ageMs <= NONCE_MS;
}

/** Scheme, user, host and port: what of a URI is compared; scheme and host in lower case. */
function withoutParameters(uri: string): string {
  const [, scheme = '', user = '', host = ''] = /^([a-z]+:)([^@]*@)?([^;?]*)/i.exec(uri.trim()) ?? [];
  return `${scheme.toLowerCase()}${user}${host.toLowerCase()}`;
}
