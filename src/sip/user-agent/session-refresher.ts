import { randomInt } from 'node:crypto';
import type { Clock } from '../../lib/clock.js';
import type { TimerQueue } from '../../lib/timers.js';
import type { DialogEntry } from '../dialog/dialog-table.js';
import type { DialogRecord } from '../dialog/dialog-record.js';
import { expiryMs, sessionDueMs, sessionTimerOf } from '../dialog/dialog.js';
import { getHeader, header, type RequestParts, type SipRequest, type SipResponse } from '../message/message.js';

/** From a restart: for the peer's refresh that is overdue, and within which our overdue refreshes go out. */
const RESUME_GRACE_MS = 32_000;
const REFRESHED_WITHIN_MS = 10_000;

export interface RefreshActions {
  /** Sends a re-INVITE and passes its responses to `onRefreshAnswer`; false if it cannot be sent. */
  refresh(dialog: DialogEntry, parts: RequestParts): boolean;
  /** False: a request may not be sent now. */
  mayRefresh(dialog: DialogEntry): boolean;
  acknowledge(dialog: DialogEntry): void;
  /** Sends BYE and notifies the user. */
  expire(dialog: DialogEntry): void;
}

/** The session timers of all dialogs (RFC 4028): the server runs them, for every application. */
export class SessionRefresher {
  constructor(
    private readonly timers: TimerQueue,
    private readonly clock: Clock,
    private readonly actions: RefreshActions,
  ) {}

  /**
   * After a 2xx to INVITE or UPDATE: Session-Expires restarts the timer; without one there is none.
   * @param isOurs the request was ours
   */
  settled(dialog: DialogEntry, response: SipResponse, isOurs: boolean): void {
    this.#stop(dialog);
    dialog.sessionTimer = sessionTimerOf(response, isOurs);
    dialog.sessionDueMs = 0;
    if (dialog.sessionTimer === null) return;
    const delayMs = sessionDueMs(dialog.sessionTimer);
    dialog.sessionDueMs = this.clock.wallMs() + delayMs;
    this.#start(dialog, delayMs, () => this.#due(dialog));
  }

  /** Continues the timer of a dialog that an earlier process had. What fell due meanwhile gets time: nobody could refresh. */
  resume(dialog: DialogEntry, { sessionTimer, sessionDueMs: dueMs }: Pick<DialogRecord, 'sessionTimer' | 'sessionDueMs'>): void {
    dialog.sessionTimer = sessionTimer;
    dialog.sessionDueMs = dueMs;
    if (sessionTimer === null) return;
    const leastMs = sessionTimer.weRefresh ? randomInt(0, REFRESHED_WITHIN_MS) : Math.min(RESUME_GRACE_MS, sessionTimer.intervalMs);
    // Setting the clock meanwhile does not make the session longer.
    const leftMs = Math.min(dueMs - this.clock.wallMs(), sessionDueMs(sessionTimer));
    this.#start(dialog, Math.max(leftMs, leastMs), () => this.#due(dialog));
  }

  /** A response to our refresh. */
  onRefreshAnswer(dialog: DialogEntry, refresh: SipRequest, response: SipResponse): void {
    if (response.status < 200 || dialog.isEnded) return;
    if (response.status < 300) {
      this.actions.acknowledge(dialog);
      this.settled(dialog, response, true);
      return;
    }
    // RFC 4028 §10: the peer has no such call, or is gone.
    if (response.status === 408 || response.status === 481) return this.actions.expire(dialog);
    // RFC 3261 §14.1: glare; the side that generated the Call-ID waits 2.1 to 4 s, the other 0 to 2 s.
    const [leastMs, mostMs] = dialog.state.role === 'uac' ? ([2_100, 4_000] as const) : ([0, 2_000] as const);
    if (response.status === 491) return this.#start(dialog, randomInt(leastMs, mostMs), () => this.#due(dialog));
    const { sessionTimer } = dialog;
    // RFC 4028 §7.4: the peer wants a longer interval. Once for each refresh.
    const isFirst = response.status === 422 && getHeader(refresh, 'min-se') === undefined;
    const minSe = isFirst ? (/^\s*(\d{1,5})\s*(?:;|$)/.exec(getHeader(response, 'min-se') ?? '')?.[1] ?? null) : null;
    if (sessionTimer !== null && minSe !== null && 1_000 * Number(minSe) > sessionTimer.intervalMs) {
      dialog.sessionTimer = { ...sessionTimer, intervalMs: 1_000 * Number(minSe) };
      return this.#due(dialog, minSe);
    }
    if (sessionTimer !== null) this.#start(dialog, expiryMs(sessionTimer) - sessionDueMs(sessionTimer), () => this.actions.expire(dialog));
  }

  /** @param minSe from a 422, in seconds; `null`: none came */
  #due(dialog: DialogEntry, minSe: string | null = null): void {
    const { sessionTimer } = dialog;
    if (sessionTimer === null || dialog.isEnded) return;
    if (!sessionTimer.weRefresh) return this.actions.expire(dialog);
    const isBusy = dialog.hasOwnInvite || dialog.invite !== null || dialog.awaitsAck;
    if (isBusy || !this.actions.mayRefresh(dialog)) return this.#start(dialog, 2_000, () => this.#due(dialog, minSe));
    const headers = [
      header('Supported', 'timer'),
      header('Session-Expires', `${String(sessionTimer.intervalMs / 1_000)};refresher=uac`),
      ...(minSe === null ? [] : [header('Min-SE', minSe)]),
      ...(dialog.lastContact === undefined ? [] : [header('Contact', dialog.lastContact)]),
      ...(dialog.lastSdp === '' ? [] : [header('Content-Type', 'application/sdp')]),
    ];
    if (!this.actions.refresh(dialog, { method: 'INVITE', headers, body: dialog.lastSdp })) this.actions.expire(dialog);
  }

  #start(dialog: DialogEntry, delayMs: number, fire: () => void): void {
    this.#stop(dialog);
    dialog.sessionTimerHandle = this.timers.start(delayMs, fire);
  }

  #stop(dialog: DialogEntry): void {
    if (dialog.sessionTimerHandle !== undefined) this.timers.stop(dialog.sessionTimerHandle);
    dialog.sessionTimerHandle = undefined;
  }
}
