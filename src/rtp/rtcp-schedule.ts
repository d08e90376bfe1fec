/** RFC 3550 §6.2: the minimum interval. Two parties with G.711 never reach the bandwidth limit. */
const INTERVAL_MS = 5_000;
const FIRST_REPORT_MS = 500;

/**
 * When the next report is due. The first follows 0.5 to 1 s after the first packet, so that a short call gets one too (RFC 3550 §6.2
 * allows a unicast session not to wait at all), the others after 5 s times 0.5 to 1.5 at random (§6.3.1).
 */
export class RtcpSchedule {
  readonly #random: () => number;
  #dueMs = Infinity;

  /** @param random from 0 up to but not including 1 */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** Starts the schedule at the session's first packet, sent or received; later calls do nothing. */
  start(nowMs: number): void {
    if (this.#dueMs === Infinity) this.#dueMs = nowMs + FIRST_REPORT_MS * (1 + this.#random());
  }

  /** True if a report is due; schedules the next one. */
  take(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#dueMs = nowMs + INTERVAL_MS * (0.5 + this.#random());
    return true;
  }
}
