import { cseqNumber, type CoreHeaders } from '../message/core-headers.js';
import { flattenAll } from '../message/fast-path-parser.js';
import { getHeader, getList, header, splitList, type Header, type SipRequest, type SipResponse } from '../message/message.js';
import { parseNameAddr, tagOf, parseSipUri, parseParams } from '../message/uri.js';

/** Dialog state (RFC 3261 §12). Values are header values as on the wire. */
export interface Dialog {
  readonly role: 'uas' | 'uac';
  readonly callId: string;
  readonly localTag: string;
  /** '' when the peer sent none (RFC 2543). */
  readonly remoteTag: string;
  /** From of our requests, tag included. */
  readonly local: string;
  /** To of our requests, tag included. */
  readonly remote: string;
  readonly remoteTarget: string;
  /** Route values, nearest hop first. */
  readonly routeSet: readonly string[];
  readonly localSeq: number;
  readonly remoteSeq: number | null;
}

/** Unique among our dialogs. */
export function dialogKey(callId: string, localTag: string, remoteTag: string): string {
  return `${callId}|${localTag}|${remoteTag}`;
}

/** RFC 3261 §12.1.1. Without a Contact, later requests go to the From URI. */
export function uasDialog(request: SipRequest, core: CoreHeaders, localTag: string): Dialog {
  const own = core.toTag === undefined ? `${core.to};tag=${localTag}` : core.to;
  const target = contactUri(request) ?? parseNameAddr(core.from)?.uri ?? '';
  const texts = flattenAll([core.callId, core.fromTag ?? '', own, core.from, target, ...getList(request, 'record-route')]);
  const [callId = '', remoteTag = '', local = '', remote = '', remoteTarget = '', ...routeSet] = texts;
  return {
    role: 'uas',
    callId,
    localTag,
    remoteTag,
    local,
    remote,
    remoteTarget,
    routeSet,
    localSeq: 1,
    remoteSeq: core.cseq.number,
  };
}

/** RFC 3261 §12.1.2. */
export function uacDialog(request: SipRequest, response: SipResponse): Dialog {
  const from = getHeader(request, 'from') ?? '';
  const to = getHeader(response, 'to') ?? '';
  return {
    role: 'uac',
    callId: getHeader(request, 'call-id') ?? '',
    localTag: tagOf(from) ?? '',
    remoteTag: tagOf(to) ?? '',
    local: from,
    remote: to,
    remoteTarget: contactUri(response) ?? request.uri,
    routeSet: getList(response, 'record-route').reverse(),
    localSeq: cseqNumber(request),
    remoteSeq: null,
  };
}

/** RFC 3261 §12.2: INVITE, UPDATE and their 2xx may change the peer's Contact. */
export function refreshTarget(dialog: Dialog, message: SipRequest | SipResponse): Dialog {
  const target = contactUri(message);
  return target === undefined || target === dialog.remoteTarget ? dialog : { ...dialog, remoteTarget: target };
}

/** Nearly every Contact: one URI in angle brackets. */
const PLAIN_CONTACT = /^<([^<>\s",]+)>(?:;[^",]*)?$/;

function contactUri(message: SipRequest | SipResponse): string | undefined {
  const value = getHeader(message, 'contact');
  if (value === undefined) return undefined;
  const plain = PLAIN_CONTACT.exec(value);
  return plain === null ? parseNameAddr(splitList(value)[0] ?? '')?.uri : plain[1];
}

export interface Routing {
  readonly requestUri: string;
  readonly route: readonly Header[];
  /** URI that determines the destination (RFC 3261 §12.2.1.1, §16.12). */
  readonly nextHop: string;
}

/** Loose routing, or strict routing when the first route has no `lr`. */
export function routingOf(dialog: Dialog): Routing {
  const first = dialog.routeSet[0];
  const firstUri = first === undefined ? undefined : parseNameAddr(first)?.uri;
  if (first === undefined || firstUri === undefined) {
    return { requestUri: dialog.remoteTarget, route: [], nextHop: dialog.remoteTarget };
  }
  if (parseSipUri(firstUri)?.params.has('lr') === true) {
    return { requestUri: dialog.remoteTarget, route: dialog.routeSet.map((value) => header('Route', value)), nextHop: firstUri };
  }
  const rest = [...dialog.routeSet.slice(1), `<${dialog.remoteTarget}>`];
  return { requestUri: firstUri, route: rest.map((value) => header('Route', value)), nextHop: firstUri };
}

/** A session timer as negotiated (RFC 4028 §7, §9). */
export interface SessionTimer {
  readonly intervalMs: number;
  /** We send the refreshes; otherwise the peer does, and we end the call without them. */
  readonly weRefresh: boolean;
}

/** Minimum of RFC 4028 §4. */
const MIN_INTERVAL_SECONDS = 90;
const MAX_INTERVAL_SECONDS = 86_400;

/** The timer that a 2xx sets; `null`: none. `weAreUac`: the request was ours. */
export function sessionTimerOf(response: SipResponse, weAreUac: boolean): SessionTimer | null {
  const stated = readSessionExpires(response);
  if (stated === null) return null;
  return { intervalMs: stated.seconds * 1_000, weRefresh: (stated.refresher === 'uac') === weAreUac };
}

/**
 * Session-Expires of our 2xx to an INVITE or UPDATE when the application sets none: the peer's interval, at least 90 s, and its refresher
 * (RFC 4028 §9). None if the peer asks for none or names no refresher, as in drachtio-server.
 */
export function agreedSession(request: SipRequest): Header[] {
  const asked = readSessionExpires(request);
  return asked === null ? [] : [header('Session-Expires', `${String(asked.seconds)};refresher=${asked.refresher}`)];
}

/** `null` when no refresher is named: then neither side must refresh. */
function readSessionExpires(message: SipRequest | SipResponse): { readonly seconds: number; readonly refresher: 'uac' | 'uas' } | null {
  const match = /^\s*(\d{1,9})\s*(;.*)?$/.exec(getHeader(message, 'session-expires') ?? '');
  if (match === null) return null;
  const seconds = Math.min(Math.max(Number(match[1]), MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
  const refresher = parseParams(match[2] ?? '')
    .get('refresher')
    ?.toLowerCase();
  return refresher === 'uac' || refresher === 'uas' ? { seconds, refresher } : null;
}

/** Time from the 2xx to our refresh (half the interval), or to our BYE if the peer does not refresh (RFC 4028 §10). */
export function sessionDueMs(timer: SessionTimer): number {
  if (timer.weRefresh) return timer.intervalMs / 2;
  return expiryMs(timer);
}

/** Our BYE precedes the end of the interval, so that it still finds the peer's state. */
export function expiryMs(timer: SessionTimer): number {
  return timer.intervalMs - Math.min(32_000, timer.intervalMs / 3);
}
