import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { SrfAnswer, SrfHeaders } from '../ports/signalling.js';
import { sessionExpiresOf } from './invite.js';
import { headerValues } from './trunk-authorization.js';

/** A part of the interval. The SIP server refreshes at half of it. */
const REFRESH_AT = 0.4;
const MAX_SECONDS = 86_400;

/**
 * Refreshes the session of a call by UPDATE (RFC 4028 §7.4), with credentials. The SIP server refreshes sessions by itself, but cannot
 * answer a challenge; this comes first. Where it fails, or the peer takes no UPDATE, the SIP server sends its re-INVITE.
 */
export class SessionRefresh {
  #cancel: CancelTimer | undefined;
  #takesUpdate = false;
  /** From a 422. */
  #minSe: SrfHeaders = {};

  /** @param update sends an UPDATE, and answers its challenges; `undefined`: it got no answer */
  constructor(
    private readonly clock: Clock,
    private readonly update: (headers: SrfHeaders, onAnswer: (answer: SrfAnswer | undefined) => void) => void,
  ) {}

  /**
   * A 2xx to INVITE or UPDATE settled the timer.
   * @param sessionExpires of the 2xx; `undefined`: there is no timer
   * @param allow of the peer's message; `undefined`: as before
   */
  settled(sessionExpires: string | undefined, allow: string | undefined, isOwnRequest: boolean): void {
    this.stop();
    if (allow !== undefined) this.#takesUpdate = /(?:^|,)\s*UPDATE\s*(?:,|$)/.test(allow);
    const [, seconds = '', refresher = ''] = /^\s*(\d{1,5})\s*;.*\brefresher\s*=\s*(uac|uas)\b/i.exec(sessionExpires ?? '') ?? [];
    const weRefresh = refresher !== '' && (refresher.toLowerCase() === 'uac') === isOwnRequest;
    if (!weRefresh || !this.#takesUpdate) return;
    this.#cancel = this.clock.setTimer(1_000 * REFRESH_AT * Math.min(Number(seconds), MAX_SECONDS), () => this.#refresh(seconds));
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #refresh(seconds: string): void {
    const cancel = (): void => undefined;
    this.#cancel = cancel;
    this.update({ 'Session-Expires': `${seconds};refresher=uac`, ...this.#minSe }, (answer) => {
      // The call is over, or the peer has settled it anew meanwhile.
      if (this.#cancel !== cancel || answer === undefined) return;
      const { status, raw } = answer;
      const first = (name: string): string | undefined => headerValues(raw, name.toLowerCase())[0];
      if (status < 300) return this.settled(sessionExpiresOf({ get: first }), first('allow'), true);
      if (this.#minSe['Min-SE'] !== undefined) return;
      // RFC 4028 §7.4, §6: once, with the interval that the peer wants.
      const least = /^\s*(\d{1,5})\s*(?:;|$)/.exec(first('min-se') ?? '')?.[1];
      if (status !== 422 || least === undefined || Number(least) <= Number(seconds)) return;
      this.#minSe = { 'Min-SE': least };
      this.#refresh(least);
    });
  }
}
