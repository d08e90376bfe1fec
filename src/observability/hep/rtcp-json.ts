import { parseRtcpCompound, type ReportBlock, type RtcpPacket } from '../../rtp/rtcp-packet.js';

type Report = Extract<RtcpPacket, { type: 'SR' | 'RR' }>;
type Description = Extract<RtcpPacket, { type: 'SDES' }>;

const PACKET_TYPES = { SR: 200, RR: 201 } as const;
const CNAME = 1;

/**
 * A compound packet as JSON for Homer; `null` if it is invalid. No standard exists: the names are those of rtpengine, captagent and
 * Asterisk. Figures are as on the wire: loss in 1/256, jitter in timestamp units, LSR and DLSR in 1/65,536 s, and `ntp_timestamp_usec`,
 * the fraction, in 1/2^32 s.
 */
export function rtcpJson(packet: Uint8Array): string | null {
  const parsed = parseRtcpCompound(packet);
  if (!parsed.ok) return null;
  const reports = parsed.value.filter((one): one is Report => one.type === 'SR' || one.type === 'RR');
  // RFC 3550 §6.1: a compound packet begins with one; further ones only add blocks.
  const [first] = reports;
  if (first === undefined) return null;
  const blocks = reports.flatMap((report) => report.blocks);
  const chunks = parsed.value.filter((one): one is Description => one.type === 'SDES').flatMap((one) => one.chunks);
  return JSON.stringify({
    ...(first.type === 'SR' ? { sender_information: senderOf(first) } : {}),
    ssrc: first.ssrc,
    type: PACKET_TYPES[first.type],
    report_count: blocks.length,
    report_blocks: blocks.map(blockOf),
    sdes_report_count: chunks.length,
    sdes_information: chunks.map(({ ssrc, cname }) => ({ sdes_chunk_ssrc: ssrc, type: CNAME, text: cname ?? '' })),
  });
}

function senderOf({ sender }: Extract<Report, { type: 'SR' }>): object {
  return {
    ntp_timestamp_sec: sender.ntp.seconds,
    ntp_timestamp_usec: sender.ntp.fraction,
    octets: sender.octets,
    rtp_timestamp: sender.rtpTimestamp,
    packets: sender.packets,
  };
}

function blockOf(block: ReportBlock): object {
  return {
    source_ssrc: block.ssrc,
    highest_seq_no: block.extendedHighestSequence,
    fraction_lost: block.fractionLost,
    ia_jitter: block.jitterTicks,
    packets_lost: block.cumulativeLost,
    lsr: block.lastSenderReport,
    dlsr: block.delaySinceLastSenderReport,
  };
}
