/** Cancels a timer. Calling it twice, or after the timer fired, does nothing. */
export type CancelTimer = () => void;

/** Time as everything in the product sees it: injected, so that tests run in virtual time. */
export interface Clock {
  /** Monotonic milliseconds, with a fraction; only differences mean anything. */
  nowMs(): number;
  /** Milliseconds since the Unix epoch, for records and logs. */
  wallMs(): number;
  /** Calls `fire` once, `delayMs` from now (0 or more). */
  setTimer(delayMs: number, fire: () => void): CancelTimer;
}

/** ISO 8601 text of the clock's wall time, in UTC with milliseconds. */
export function isoNow(clock: Clock): string {
  return isoTime(clock.wallMs());
}

let knownSecond = Number.NaN;
/** With the point behind it. */
let textOfSecond = '';

/** The same for milliseconds since the Unix epoch: the moments of many calls are in one second. */
export function isoTime(wallMs: number): string {
  const second = Math.floor(wallMs / 1_000);
  if (second !== knownSecond) {
    textOfSecond = new Date(second * 1_000).toISOString().slice(0, -4);
    knownSecond = second;
  }
  return `${textOfSecond}${String(Math.floor(wallMs) - second * 1_000).padStart(3, '0')}Z`;
}

/** The waits of one limit. */
const WAITS = 5;

/**
 * Waits for the work, but no longer than this. False: it has not ended. Rejects as the work does. What counts is what the waits take, not
 * the time: after a stall of this process the answer lies in a socket, and is read before the next wait ends.
 * @param work `null`: there is none to wait for
 */
export function within(clock: Pick<Clock, 'setTimer'>, limitMs: number, work: Promise<unknown> | null): Promise<boolean> {
  if (work === null) return Promise.resolve(true);
  return new Promise((resolve, reject) => {
    let cancel: CancelTimer;
    const wait = (waits: number): void => {
      cancel = clock.setTimer(limitMs / WAITS, () => (waits === 1 ? resolve(false) : wait(waits - 1)));
    };
    wait(WAITS);
    work.finally(() => cancel()).then(() => resolve(true), reject);
  });
}
