import { createHash, timingSafeEqual } from 'node:crypto';

// Digest access authentication (RFC 7616, as RFC 3261 §22.4 and RFC 8760 use it): from challenges to the answer to one of them, and from
// challenges of ours to the answers that they get.

const HASHES = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' } as const;

export type DigestAlgorithm = keyof typeof HASHES;

/** One challenge that can be answered. */
export interface DigestChallenge {
  readonly realm: string;
  readonly nonce: string;
  readonly algorithm: DigestAlgorithm;
  /** A session key: `<algorithm>-sess`. */
  readonly isSession: boolean;
  /** `auth` was offered. Without it the form of RFC 2069 counts. */
  readonly hasQop: boolean;
  readonly opaque: string | null;
  /** The nonce of before was too old; the credentials are good. */
  readonly isStale: boolean;
}

export interface DigestCredentials {
  readonly username: string;
  readonly password: string;
}

/** What a request is authorized for. */
export interface DigestRequest {
  readonly method: string;
  readonly uri: string;
  /** How often the nonce was used, this time included: 1 and up. */
  readonly count: number;
  /** Ours; random. */
  readonly cnonce: string;
}

/** Larger headers are no challenge. */
const MAX_HEADER = 8_192;
const MAX_REALMS = 4;
/** In a header of ours they would begin another one. */
const LINE_BREAK = /[\r\n]/;
const PARAMETER = /([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/y;

/**
 * The first challenge of each realm that can be answered (RFC 8760 §2.4: the topmost; RFC 3261 §22.3: each realm gets an answer).
 * @param values of `WWW-Authenticate` or `Proxy-Authenticate`, in order @param realm this one alone; `null`: all
 */
export function chooseChallenges(values: readonly string[], realm: string | null = null): DigestChallenge[] {
  const chosen = new Map<string, DigestChallenge>();
  for (const challenge of values.flatMap(challengesOf)) {
    const isWanted = (realm === null || challenge.realm === realm) && !chosen.has(challenge.realm);
    if (isWanted && chosen.size < MAX_REALMS) chosen.set(challenge.realm, challenge);
  }
  return [...chosen.values()];
}

/** The `Digest` challenges of one header value, which may hold several (RFC 7235 §4.1). */
function challengesOf(value: string): DigestChallenge[] {
  if (value.length > MAX_HEADER || LINE_BREAK.test(value)) return [];
  return schemesOf(value).flatMap(({ scheme, parameters }) => (scheme === 'digest' ? (challengeOf(parameters) ?? []) : []));
}

interface Scheme {
  readonly scheme: string;
  readonly parameters: Map<string, string>;
}

/** `Digest a=b, c="d", Basic realm="x"`: a word without `=` begins the next scheme. */
function schemesOf(value: string): Scheme[] {
  const schemes: Scheme[] = [];
  let position = 0;
  while (position < value.length) {
    const gap = /[\s,]*/y;
    gap.lastIndex = position;
    position += gap.exec(value)?.[0].length ?? 0;
    PARAMETER.lastIndex = position;
    const parameter = PARAMETER.exec(value);
    if (parameter !== null) {
      const name = (parameter[1] ?? '').toLowerCase();
      // A parameter that is given twice makes the challenge ambiguous: the first counts.
      const parameters = schemes.at(-1)?.parameters;
      if (parameters?.has(name) === false) parameters.set(name, parameter[2]?.replace(/\\(.)/g, '$1') ?? parameter[3] ?? '');
      position = PARAMETER.lastIndex;
      continue;
    }
    const word = /[^\s,]+/y;
    word.lastIndex = position;
    const scheme = word.exec(value)?.[0] ?? '';
    if (scheme === '') break;
    schemes.push({ scheme: scheme.toLowerCase(), parameters: new Map() });
    position += scheme.length;
  }
  return schemes;
}

function challengeOf(parameters: ReadonlyMap<string, string>): DigestChallenge | undefined {
  const realm = parameters.get('realm');
  const nonce = parameters.get('nonce');
  const [, name = '', session] = /^(.*?)(-sess)?$/i.exec(parameters.get('algorithm') ?? 'MD5') ?? [];
  const algorithm = (Object.keys(HASHES) as DigestAlgorithm[]).find((known) => known === name.toUpperCase());
  const qop = parameters.get('qop');
  const hasQop = (qop ?? '').split(',').some((one) => one.trim().toLowerCase() === 'auth');
  if (realm === undefined || nonce === undefined || algorithm === undefined) return undefined;
  // `auth-int` alone covers the body, which a proxy may change: not supported. A session key needs a cnonce.
  if ((qop !== undefined && !hasQop) || (session !== undefined && !hasQop)) return undefined;
  return {
    realm,
    nonce,
    algorithm,
    hasQop,
    isSession: session !== undefined,
    opaque: parameters.get('opaque') ?? null,
    isStale: parameters.get('stale')?.toLowerCase() === 'true',
  };
}

/** The value of `Authorization` or `Proxy-Authorization`. */
export function digestAnswer(challenge: DigestChallenge, credentials: DigestCredentials, request: DigestRequest): string {
  const { realm, nonce, algorithm, isSession, hasQop, opaque } = challenge;
  const { username, password } = credentials;
  const { method, uri, cnonce } = request;
  const nc = request.count.toString(16).padStart(8, '0');
  const response = responseOf({ realm, nonce, algorithm, isSession, hasQop, username, password, method, uri, nc, cnonce });
  const parts = [
    `username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `uri=${quoted(uri)}`,
    `response="${response}"`,
    `algorithm=${algorithm}${isSession ? '-sess' : ''}`,
    ...(opaque === null ? [] : [`opaque=${quoted(opaque)}`]),
    ...(hasQop ? ['qop=auth', `nc=${nc}`, `cnonce=${quoted(cnonce)}`] : []),
  ];
  return `Digest ${parts.join(', ')}`;
}

interface ResponseParts extends Pick<DigestChallenge, 'realm' | 'nonce' | 'algorithm' | 'isSession' | 'hasQop'>, DigestCredentials {
  readonly method: string;
  readonly uri: string;
  /** Eight hexadecimal digits. */
  readonly nc: string;
  readonly cnonce: string;
}

/** RFC 7616 §3.4.1. */
function responseOf({ realm, nonce, algorithm, isSession, hasQop, username, password, method, uri, nc, cnonce }: ResponseParts): string {
  const hash = (text: string): string => createHash(HASHES[algorithm]).update(text, 'utf8').digest('hex');
  const secret = hash(`${username}:${realm}:${password}`);
  const a1 = isSession ? hash(`${secret}:${nonce}:${cnonce}`) : secret;
  const a2 = hash(`${method}:${uri}`);
  return hash(hasQop ? [a1, nonce, nc, cnonce, 'auth', a2].join(':') : [a1, nonce, a2].join(':'));
}

/** Algorithms of our own challenges, in the order of preference (RFC 8760 §2.3). */
export const CHALLENGE_ALGORITHMS = ['SHA-256', 'MD5'] as const satisfies readonly DigestAlgorithm[];

/** A challenge of ours for each algorithm: values of `WWW-Authenticate`. @param realm, nonce without quotes and backslashes */
export function digestChallenges(realm: string, nonce: string, isStale: boolean): string[] {
  const stale = isStale ? ', stale=true' : '';
  return CHALLENGE_ALGORITHMS.map((algorithm) => `Digest realm="${realm}", nonce="${nonce}", algorithm=${algorithm}, qop="auth"${stale}`);
}

/** An answer to a challenge of ours. */
export interface DigestGiven {
  readonly realm: string;
  readonly nonce: string;
  readonly algorithm: (typeof CHALLENGE_ALGORITHMS)[number];
  readonly username: string;
  readonly uri: string;
  readonly response: string;
  readonly nc: string;
  readonly cnonce: string;
}

/** Answers to challenges of other realms may come along. */
const MAX_GIVEN = 8;

/** The answers that have the form of one to a challenge of ours. @param values of `Authorization`, in order */
export function readDigestGiven(values: readonly string[]): DigestGiven[] {
  return values
    .slice(0, MAX_GIVEN)
    .filter((value) => value.length <= MAX_HEADER)
    .flatMap(schemesOf)
    .flatMap(({ scheme, parameters }) => (scheme === 'digest' ? (givenOf(parameters) ?? []) : []))
    .slice(0, MAX_GIVEN);
}

function givenOf(parameters: ReadonlyMap<string, string>): DigestGiven | undefined {
  const of = (name: string): string => parameters.get(name) ?? '';
  const algorithm = CHALLENGE_ALGORITHMS.find((known) => known === (parameters.get('algorithm') ?? 'MD5').toUpperCase());
  const [nc, cnonce, response] = [of('nc'), of('cnonce'), of('response').toLowerCase()];
  // RFC 3261 §22.4: a client that got a qop sends one.
  if (algorithm === undefined || of('qop').toLowerCase() !== 'auth' || !/^[0-9a-f]{8}$/i.test(nc) || cnonce === '') return undefined;
  return { realm: of('realm'), nonce: of('nonce'), algorithm, username: of('username'), uri: of('uri'), response, nc, cnonce };
}

/** Whether the answer is right for these credentials; the time that it takes says nothing of the secret. */
export function isDigestRight(given: DigestGiven, method: string, { username, password }: DigestCredentials): boolean {
  const wanted = Buffer.from(responseOf({ ...given, method, username, password, isSession: false, hasQop: true }));
  const response = Buffer.from(given.response);
  return given.username === username && response.length === wanted.length && timingSafeEqual(response, wanted);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
