import { getHeader, type SipResponse } from '../message/message.js';
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
  const value = getHeader(response, 'session-expires');
  const match = /^\s*(\d{1,9})\s*(;.*)?$/.exec(value ?? '');
  if (match === null) return null;
  const seconds = Math.min(Math.max(Number(match[1]), MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
  const refresher = parseParams(match[2] ?? '')
    .get('refresher')
    ?.toLowerCase();
  // Nobody is named: nobody has promised to refresh, so nobody can be held to it.
  if (refresher !== 'uac' && refresher !== 'uas') return null;
  return { intervalMs: seconds * 1_000, weRefresh: (refresher === 'uac') === weAreUac };
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
