import type { AudioPacket } from '../../src/rtp/audio-packet.js';
import type { AudioCodec } from '../../src/rtp/codec/g711.js';

export function audioPacket(
  codec: AudioCodec,
  ssrc: number,
  rtpTimestamp: number,
  buffer: Uint8Array,
  offset: number,
  lengthBytes: number,
  nowMs = 0,
): AudioPacket {
  return { codec, ssrc, rtpTimestamp, buffer, offset, lengthBytes, nowMs };
}
