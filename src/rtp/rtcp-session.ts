import { middle32, ntpFromUnixMs, roundTripMs } from './ntp.js';
import { parseRtcpCompound, writeRtcpCompound, type ReportBlock, type SenderInfo } from './rtcp-packet.js';
import type { ReceptionFigures } from './quality.js';

/** What a report states about our stream. */
export interface SentFigures {
  readonly ssrc: number;
  /** RTP packets and payload bytes so far. */
  readonly packets: number;
  readonly octets: number;
  /** The RTP timestamp at the instant of the report. */
  readonly rtpTimestampNow: number;
}

/** What a report states about the peer's stream. */
export interface ReceivedFigures {
  readonly ssrc: number;
  readonly figures: ReceptionFigures;
}

/** How the peer receives our stream. */
export interface PeerReport {
  /** Since its previous report, 0 to 1. */
  readonly lossRate: number;
  readonly jitterTicks: number;
}

interface LastSenderReport {
  readonly ssrc: number;
  /** RTP packets that the peer has sent by then. */
  readonly packets: number;
  readonly middle32: number;
  readonly arrivalMs: number;
}

/** The RTCP side of one leg: builds its reports and reads the peer's. */
export class RtcpSession {
  #lastSenderReport: LastSenderReport | undefined;
  #packetsAtLastReport = 0;
  #roundTripMs: number | null = null;
  #peerLost: number | null = null;
  #peerSaidBye = false;
  #peerReport: PeerReport | null = null;
  #newSenderReport: LastSenderReport | null = null;

  /** @param cname one per leg; random, as RFC 7022 recommends */
  constructor(private readonly cname: string) {}

  /** The last round trip from a report, in milliseconds. */
  get roundTripMs(): number | null {
    return this.#roundTripMs;
  }

  /** Packets of ours that the peer lost; `null` before its first report. */
  get peerLostPackets(): number | null {
    return this.#peerLost;
  }

  /** What the peer's last report block states about our stream; `null`: none since the previous call. */
  takePeerReport(): PeerReport | null {
    const report = this.#peerReport;
    this.#peerReport = null;
    return report;
  }

  /** The sender report that came since the previous call; `null`: none. */
  takeSenderReport(): Pick<LastSenderReport, 'ssrc' | 'packets'> | null {
    const report = this.#newSenderReport;
    this.#newSenderReport = null;
    return report;
  }

  get peerSaidBye(): boolean {
    return this.#peerSaidBye;
  }

  /**
   * Writes a compound packet at the start of `target` (512 bytes) and returns its length. It begins with SR if RTP was sent since the
   * previous report, else with RR (RFC 3550 §6.4).
   */
  write(target: Uint8Array, sent: SentFigures, received: ReceivedFigures | null, nowMs: number, wallMs: number, isBye: boolean): number {
    const isSender = sent.packets > this.#packetsAtLastReport;
    this.#packetsAtLastReport = sent.packets;
    const sender: SenderInfo | null = isSender
      ? { ntp: ntpFromUnixMs(wallMs), rtpTimestamp: sent.rtpTimestampNow, packets: sent.packets, octets: sent.octets }
      : null;
    const blocks = received === null ? [] : [this.#blockOf(received, nowMs)];
    return writeRtcpCompound(target, { ssrc: sent.ssrc, sender, blocks, cname: this.cname, isBye });
  }

  /** Reads a compound packet of the peer; false if it is invalid. `ownSsrc` selects the report blocks about our stream. */
  read(bytes: Uint8Array, ownSsrc: number, nowMs: number, wallMs: number): boolean {
    const parsed = parseRtcpCompound(bytes);
    if (!parsed.ok) return false;
    for (const packet of parsed.value) {
      if (packet.type === 'BYE') this.#peerSaidBye = true;
      if (packet.type !== 'SR' && packet.type !== 'RR') continue;
      if (packet.type === 'SR') {
        const { ssrc, sender } = packet;
        this.#lastSenderReport = { ssrc, packets: sender.packets, middle32: middle32(sender.ntp), arrivalMs: nowMs };
        this.#newSenderReport = this.#lastSenderReport;
      }
      for (const block of packet.blocks) if (block.ssrc === ownSsrc) this.#readBlock(block, wallMs);
    }
    return true;
  }

  #readBlock(block: ReportBlock, wallMs: number): void {
    this.#peerLost = block.cumulativeLost;
    this.#peerReport = { lossRate: block.fractionLost / 256, jitterTicks: block.jitterTicks };
    const now = middle32(ntpFromUnixMs(wallMs));
    this.#roundTripMs = roundTripMs(now, block.lastSenderReport, block.delaySinceLastSenderReport) ?? this.#roundTripMs;
  }

  #blockOf(received: ReceivedFigures, nowMs: number): ReportBlock {
    const last = this.#lastSenderReport?.ssrc === received.ssrc ? this.#lastSenderReport : undefined;
    return {
      ssrc: received.ssrc,
      ...received.figures,
      lastSenderReport: last?.middle32 ?? 0,
      delaySinceLastSenderReport: last === undefined ? 0 : Math.round(((nowMs - last.arrivalMs) * 65_536) / 1_000),
    };
  }
}

/** RFC 3550 §6.2: the minimum interval. Two parties with G.711 never reach the bandwidth limit. */
const INTERVAL_MS = 5_000;
const FIRST_REPORT_MS = 500;

/**
 * When the next report is due. The first follows 0.5 to 1 s after the first packet, so that a short call gets one too (RFC 3550 §6.2
 * allows a unicast session not to wait at all), the others after 5 s times 0.5 to 1.5 at random (§6.3.1).
 */
export class RtcpSchedule {
  #dueMs = Infinity;

  /** @param random from 0 up to but not including 1 */
  constructor(private readonly random: () => number) {}

  /** Starts the schedule at the session's first packet, sent or received; later calls do nothing. */
  start(nowMs: number): void {
    if (this.#dueMs === Infinity) this.#dueMs = nowMs + FIRST_REPORT_MS * (1 + this.random());
  }

  /** True if a report is due; schedules the next one. */
  take(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#dueMs = nowMs + INTERVAL_MS * (0.5 + this.random());
    return true;
  }
}
