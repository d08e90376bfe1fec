import { formatHostPort } from '../../lib/address.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { OwnTransport } from '../user-agent/compose.js';
import {
  changed,
  getHeader,
  getList,
  hasHeader,
  header,
  splitList,
  type Header,
  type SipRequest,
  type SipResponse,
} from '../message/message.js';
import { parseNameAddr, parseSipUri, type SipUri } from '../message/uri.js';

/** Authenticates our Record-Route: others cannot make us forward. */
const TOKEN_PARAM = 'tk';

/** Cheap pre-check: most requests have no Route. */
export function namesRoute(request: SipRequest): boolean {
  return hasHeader(request, 'route') || request.uri.includes(`;${TOKEN_PARAM}=`);
}

export type IsSelf = (uri: SipUri) => boolean;

/** Removes the topmost routes that name us (RFC 3261 §16.4), as clients with us as outbound proxy send. */
export function withoutOwnRoutes(request: SipRequest, isSelf: IsSelf): SipRequest {
  const routes = getList(request, 'route');
  const own = countLeading(routes, (route) => namesUs(route, isSelf));
  return own === 0 ? request : withRoutes(request, routes.slice(own));
}

/** Removes the routes that name us (RFC 3261 §16.4), if one is our Record-Route with a valid token. */
export function takeOwnRoutes(request: SipRequest, token: string, isSelf: IsSelf): SipRequest | undefined {
  const routes = getList(request, 'route');
  // A preceding strict router put our URI into the Request-URI and the target last.
  if (isOurs(request.uri, token)) {
    const target = parseNameAddr(routes.at(-1) ?? '')?.uri;
    return target === undefined ? undefined : withRoutes(changed(request, { uri: target }), routes.slice(0, -1));
  }
  const isProof = (route: string): boolean => isOurs(parseNameAddr(route)?.uri ?? '', token);
  const own = countLeading(routes, (route) => isProof(route) || namesUs(route, isSelf));
  return routes.slice(0, own).some(isProof) ? withRoutes(request, routes.slice(own)) : undefined;
}

function countLeading(routes: readonly string[], matches: (route: string) => boolean): number {
  const other = routes.findIndex((route) => !matches(route));
  return other < 0 ? routes.length : other;
}

function namesUs(route: string, isSelf: IsSelf): boolean {
  const uri = parseSipUri(parseNameAddr(route)?.uri ?? '');
  return uri !== undefined && isSelf(uri);
}

function isOurs(uri: string, token: string): boolean {
  return uri.includes(token) && parseSipUri(uri)?.params.get(TOKEN_PARAM) === token;
}

function withRoutes(request: SipRequest, routes: readonly string[]): SipRequest {
  const others = request.headers.filter(({ id }) => id !== 'route');
  return changed(request, { headers: [...routes.map((value) => header('Route', value)), ...others] });
}

/** Our Record-Route: one value a transport (RFC 5658), that of the next hop on top. */
export function recordRoutes(next: OwnTransport, previous: OwnTransport, isSecure: boolean, token: string): Header[] {
  const ways = next.transport === previous.transport ? [next] : [next, previous];
  return ways.map((own) => {
    const transport = own.transport === 'UDP' ? '' : `;transport=${own.transport.toLowerCase()}`;
    const hostPort = formatHostPort(own.address, own.port);
    return header('Record-Route', `<${isSecure ? 'sips' : 'sip'}:${hostPort}${transport};lr;${TOKEN_PARAM}=${token}>`);
  });
}

/** The forwarded request, without our Via, and its next hop. */
export interface Forward {
  readonly request: SipRequest;
  readonly nextHop: string;
}

/** RFC 3261 §16.6 steps 1 to 7. `added` goes on top. Error: Max-Forwards is exhausted. */
export function forwardRequest(request: SipRequest, target: string, added: readonly Header[]): Result<Forward, 'too-many-hops'> {
  const maxForwards = Number(getHeader(request, 'max-forwards') ?? 70);
  if (maxForwards === 0) return err('too-many-hops');
  const hops = header('Max-Forwards', String((Number.isInteger(maxForwards) ? Math.min(maxForwards, 255) : 70) - 1));
  const rest = request.headers.filter(({ id }) => id !== 'max-forwards');
  const moved = changed(request, { uri: target, headers: [...added, hops, ...rest] });
  const first = parseNameAddr(getList(request, 'route')[0] ?? '')?.uri;
  if (first === undefined) return ok({ request: moved, nextHop: target });
  if (parseSipUri(first)?.params.has('lr') === true) return ok({ request: moved, nextHop: first });
  // The next hop is a strict router: its URI goes into the Request-URI, the target into the last route.
  const routes = [...getList(request, 'route').slice(1), `<${target}>`];
  return ok({ request: changed(withRoutes(moved, routes), { uri: first }), nextHop: first });
}

/** RFC 3261 §16.7 step 3: removes our Via. `undefined`: no other is left. */
export function forwardResponse(response: SipResponse): SipResponse | undefined {
  const index = response.headers.findIndex(({ id }) => id === 'via');
  const line = response.headers[index];
  if (line === undefined) return undefined;
  const rest = splitList(line.value).slice(1);
  const headers = [...response.headers];
  headers.splice(index, 1, ...(rest.length === 0 ? [] : [header('Via', rest.join(', '))]));
  return headers.some(({ id }) => id === 'via') ? changed(response, { headers }) : undefined;
}

/** The URIs of a 3xx, best first (RFC 3261 §8.1.3.4). */
export function redirectTargets(response: SipResponse): string[] {
  return getList(response, 'contact')
    .flatMap((value) => parseNameAddr(value) ?? [])
    .map(({ uri, params }) => ({ uri, q: Number(params.get('q') ?? 1) }))
    .filter(({ uri }) => parseSipUri(uri) !== undefined)
    .sort((one, other) => other.q - one.q)
    .map(({ uri }) => uri);
}
