/** Raw packets written byte by byte, so that no code under test takes part in making them. */

export interface RawRtp {
  readonly sequenceNumber: number;
  readonly rtpTimestamp?: number;
  readonly ssrc?: number;
  readonly payloadType?: number;
  readonly marker?: boolean;
  readonly payload?: Uint8Array;
}

/** An RTP packet with a 12-byte header (RFC 3550 §5.1). */
export function rtpPacket(fields: RawRtp): Buffer {
  const payload = fields.payload ?? Buffer.alloc(160, fields.sequenceNumber & 0xff);
  const packet = Buffer.alloc(12 + payload.length);
  packet[0] = 0x80;
  packet[1] = (fields.marker === true ? 0x80 : 0) | (fields.payloadType ?? 0);
  packet.writeUInt16BE(fields.sequenceNumber & 0xffff, 2);
  packet.writeUInt32BE((fields.rtpTimestamp ?? fields.sequenceNumber * 160) >>> 0, 4);
  packet.writeUInt32BE((fields.ssrc ?? 0x11223344) >>> 0, 8);
  packet.set(payload, 12);
  return packet;
}

/** An empty receiver report with an SDES CNAME of 4 characters (RFC 3550 §6.4.2, §6.5). */
export function rtcpReceiverReport(ssrc: number): Buffer {
  const packet = Buffer.alloc(8 + 16);
  packet.set([0x80, 201, 0, 1]);
  packet.writeUInt32BE(ssrc >>> 0, 4);
  packet.set([0x81, 202, 0, 3], 8);
  packet.writeUInt32BE(ssrc >>> 0, 12);
  packet.set([1, 4], 16);
  packet.write('name', 18, 'latin1');
  return packet;
}

/** A sender report (RFC 3550 §6.4.1) that claims so many packets from the start, without report blocks. */
export function rtcpSenderReport(ssrc: number, packets: number): Buffer {
  const report = Buffer.alloc(28);
  report.set([0x80, 200, 0, 6]);
  report.writeUInt32BE(ssrc >>> 0, 4);
  report.writeUInt32BE(packets >>> 0, 20);
  report.writeUInt32BE((packets * 160) >>> 0, 24);
  return Buffer.concat([report, rtcpReceiverReport(ssrc).subarray(8)]);
}

/** A telephone-event payload (RFC 4733 §2.3). */
export function telephoneEvent(event: number, durationTicks: number, isEnd = false, volume = 10): Buffer {
  const payload = Buffer.alloc(4);
  payload[0] = event;
  payload[1] = (isEnd ? 0x80 : 0) | volume;
  payload.writeUInt16BE(durationTicks, 2);
  return payload;
}
