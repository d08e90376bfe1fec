import { err, ok, type Result } from '../lib/result.js';
import type { NtpTimestamp } from './ntp.js';
import type { ReceptionFigures } from './quality.js';
import { byteAt, uint16At, uint32At, writeUint16, writeUint32 } from './rtp-packet.js';

const SR = 200;
const RR = 201;
const SDES = 202;
const BYE = 203;
const CNAME = 1;
const MAX_REPORT_BLOCKS = 31;
const HEADER_BYTES = 4;
const BLOCK_BYTES = 24;

/** RFC 3550 §6.4.1. */
export interface SenderInfo {
  readonly ntp: NtpTimestamp;
  readonly rtpTimestamp: number;
  readonly packets: number;
  readonly octets: number;
}

/** RFC 3550 §6.4.1. LSR and DLSR are in units of 1/65,536 s. */
export interface ReportBlock extends ReceptionFigures {
  readonly ssrc: number;
  readonly lastSenderReport: number;
  readonly delaySinceLastSenderReport: number;
}

export type RtcpPacket =
  | { readonly type: 'SR'; readonly ssrc: number; readonly sender: SenderInfo; readonly blocks: readonly ReportBlock[] }
  | { readonly type: 'RR'; readonly ssrc: number; readonly blocks: readonly ReportBlock[] }
  | { readonly type: 'SDES'; readonly chunks: readonly { readonly ssrc: number; readonly cname: string | null }[] }
  | { readonly type: 'BYE'; readonly ssrcs: readonly number[] }
  /** APP, feedback, extended reports: skipped. */
  | { readonly type: 'other'; readonly packetType: number };

export type RtcpError = 'not-rtcp' | 'wrong-length' | 'not-compound';

/** A report to send: SR with `sender`, else RR; then SDES with the CNAME; then BYE on request (RFC 3550 §6.1). */
export interface CompoundReport {
  readonly ssrc: number;
  readonly sender: SenderInfo | null;
  readonly blocks: readonly ReportBlock[];
  /** At most 255 bytes of UTF-8. */
  readonly cname: string;
  readonly isBye: boolean;
}

/** Writes a compound packet at the start of `target` and returns its length. `target` needs 512 bytes for up to 8 blocks. */
export function writeRtcpCompound(target: Uint8Array, report: CompoundReport): number {
  let offset = writeReport(target, report);
  offset = writeSdes(target, offset, report.ssrc, report.cname);
  if (!report.isBye) return offset;
  writeHeader(target, offset, 1, BYE, 8);
  writeUint32(target, offset + HEADER_BYTES, report.ssrc);
  return offset + 8;
}

function writeHeader(target: Uint8Array, offset: number, count: number, packetType: number, lengthBytes: number): void {
  target[offset] = 0x80 | count;
  target[offset + 1] = packetType;
  // RFC 3550 §6.4.1: in 32-bit words, minus one.
  writeUint16(target, offset + 2, lengthBytes / 4 - 1);
}

function writeReport(target: Uint8Array, report: CompoundReport): number {
  const blocks = report.blocks.slice(0, MAX_REPORT_BLOCKS);
  let offset = HEADER_BYTES + 4;
  if (report.sender !== null) {
    writeUint32(target, offset, report.sender.ntp.seconds);
    writeUint32(target, offset + 4, report.sender.ntp.fraction);
    writeUint32(target, offset + 8, report.sender.rtpTimestamp);
    writeUint32(target, offset + 12, report.sender.packets);
    writeUint32(target, offset + 16, report.sender.octets);
    offset += 20;
  }
  for (const block of blocks) {
    writeUint32(target, offset, block.ssrc);
    writeUint32(target, offset + 4, ((block.fractionLost & 0xff) << 24) | (block.cumulativeLost & 0xffffff));
    writeUint32(target, offset + 8, block.extendedHighestSequence);
    writeUint32(target, offset + 12, block.jitterTicks);
    writeUint32(target, offset + 16, block.lastSenderReport);
    writeUint32(target, offset + 20, block.delaySinceLastSenderReport);
    offset += BLOCK_BYTES;
  }
  writeHeader(target, 0, blocks.length, report.sender === null ? RR : SR, offset);
  writeUint32(target, HEADER_BYTES, report.ssrc);
  return offset;
}

function writeSdes(target: Uint8Array, start: number, ssrc: number, cname: string): number {
  const text = new TextEncoder().encode(cname).subarray(0, 255);
  // RFC 3550 §6.5: a chunk ends with at least one null, up to a 32-bit boundary.
  const lengthBytes = 4 * Math.ceil((HEADER_BYTES + 4 + 2 + text.length + 1) / 4);
  target.fill(0, start, start + lengthBytes);
  writeHeader(target, start, 1, SDES, lengthBytes);
  writeUint32(target, start + 4, ssrc);
  target[start + 8] = CNAME;
  target[start + 9] = text.length;
  target.set(text, start + 10);
  return start + lengthBytes;
}

/** Reads a compound packet with the checks of RFC 3550 A.2: it begins with SR or RR, and the lengths fill it exactly. */
export function parseRtcpCompound(bytes: Uint8Array): Result<readonly RtcpPacket[], RtcpError> {
  if (bytes.length < 8 || byteAt(bytes, 0) >> 6 !== 2) return err('not-rtcp');
  const firstType = byteAt(bytes, 1);
  if ((firstType !== SR && firstType !== RR) || (byteAt(bytes, 0) & 0x20) !== 0) return err('not-compound');
  const packets: RtcpPacket[] = [];
  for (let offset = 0; offset < bytes.length;) {
    if (offset + HEADER_BYTES > bytes.length || byteAt(bytes, offset) >> 6 !== 2) return err('wrong-length');
    const end = offset + 4 * (uint16At(bytes, offset + 2) + 1);
    if (end > bytes.length) return err('wrong-length');
    const packet = parsePacket(bytes.subarray(offset, end));
    if (packet === undefined) return err('wrong-length');
    packets.push(packet);
    offset = end;
  }
  return ok(packets);
}

function parsePacket(bytes: Uint8Array): RtcpPacket | undefined {
  const count = byteAt(bytes, 0) & 0x1f;
  const packetType = byteAt(bytes, 1);
  switch (packetType) {
    case SR: {
      const blocks = parseBlocks(bytes, 28, count);
      return blocks === undefined ? undefined : { type: 'SR', ssrc: uint32At(bytes, 4), sender: parseSenderInfo(bytes), blocks };
    }
    case RR: {
      const blocks = parseBlocks(bytes, 8, count);
      return blocks === undefined ? undefined : { type: 'RR', ssrc: uint32At(bytes, 4), blocks };
    }
    case SDES:
      return { type: 'SDES', chunks: parseSdesChunks(bytes, count) };
    case BYE: {
      if (bytes.length < HEADER_BYTES + 4 * count) return undefined;
      return { type: 'BYE', ssrcs: Array.from({ length: count }, (_, i) => uint32At(bytes, HEADER_BYTES + 4 * i)) };
    }
    default:
      return { type: 'other', packetType };
  }
}

function parseSenderInfo(bytes: Uint8Array): SenderInfo {
  return {
    ntp: { seconds: uint32At(bytes, 8), fraction: uint32At(bytes, 12) },
    rtpTimestamp: uint32At(bytes, 16),
    packets: uint32At(bytes, 20),
    octets: uint32At(bytes, 24),
  };
}

function parseBlocks(bytes: Uint8Array, start: number, count: number): ReportBlock[] | undefined {
  if (bytes.length < start + BLOCK_BYTES * count) return undefined;
  return Array.from({ length: count }, (_, i) => {
    const offset = start + BLOCK_BYTES * i;
    const lost = uint32At(bytes, offset + 4);
    return {
      ssrc: uint32At(bytes, offset),
      fractionLost: lost >>> 24,
      // A 24-bit signed number.
      cumulativeLost: (lost << 8) >> 8,
      extendedHighestSequence: uint32At(bytes, offset + 8),
      jitterTicks: uint32At(bytes, offset + 12),
      lastSenderReport: uint32At(bytes, offset + 16),
      delaySinceLastSenderReport: uint32At(bytes, offset + 20),
    };
  });
}

function parseSdesChunks(bytes: Uint8Array, count: number): { ssrc: number; cname: string | null }[] {
  const chunks: { ssrc: number; cname: string | null }[] = [];
  let offset = HEADER_BYTES;
  for (let i = 0; i < count && offset + 8 <= bytes.length; i += 1) {
    const chunk: { ssrc: number; cname: string | null } = { ssrc: uint32At(bytes, offset), cname: null };
    offset += 4;
    while (offset + 1 < bytes.length && byteAt(bytes, offset) !== 0) {
      const itemEnd = offset + 2 + byteAt(bytes, offset + 1);
      if (byteAt(bytes, offset) === CNAME) chunk.cname = new TextDecoder().decode(bytes.subarray(offset + 2, itemEnd));
      offset = itemEnd;
    }
    // The null that ends the items, and the rest of its word.
    offset = 4 * (Math.floor(offset / 4) + 1);
    chunks.push(chunk);
  }
  return chunks;
}
