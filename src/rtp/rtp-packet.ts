export const RTP_HEADER_BYTES = 12;

/** The fields of one RTP packet, read in place: one object serves all packets of a leg. */
export class RtpView {
  marker = false;
  payloadType = 0;
  sequenceNumber = 0;
  rtpTimestamp = 0;
  ssrc = 0;
  /** Where the payload lies in the parsed buffer. */
  payloadOffset = 0;
  payloadBytes = 0;

  /**
   * Reads `buffer[0, lengthBytes)`; skips extensions. False if it is no RTP packet (RFC 3550 §5.1, A.1): another version, or a CSRC list,
   * extension or padding that does not fit. The fields are then undefined.
   */
  parse(buffer: Uint8Array, lengthBytes: number): boolean {
    if (lengthBytes < RTP_HEADER_BYTES || lengthBytes > buffer.length) return false;
    const first = byteAt(buffer, 0);
    if (first >> 6 !== 2) return false;
    let start = RTP_HEADER_BYTES + 4 * (first & 0x0f);
    if ((first & 0x10) !== 0) {
      if (start + 4 > lengthBytes) return false;
      start += 4 + 4 * uint16At(buffer, start + 2);
    }
    let end = lengthBytes;
    if ((first & 0x20) !== 0) {
      const paddingBytes = byteAt(buffer, lengthBytes - 1);
      if (paddingBytes === 0) return false;
      end -= paddingBytes;
    }
    if (start > end) return false;
    const second = byteAt(buffer, 1);
    this.marker = (second & 0x80) !== 0;
    this.payloadType = second & 0x7f;
    this.sequenceNumber = uint16At(buffer, 2);
    this.rtpTimestamp = uint32At(buffer, 4);
    this.ssrc = uint32At(buffer, 8);
    this.payloadOffset = start;
    this.payloadBytes = end - start;
    return true;
  }
}

export interface RtpHeader {
  readonly marker: boolean;
  readonly payloadType: number;
  readonly sequenceNumber: number;
  readonly rtpTimestamp: number;
  readonly ssrc: number;
}

/** Writes a header of 12 bytes, without CSRCs, extension and padding, at the start of `target`. */
export function writeRtpHeader(target: Uint8Array, header: RtpHeader): void {
  target[0] = 0x80;
  target[1] = (header.marker ? 0x80 : 0) | (header.payloadType & 0x7f);
  writeUint16(target, 2, header.sequenceNumber);
  writeUint32(target, 4, header.rtpTimestamp);
  writeUint32(target, 8, header.ssrc);
}

/** Big-endian access without a DataView, which would be one allocation per packet. */
export function byteAt(buffer: Uint8Array, offset: number): number {
  return buffer[offset] ?? 0;
}

export function uint16At(buffer: Uint8Array, offset: number): number {
  return (byteAt(buffer, offset) << 8) | byteAt(buffer, offset + 1);
}

export function uint32At(buffer: Uint8Array, offset: number): number {
  return ((uint16At(buffer, offset) << 16) | uint16At(buffer, offset + 2)) >>> 0;
}

export function writeUint16(target: Uint8Array, offset: number, value: number): void {
  target[offset] = value >>> 8;
  target[offset + 1] = value;
}

export function writeUint32(target: Uint8Array, offset: number, value: number): void {
  writeUint16(target, offset, value >>> 16);
  writeUint16(target, offset + 2, value);
}

/** How far `later` is ahead of `earlier` in 16-bit serial number arithmetic (RFC 1982): -32,768 to 32,767. */
export function sequenceDelta(later: number, earlier: number): number {
  return ((later - earlier) << 16) >> 16;
}

/** How far `later` is ahead of `earlier` in 32-bit serial number arithmetic, for RTP timestamps: -2^31 to 2^31 - 1. */
export function timestampDelta(later: number, earlier: number): number {
  return (later - earlier) | 0;
}

/** The next 16-bit sequence number. */
export function nextSequence(sequenceNumber: number): number {
  return (sequenceNumber + 1) & 0xffff;
}

/** An RTP timestamp plus `ticks`, modulo 2^32. */
export function addTicks(rtpTimestamp: number, ticks: number): number {
  return (rtpTimestamp + ticks) >>> 0;
}
