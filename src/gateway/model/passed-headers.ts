import { sipHeaders, type SipHeaders } from '../../agent-protocol/sip-headers.js';
import type { CallerIdentity } from './call-record.js';
import type { NumberRecord } from './records.js';

// Headers that pass between a carrier and an agent, as the owner of a number lets them. A list has names, in any case, and `X-*` for all
// that begin so.

export { sipHeaders, type SipHeaders };

export const DEFAULT_HEADERS_TO_AGENT: readonly string[] = ['User-to-User', 'X-*', 'Call-Info'];
export const DEFAULT_HEADERS_FROM_AGENT: readonly string[] = ['User-to-User', 'X-*'];
export const MAX_LISTED_HEADERS = 32;
/** A name (RFC 3261 §25.1 `token`) in its long form, or `X-*`. */
export const LISTED_HEADER = /^(?:[Xx]-\*|[A-Za-z0-9_.!%+`'~-]{2,64})$/;
/** A longer value is left out: truncated, it could change its meaning. */
const MAX_VALUE = 512;

/** RFC 3261 §7.3.3: the compact forms are of headers that the stack owns. */
const COMPACT = /^[a-z]$/;
const EVERY_X = 'x-*';
const USER_TO_USER = 'user-to-user';
/** What the gateway and its SIP server say to each other, secrets among it. */
const OWN_PREFIX = 'x-trunkline-';

/** The SIP stack writes and reads these, or the agent gets them in fields of their own, without what the caller wants private. */
const STACK_HEADERS: ReadonlySet<string> = new Set([
  ...['via', 'from', 'to', 'call-id', 'cseq', 'contact', 'route', 'record-route', 'max-forwards', 'path', 'service-route'],
  ...['authorization', 'proxy-authorization', 'www-authenticate', 'proxy-authenticate', 'authentication-info', 'proxy-require'],
  ...['require', 'supported', 'unsupported', 'allow', 'allow-events', 'accept', 'mime-version', 'user-agent', 'server'],
  ...['session-expires', 'min-se', 'expires', 'min-expires', 'rack', 'rseq', 'retry-after', 'warning', 'reason', 'date', 'timestamp'],
  ...['refer-to', 'referred-by', 'refer-sub', 'replaces', 'join', 'target-dialog', 'event', 'subscription-state'],
  ...['identity', 'identity-info', 'privacy', 'p-asserted-identity', 'p-preferred-identity', 'remote-party-id', 'p-asserted-service'],
  ...['diversion', 'history-info', 'accept-contact', 'reject-contact', 'request-disposition'],
]);
const STACK_PREFIXES = ['content-', 'accept-', 'security-', 'sip-', OWN_PREFIX];

/** Why a list may not have this entry, for a person; `null`: it may. */
export function listedHeaderProblem(entry: string): string | null {
  const name = entry.toLowerCase();
  if (isOfStack(name) || COMPACT.test(name)) return 'is a header that the SIP stack sets and reads itself';
  return LISTED_HEADER.test(entry) ? null : 'must be the name of a header, or X-*';
}

/** The first header that the list does not have; `null`: it has them all. */
export function unlistedHeader(headers: SipHeaders, list: readonly string[]): string | null {
  return Object.keys(headers).find((name) => !isListed(name, list)) ?? null;
}

/** What an agent gets that sets a header without permission. */
export function headerRefusal(name: string): { readonly code: 'SIP_HEADER_NOT_ALLOWED'; readonly message: string } {
  return { code: 'SIP_HEADER_NOT_ALLOWED', message: `The header ${name} is not in headers_from_agent of the number.` };
}

/** Which headers the agent of a call may set in requests to the peer of this call. */
export function headersFromAgent({ inbound, outbound }: Pick<NumberRecord, 'inbound' | 'outbound'>, isPlaced: boolean): readonly string[] {
  return (isPlaced ? outbound : inbound?.options)?.headers_from_agent ?? DEFAULT_HEADERS_FROM_AGENT;
}

/** The headers of an INVITE that a list names one by one, in lower case. Those with X- and User-to-User are in `CallerIdentity` anyway. */
export function namedHeaders(valuesOf: (name: string) => readonly string[], list = DEFAULT_HEADERS_TO_AGENT): SipHeaders {
  const named = list.map((entry) => entry.toLowerCase()).filter((name) => name !== USER_TO_USER && !name.startsWith('x-'));
  const found = named.map((name) => [name, valuesOf(name).join(', ')] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== '' && value.length <= MAX_VALUE));
}

/** The caller as the agent gets them. @param named the INVITE's headers that the list names one by one */
export function callerForAgent(caller: CallerIdentity, named: SipHeaders, list = DEFAULT_HEADERS_TO_AGENT): CallerIdentity {
  const headers = Object.entries({ ...caller.headers, ...named }).filter(([name]) => isListed(name, list));
  return {
    ...caller,
    headers: Object.fromEntries(headers),
    user_to_user: isListed(USER_TO_USER, list) ? caller.user_to_user : null,
  };
}

function isListed(header: string, list: readonly string[]): boolean {
  const name = header.toLowerCase();
  if (isOfStack(name)) return false;
  return list.some((entry) => entry.toLowerCase() === name || (name.startsWith('x-') && entry.toLowerCase() === EVERY_X));
}

function isOfStack(name: string): boolean {
  return STACK_HEADERS.has(name) || STACK_PREFIXES.some((prefix) => name.startsWith(prefix));
}
