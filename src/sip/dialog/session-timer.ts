import { getHeader, header, type Header, type SipRequest, type SipResponse } from '../message/message.js';
import { parseParams } from '../message/uri.js';

/** A session timer as it was settled by a 2xx (RFC 4028 §7, §9). */
export interface SessionTimer {
  readonly intervalMs: number;
  /** We send the refreshes; else the peer does, and we end the call when it falls silent. */
  readonly weRefresh: boolean;
}

/** RFC 4028 §4: no interval is shorter. */
const MIN_INTERVAL_SECONDS = 90;
const MAX_INTERVAL_SECONDS = 86_400;

/** What a 2xx says; `null`: it sets no timer. `weAreUac`: the request was ours. */
export function sessionTimerOf(response: SipResponse, weAreUac: boolean): SessionTimer | null {
  const stated = readSessionExpires(response);
  if (stated === null) return null;
  return { intervalMs: stated.seconds * 1_000, weRefresh: (stated.refresher === 'uac') === weAreUac };
}

/**
 * The Session-Expires of our 2xx to an INVITE or UPDATE whose user says nothing of a timer: what the peer asks for, with the refresher that it names
 * (RFC 4028 §9), at least 90 s. None when it asks for none, or names no refresher, as in drachtio-server.
 */
export function agreedSession(request: SipRequest): Header[] {
  const asked = readSessionExpires(request);
  return asked === null ? [] : [header('Session-Expires', `${String(asked.seconds)};refresher=${asked.refresher}`)];
}

/** `null` when nobody is named: nobody has promised to refresh, so nobody can be held to it. */
function readSessionExpires(message: SipRequest | SipResponse): { readonly seconds: number; readonly refresher: 'uac' | 'uas' } | null {
  const match = /^\s*(\d{1,9})\s*(;.*)?$/.exec(getHeader(message, 'session-expires') ?? '');
  if (match === null) return null;
  const seconds = Math.min(Math.max(Number(match[1]), MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
  const refresher = parseParams(match[2] ?? '')
    .get('refresher')
    ?.toLowerCase();
  return refresher === 'uac' || refresher === 'uas' ? { seconds, refresher } : null;
}

/** How long after the 2xx something is due: our refresh at half the interval, or the end of a peer that did not refresh (RFC 4028 §10). */
export function sessionDueMs(timer: SessionTimer): number {
  if (timer.weRefresh) return timer.intervalMs / 2;
  return expiryMs(timer);
}

/** When the BYE goes out: a little before the interval ends, so that it still finds the peer's state. */
export function expiryMs(timer: SessionTimer): number {
  return timer.intervalMs - Math.min(32_000, timer.intervalMs / 3);
}
