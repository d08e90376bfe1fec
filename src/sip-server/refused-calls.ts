import type { TimerQueue } from '../lib/timers.js';

/** A gateway looks each of them up. */
const MAX_NUMBERS = 100;
const REPORT_EACH_MS = 1_000;
const NUMBER = /^sips?:(\+?\d{1,15})(?:[;@]|$)/i;

/** New calls that the server refuses without an application, by called number: told once a second, for all together. */
export class RefusedCalls {
  readonly #byNumber = new Map<string, number>();
  #total = 0;
  /** Why the last call was refused. */
  #why = '';

  /** @param report gets the number of calls, `formatRefused` of them, and why the last one was refused */
  constructor(
    private readonly timers: TimerQueue,
    private readonly report: (total: number, text: string, why: string) => void,
  ) {}

  /**
   * @param uri Request-URI of the INVITE
   * @param why the figure and its limit, for a person
   */
  add(uri: string, why: string): void {
    this.#why = why;
    if (this.#total === 0) this.timers.start(REPORT_EACH_MS, () => this.#flush());
    this.#total += 1;
    const number = NUMBER.exec(uri)?.[1];
    if (number === undefined) return;
    const before = this.#byNumber.get(number);
    if (before !== undefined || this.#byNumber.size < MAX_NUMBERS) this.#byNumber.set(number, (before ?? 0) + 1);
  }

  #flush(): void {
    const total = this.#total;
    const text = formatRefused(total, this.#byNumber, this.#why);
    this.#total = 0;
    this.#byNumber.clear();
    this.report(total, text, this.#why);
  }
}

/** `TOTAL NUMBER=CALLS … why:WHY`: what the numbers do not add up to went elsewhere, or to numbers beyond the first hundred; WHY is URL-encoded. */
function formatRefused(total: number, byNumber: ReadonlyMap<string, number>, why: string): string {
  return [String(total), ...[...byNumber].map(([number, calls]) => `${number}=${String(calls)}`), `why:${encodeURIComponent(why)}`].join(
    ' ',
  );
}
