/** How a key press was told: by telephone-event packets (RFC 4733) or by SIP INFO. */
export type DtmfSource = 'media' | 'signalling';

interface Press {
  readonly source: DtmfSource;
  readonly event: number;
  readonly durationMs: number;
  readonly atMs: number;
}

/** An INFO comes at the start or at the end of a press, over another network path. */
const SLACK_MS = 1_000;
const LONGEST_PRESS_MS = 10_000;
const MAX_UNMATCHED = 64;

/** Some carriers tell each press both ways: what one way told already is not a press of its own when the other tells it. */
export class DtmfDeduplicator {
  readonly #unmatched: Press[] = [];

  /** False: it was told already. */
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
