/** RFC 3550 §6.2: the minimum interval; two parties with G.711 never come near the bandwidth limit. */
const INTERVAL_MS = 5_000;
const FIRST_REPORT_MS = 500;

/**
 * When the next report is due. The first one comes 0.5 to 1 s after the first packet, so that a short call gets one too: RFC 3550
 * §6.2 allows a unicast session not to wait at all. The others follow after 5 s, times 0.5 to 1.5 at random (§6.3.1).
 */
export class RtcpSchedule {
  #dueMs = Infinity;

  /** @param random 0 to 1, 1 not included */
  constructor(private readonly random: () => number) {}

  /** The session's first packet went out or came in; later calls do nothing. */
  start(nowMs: number): void {
    if (this.#dueMs === Infinity) this.#dueMs = nowMs + FIRST_REPORT_MS * (1 + this.random());
  }

  /** True when a report is to be sent now; the next one is scheduled. */
  take(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#dueMs = nowMs + INTERVAL_MS * (0.5 + this.random());
    return true;
  }
}
