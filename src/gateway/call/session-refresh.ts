import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { SrfAnswer, SrfHeaders } from '../ports/signalling.js';
import { sessionExpiresOf } from './invite.js';
import { headerValues } from './trunk-authorization.js';

/** A part of the interval. The SIP server refreshes at half of it. */
const REFRESH_AT = 0.4;
const MAX_SECONDS = 86_400;
/** A re-INVITE waits for the exchange in progress. */
const BUSY_MS = 2_000;

type OnAnswer = (answer: SrfAnswer | undefined) => void;

/** Requests with these headers, whose challenges are answered. The answer `undefined`: none came. */
export interface RefreshRequests {
  update(headers: SrfHeaders, onAnswer: OnAnswer): void;
  /** @param begin to be called when it is sent; nothing happens while it cannot be */
  reinvite(headers: SrfHeaders, begin: () => OnAnswer): void;
  /** RFC 3261 §14.1 */
  glareDelayMs(): number;
}

/**
 * Refreshes the session of a call by UPDATE, or by re-INVITE where the peer takes none (RFC 4028 §7.4), with credentials. The SIP server
 * refreshes sessions by itself, but cannot answer a challenge; this comes first. Where it fails, the SIP server sends its re-INVITE.
 */
export class SessionRefresh {
  #cancel: CancelTimer | undefined;
  #takesUpdate = false;
  /** From a 422. */
  #minSe: SrfHeaders = {};

  constructor(
    private readonly clock: Clock,
    private readonly requests: RefreshRequests,
  ) {}

  /**
   * A 2xx to INVITE or UPDATE settled the timer.
   * @param sessionExpires of the 2xx; `undefined`: there is no timer
   * @param allow of the peer's message; `undefined`: as before
   * @param withinMs an earlier process settled it, and when is not known: the session is refreshed after this time at most
   */
  settled(sessionExpires: string | undefined, allow: string | undefined, isOwnRequest: boolean, withinMs = Infinity): void {
    this.stop();
    if (allow !== undefined) this.#takesUpdate = /(?:^|,)\s*UPDATE\s*(?:,|$)/.test(allow);
    const [, seconds = '', refresher = ''] = /^\s*(\d{1,5})\s*;.*\brefresher\s*=\s*(uac|uas)\b/i.exec(sessionExpires ?? '') ?? [];
    const weRefresh = refresher !== '' && (refresher.toLowerCase() === 'uac') === isOwnRequest;
    if (weRefresh) this.#start(Math.min(withinMs, 1_000 * REFRESH_AT * Math.min(Number(seconds), MAX_SECONDS)), seconds);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #start(delayMs: number, seconds: string): void {
    this.#cancel = this.clock.setTimer(delayMs, () => this.#refresh(seconds));
  }

  #refresh(seconds: string): void {
    const headers = { 'Session-Expires': `${seconds};refresher=uac`, ...this.#minSe };
    if (this.#takesUpdate) return this.requests.update(headers, this.#answerTo(seconds));
    this.#start(BUSY_MS, seconds);
    const again = this.#cancel;
    this.requests.reinvite(headers, () => {
      // The peer has settled it anew meanwhile.
      if (this.#cancel !== again) return () => undefined;
      again?.();
      return this.#answerTo(seconds);
    });
  }

  #answerTo(seconds: string): OnAnswer {
    const cancel = (): void => undefined;
    this.#cancel = cancel;
    return (answer) => {
      // The call is over, or the peer has settled it anew meanwhile.
      if (this.#cancel !== cancel || answer === undefined) return;
      const { status, raw } = answer;
      const first = (name: string): string | undefined => headerValues(raw, name.toLowerCase())[0];
      if (status < 300) return this.settled(sessionExpiresOf({ get: first }), first('allow'), true);
      if (status === 491) return this.#start(this.requests.glareDelayMs(), seconds);
      if (this.#minSe['Min-SE'] !== undefined) return;
      // RFC 4028 §7.4, §6: once, with the interval that the peer wants.
      const least = /^\s*(\d{1,5})\s*(?:;|$)/.exec(first('min-se') ?? '')?.[1];
      if (status !== 422 || least === undefined || Number(least) <= Number(seconds)) return;
      this.#minSe = { 'Min-SE': least };
      this.#refresh(least);
    };
  }
}
