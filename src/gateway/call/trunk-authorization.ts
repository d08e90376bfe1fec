import { chooseChallenges, digestAnswer, type DigestCredentials } from '../../lib/digest-access.js';
import { newToken } from '../../lib/ids.js';
import type { OutboundTrunk, Route } from '../model/records.js';
import type { SrfHeaders } from '../ports/signalling.js';

export interface TrunkCredentials extends DigestCredentials {
  /** Only a challenge of this realm is answered; `null`: any. */
  readonly realm: string | null;
}

/** `null`: the trunk has none, and a challenge is a refusal. */
export function trunkCredentials({ username, password, realm }: Partial<OutboundTrunk>): TrunkCredentials | null {
  return username === undefined || password === undefined ? null : { username, password, realm: realm ?? null };
}

/**
 * The trunk's account for requests of ours in a call that came in; `null`: challenges are not answered. An attacker can test passwords
 * offline against an answer, so a peer gets one only if the number, or its organization, identifies it by address or credentials.
 */
export function callerCredentials({ number, org }: Pick<Route, 'number' | 'org'>): TrunkCredentials | null {
  const { inbound, outbound } = number;
  const sources = [...org.allowed_sources, ...(inbound?.options.allowed_sources ?? [])];
  const isKnown = sources.length > 0 || inbound?.options.challenge !== undefined;
  return isKnown ? trunkCredentials(outbound ?? {}) : null;
}

/** Requests with credentials that follow a challenge: a second one when only the nonce was too old, or another realm asks. */
const MAX_AUTHORIZED = 2;

interface Authorization {
  readonly header: 'Authorization' | 'Proxy-Authorization';
  readonly realm: string;
  readonly value: string;
}

/** The trunk's challenges to one request of ours, and the answers. */
export class TrunkAuthorization {
  #answers: readonly Authorization[] = [];
  #count = 0;

  constructor(private readonly credentials: TrunkCredentials | null) {}

  /**
   * For the next request, and the ACK to its 2xx (RFC 3261 §22.1). Answers to several realms are header fields of their own, never joined by
   * commas (RFC 3261 §7.3.1): drachtio-srf writes a value as it is, line breaks included.
   */
  get headers(): SrfHeaders {
    const headers: Record<string, string> = {};
    for (const { header, value } of this.#answers) {
      const before = headers[header];
      headers[header] = before === undefined ? value : `${before}\r\n${header}: ${value}`;
    }
    return headers;
  }

  /**
   * Whether the request is to be sent again, with `headers`. False: the response is no challenge, or one that cannot be answered, or
   * that was answered already.
   * @param text of the response
   */
  answers(request: { readonly method: string; readonly uri: string }, status: number, text: string): boolean {
    if (this.credentials === null || (status !== 401 && status !== 407) || this.#count >= MAX_AUTHORIZED) return false;
    const header = status === 401 ? 'Authorization' : 'Proxy-Authorization';
    const challenges = headerValues(text, status === 401 ? 'www-authenticate' : 'proxy-authenticate');
    const isOf = (realm: string, one: Authorization): boolean => one.header === header && one.realm === realm;
    const { credentials } = this;
    const fresh = chooseChallenges(challenges, credentials.realm).filter(
      ({ realm, isStale }) => isStale || !this.#answers.some((one) => isOf(realm, one)),
    );
    if (fresh.length === 0) return false;
    this.#count += 1;
    for (const challenge of fresh) {
      const { realm } = challenge;
      const value = digestAnswer(challenge, credentials, { ...request, count: 1, cnonce: newToken(22) });
      this.#answers = [...this.#answers.filter((one) => !isOf(realm, one)), { header, realm, value }];
    }
    return true;
  }
}

/** All values of a header of a message, in order: drachtio-srf keeps one of them. @param name in lower case */
export function headerValues(text: string, name: string): string[] {
  const head = text.split('\r\n\r\n', 1)[0]?.replace(/\r\n[ \t]+/g, ' ') ?? '';
  return head.split('\r\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon > 0 && line.slice(0, colon).trim().toLowerCase() === name ? [line.slice(colon + 1).trim()] : [];
  });
}
