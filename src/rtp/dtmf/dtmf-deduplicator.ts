/** How a digit arrived: as telephone-event packets (RFC 4733) or by SIP INFO. */
export type DtmfSource = 'media' | 'signalling';

interface Press {
  readonly source: DtmfSource;
  readonly event: number;
  readonly durationMs: number;
  readonly atMs: number;
}

/** An INFO arrives at the start or the end of a digit, over another network path. */
const SLACK_MS = 1_000;
const LONGEST_PRESS_MS = 10_000;
const MAX_UNMATCHED = 64;

/** Some carriers send each digit both ways: the second copy is not another digit. */
export class DtmfDeduplicator {
  readonly #unmatched: Press[] = [];

  /** False for the second copy. */
  take(source: DtmfSource, event: number, durationMs: number, nowMs: number): boolean {
    while (this.#unmatched[0] !== undefined && nowMs - this.#unmatched[0].atMs > LONGEST_PRESS_MS + SLACK_MS) this.#unmatched.shift();
    const twin = this.#unmatched.findIndex(
      (press) =>
        press.source !== source && press.event === event && nowMs - press.atMs <= SLACK_MS + Math.max(durationMs, press.durationMs),
    );
    if (twin >= 0) {
      this.#unmatched.splice(twin, 1);
      return false;
    }
    this.#unmatched.push({ source, event, durationMs, atMs: nowMs });
    if (this.#unmatched.length > MAX_UNMATCHED) this.#unmatched.shift();
    return true;
  }
}
