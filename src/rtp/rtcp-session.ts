import { middle32, ntpFromUnixMs, roundTripMs } from './ntp.js';
import { parseRtcpCompound, writeRtcpCompound, type ReportBlock, type SenderInfo } from './rtcp-packet.js';
import type { ReceptionFigures } from './reception-statistics.js';

/** What a report says of the own stream. */
export interface SentFigures {
  readonly ssrc: number;
  /** RTP packets and payload bytes so far. */
  readonly packets: number;
  readonly octets: number;
  /** The RTP timestamp of the instant at which the report is made. */
  readonly rtpTimestampNow: number;
}

/** What a report says of the peer's stream. */
export interface ReceivedFigures {
  readonly ssrc: number;
  readonly figures: ReceptionFigures;
}

/** What a peer hears of our stream. */
export interface PeerReport {
  /** Since its report before, 0 to 1. */
  readonly lossRate: number;
  readonly jitterTicks: number;
}

interface LastSenderReport {
  readonly ssrc: number;
  readonly middle32: number;
  readonly arrivalMs: number;
}

/** The RTCP side of one leg: builds its reports with real figures, and reads the peer's. */
export class RtcpSession {
  #lastSenderReport: LastSenderReport | undefined;
  #packetsAtLastReport = 0;
  #roundTripMs: number | null = null;
  #peerLost: number | null = null;
  #peerSaidBye = false;
  #peerReport: PeerReport | null = null;

  /** @param cname one name a leg; RFC 7022 wants it random */
  constructor(private readonly cname: string) {}

  /** The last round trip that a report told, in milliseconds. */
  get roundTripMs(): number | null {
    return this.#roundTripMs;
  }

  /** Packets of ours that the peer misses; `null`: no report came. */
  get peerLostPackets(): number | null {
    return this.#peerLost;
  }

  /** What the peer's last report block says of our stream; `null`: none came since it was taken the last time. */
  takePeerReport(): PeerReport | null {
    const report = this.#peerReport;
    this.#peerReport = null;
    return report;
  }

  get peerSaidBye(): boolean {
    return this.#peerSaidBye;
  }

  /**
   * Writes a compound packet at the start of `target` (512 bytes) and returns its length. It begins with SR when RTP went out since
   * the last report, else with RR (RFC 3550 §6.4).
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

  /** Takes in a compound packet of the peer; false when it is none. `ownSsrc` tells which report blocks are about us. */
  read(bytes: Uint8Array, ownSsrc: number, nowMs: number, wallMs: number): boolean {
    const parsed = parseRtcpCompound(bytes);
    if (!parsed.ok) return false;
    for (const packet of parsed.value) {
      if (packet.type === 'BYE') this.#peerSaidBye = true;
      if (packet.type !== 'SR' && packet.type !== 'RR') continue;
      if (packet.type === 'SR') {
        this.#lastSenderReport = { ssrc: packet.ssrc, middle32: middle32(packet.sender.ntp), arrivalMs: nowMs };
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
