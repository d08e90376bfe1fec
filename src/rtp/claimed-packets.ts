/** Packets of 20 ms: fewer that are missing may be the ones on their way. */
const CERTAIN_PACKETS = 25;
const PACKETS_PER_MS = 1 / 20;
/** A shorter pause may be one of the network. */
const CERTAIN_QUIET_MS = 1_000;

interface Report {
  readonly ssrc: number;
  readonly claimed: number;
  readonly received: number;
}

/**
 * Compares what a peer's sender reports claim to have sent (RFC 3550 §6.4.1) with what arrived. A peer that claims packets of which none
 * arrive is alive, and what it sends is lost on the way.
 */
export class ClaimedPackets {
  /** The first report of the source since its last packet arrived. */
  #since: Report | undefined;

  /**
   * Takes a sender report: packets that its sender has sent by then and packets that arrived by then, both from the start, and how long
   * ago the last one arrived. Returns whether for certain none arrives any more; the first report of a source is none by itself.
   */
  areLost(report: Report, quietMs: number): boolean {
    const before = this.#since;
    if (before?.ssrc !== report.ssrc) {
      this.#since = report;
      return false;
    }
    // While none arrives the first one stays: a report that claims no more than the one before does not take back what that claimed.
    if (before.received !== report.received) this.#since = report;
    const received = report.received - before.received;
    const missing = ((report.claimed - before.claimed) >>> 0) - received;
    // A count that went backwards: the sender began anew.
    if (quietMs < CERTAIN_QUIET_MS || missing < CERTAIN_PACKETS || missing > 2 ** 31) return false;
    // Some arrived: the pause since then must be what is missing, and no loss before it.
    return received === 0 || missing >= 0.9 * quietMs * PACKETS_PER_MS;
  }
}
