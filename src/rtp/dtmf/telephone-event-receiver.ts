import { addTicks, timestampDelta } from '../rtp-packet.js';
import { LAST_DTMF_EVENT, MAX_DURATION_TICKS, readTelephoneEvent, TELEPHONE_EVENT_BYTES, type TelephoneEvent } from './telephone-event.js';

/** A complete digit. */
export interface DtmfDigit {
  /** 0 to 15 (RFC 4733 §3.2). */
  readonly event: number;
  readonly durationMs: number;
}

/** A digit in progress. */
interface ActivePress {
  readonly ssrc: number;
  readonly event: number;
  /** Timestamp of the current segment. */
  rtpTimestamp: number;
  durationTicks: number;
  /** Ticks of the earlier segments (RFC 4733 §2.5.1.3). */
  earlierTicks: number;
  lastPacketMs: number;
}

/** Finished digits to remember, so that late copies of their packets do not start new ones. */
const REMEMBERED = 16;
/** A sender may retransmit only each 50 ms (§2.5.1.2), and three packets in a row may be lost. */
const DEFAULT_END_TIMEOUT_MS = 200;
const MAX_EVENTS_PER_PACKET = 8;

/**
 * Turns telephone-event packets into digits and reports each once, when it ends: at the first packet with the E bit, at the first packet of
 * another digit, or after a time without packets. SSRC and timestamp identify a digit; marker bit and sequence number do not matter, so
 * reordered and retransmitted packets do no harm.
 */
export class TelephoneEventReceiver {
  readonly #clockRateHz: number;
  readonly #endTimeoutMs: number;
  readonly #finished: { readonly ssrc: number; readonly rtpTimestamp: number }[] = [];
  #active: ActivePress | undefined;

  constructor(clockRateHz = 8_000, endTimeoutMs = DEFAULT_END_TIMEOUT_MS) {
    this.#clockRateHz = clockRateHz;
    this.#endTimeoutMs = endTimeoutMs;
  }

  /** When to call `poll` if no packet arrives before; `undefined` without a digit in progress. */
  get deadlineMs(): number | undefined {
    return this.#active === undefined ? undefined : this.#active.lastPacketMs + this.#endTimeoutMs;
  }

  /** Reads the payload `buffer[offset, offset + lengthBytes)`; returns the digits that it ends, in order. */
  receive(ssrc: number, rtpTimestamp: number, buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): DtmfDigit[] {
    const digits: DtmfDigit[] = [];
    let timestamp = rtpTimestamp;
    const count = Math.min(MAX_EVENTS_PER_PACKET, Math.floor(lengthBytes / TELEPHONE_EVENT_BYTES));
    for (let i = 0; i < count; i += 1) {
      const event = readTelephoneEvent(buffer, offset + i * TELEPHONE_EVENT_BYTES);
      // §2.5.1.5: further events may follow, each after the end of the previous one. Some senders pad with zeros after the first.
      if (i > 0 && event.durationTicks === 0) break;
      if (event.event <= LAST_DTMF_EVENT) this.#receiveOne(ssrc, timestamp, event, nowMs, digits);
      if (!event.isEnd) break;
      timestamp = addTicks(timestamp, event.durationTicks);
    }
    return digits;
  }

  /** The digit whose end packets were all lost, after its timeout. */
  poll(nowMs: number): DtmfDigit | undefined {
    return this.deadlineMs === undefined || nowMs < this.deadlineMs ? undefined : this.#finish();
  }

  #receiveOne(ssrc: number, rtpTimestamp: number, event: TelephoneEvent, nowMs: number, digits: DtmfDigit[]): void {
    if (this.#finished.some((digit) => digit.ssrc === ssrc && digit.rtpTimestamp === rtpTimestamp)) return;
    const active = this.#active;
    if (active !== undefined && this.#belongsTo(active, ssrc, rtpTimestamp, event)) {
      this.#update(active, rtpTimestamp, event, nowMs);
      if (event.isEnd) this.#push(digits, this.#finish());
      return;
    }
    if (active !== undefined && active.ssrc === ssrc && timestampDelta(rtpTimestamp, active.rtpTimestamp) < 0) {
      // A packet of an earlier digit: only its end matters.
      if (event.isEnd) {
        this.#remember(ssrc, rtpTimestamp);
        digits.push({ event: event.event, durationMs: this.#toMs(event.durationTicks) });
      }
      return;
    }
    // Another digit: the end packets of the previous one were lost.
    this.#push(digits, this.#finish());
    this.#active = { ssrc, event: event.event, rtpTimestamp, durationTicks: event.durationTicks, earlierTicks: 0, lastPacketMs: nowMs };
    if (event.isEnd) this.#push(digits, this.#finish());
  }

  #belongsTo(active: ActivePress, ssrc: number, rtpTimestamp: number, event: TelephoneEvent): boolean {
    if (active.ssrc !== ssrc) return false;
    if (active.rtpTimestamp === rtpTimestamp) return true;
    return active.event === event.event && this.#isNextSegment(active, rtpTimestamp);
  }

  /** §2.5.1.3: a digit longer than 0xFFFF ticks continues under a timestamp that is 0xFFFF later, without an end between. */
  #isNextSegment(active: ActivePress, rtpTimestamp: number): boolean {
    const advanceTicks = timestampDelta(rtpTimestamp, active.rtpTimestamp);
    // Some senders start the next segment a packet early, or count 0x10000.
    const slackTicks = this.#clockRateHz / 10;
    return advanceTicks >= MAX_DURATION_TICKS - slackTicks && advanceTicks <= MAX_DURATION_TICKS + slackTicks;
  }

  #update(active: ActivePress, rtpTimestamp: number, event: TelephoneEvent, nowMs: number): void {
    if (active.rtpTimestamp !== rtpTimestamp) {
      active.earlierTicks += timestampDelta(rtpTimestamp, active.rtpTimestamp);
      this.#remember(active.ssrc, active.rtpTimestamp);
      active.rtpTimestamp = rtpTimestamp;
      active.durationTicks = 0;
    }
    // Reordered packets carry shorter durations.
    active.durationTicks = Math.max(active.durationTicks, event.durationTicks);
    active.lastPacketMs = nowMs;
  }

  #finish(): DtmfDigit | undefined {
    const active = this.#active;
    if (active === undefined) return undefined;
    this.#active = undefined;
    this.#remember(active.ssrc, active.rtpTimestamp);
    return { event: active.event, durationMs: this.#toMs(active.earlierTicks + active.durationTicks) };
  }

  #push(digits: DtmfDigit[], digit: DtmfDigit | undefined): void {
    if (digit !== undefined) digits.push(digit);
  }

  #remember(ssrc: number, rtpTimestamp: number): void {
    this.#finished.push({ ssrc, rtpTimestamp });
    if (this.#finished.length > REMEMBERED) this.#finished.shift();
  }

  #toMs(ticks: number): number {
    return Math.round((ticks * 1_000) / this.#clockRateHz);
  }
}

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
      (digit) =>
        digit.source !== source && digit.event === event && nowMs - digit.atMs <= SLACK_MS + Math.max(durationMs, digit.durationMs),
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
