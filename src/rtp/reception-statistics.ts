import { sequenceDelta } from './rtp-packet.js';

// RFC 3550 A.1
const MAX_DROPOUT = 3_000;
const MAX_MISORDER = 100;

/** Figures of one report block (RFC 3550 §6.4.1). */
export interface ReceptionFigures {
  /** Packets lost since the previous report, in 1/256. */
  readonly fractionLost: number;
  /** Since the start, a signed 24-bit number; negative when duplicates outnumber losses. */
  readonly cumulativeLost: number;
  readonly extendedHighestSequence: number;
  readonly jitterTicks: number;
}

/**
 * Reception figures of one source: RFC 3550 A.1, A.3 and A.8. Signalling announced the source, so there is no probation: its first packet
 * counts.
 */
export class ReceptionStatistics {
  #isStarted = false;
  #baseSequence = 0;
  #highestSequence = 0;
  #cycles = 0;
  #badSequence = -1;
  #received = 0;
  #expectedPrior = 0;
  #receivedPrior = 0;
  /** Sixteen times the jitter estimate, in ticks. */
  #jitterTimes16 = 0;
  #lastTransitTicks: number | undefined;
  /** Totals from before a restart of the source. */
  #earlierReceived = 0;
  #earlierLost = 0;

  constructor(private readonly clockRateHz: number) {}

  /**
   * Counts one packet. False if its sequence number jumps far: discard such a packet, unless a second one follows it, which means that the
   * source restarted (A.1).
   * @param hasMediaTime false for a packet whose timestamp is not its sampling instant, such as a telephone-event
   */
  receive(sequenceNumber: number, rtpTimestamp: number, arrivalMs: number, hasMediaTime: boolean): boolean {
    if (!this.#isStarted) {
      this.#restart(sequenceNumber);
    } else if (!this.#updateSequence(sequenceNumber)) {
      return false;
    }
    this.#received += 1;
    if (hasMediaTime) this.#updateJitter(rtpTimestamp, arrivalMs);
    return true;
  }

  get packetsReceived(): number {
    return this.#earlierReceived + this.#received;
  }

  get packetsLost(): number {
    return this.#earlierLost + Math.max(0, this.#expected() - this.#received);
  }

  get jitterMs(): number {
    return (this.#jitterTimes16 / 16 / this.clockRateHz) * 1_000;
  }

  /** The figures of the report that is sent now; the next fraction lost counts from here (A.3). */
  takeReport(): ReceptionFigures {
    const expected = this.#expected();
    const expectedInterval = expected - this.#expectedPrior;
    const lostInterval = expectedInterval - (this.#received - this.#receivedPrior);
    this.#expectedPrior = expected;
    this.#receivedPrior = this.#received;
    return {
      fractionLost: expectedInterval === 0 || lostInterval <= 0 ? 0 : Math.min(255, Math.floor((lostInterval * 256) / expectedInterval)),
      cumulativeLost: Math.max(-0x800000, Math.min(0x7fffff, expected - this.#received)),
      extendedHighestSequence: (this.#cycles + this.#highestSequence) >>> 0,
      jitterTicks: Math.floor(this.#jitterTimes16 / 16),
    };
  }

  #expected(): number {
    return this.#isStarted ? this.#cycles + this.#highestSequence - this.#baseSequence + 1 : 0;
  }

  #updateSequence(sequenceNumber: number): boolean {
    const delta = sequenceDelta(sequenceNumber, this.#highestSequence);
    if (delta > 0 && delta < MAX_DROPOUT) {
      if (sequenceNumber < this.#highestSequence) this.#cycles += 65_536;
      this.#highestSequence = sequenceNumber;
    } else if (delta <= -MAX_MISORDER || delta >= MAX_DROPOUT) {
      if (sequenceNumber !== this.#badSequence) {
        this.#badSequence = (sequenceNumber + 1) & 0xffff;
        return false;
      }
      this.#restart(sequenceNumber);
    }
    // Otherwise a duplicate or a reordered packet, which RFC 3550 §6.4.1 counts.
    return true;
  }

  #restart(sequenceNumber: number): void {
    this.#earlierLost = this.packetsLost;
    this.#earlierReceived += this.#received;
    this.#isStarted = true;
    this.#baseSequence = sequenceNumber;
    this.#highestSequence = sequenceNumber;
    this.#cycles = 0;
    this.#badSequence = -1;
    this.#received = 0;
    this.#expectedPrior = 0;
    this.#receivedPrior = 0;
    this.#lastTransitTicks = undefined;
  }

  // RFC 3550 A.8
  #updateJitter(rtpTimestamp: number, arrivalMs: number): void {
    const transitTicks = Math.round((arrivalMs * this.clockRateHz) / 1_000) - rtpTimestamp;
    const last = this.#lastTransitTicks;
    this.#lastTransitTicks = transitTicks;
    if (last === undefined) return;
    const difference = Math.abs((transitTicks - last) | 0);
    // A jump of a second or more is a restart of the source's timestamp, not jitter.
    if (difference >= this.clockRateHz) return;
    this.#jitterTimes16 += difference - Math.floor((this.#jitterTimes16 + 8) / 16);
  }
}
