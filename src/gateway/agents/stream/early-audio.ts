import type { AudioPacket } from '../../../rtp/audio-packet.js';
import { MAX_SRTP_PACKET_BYTES } from '../../../srtp/srtp.js';
import type { Uplink } from './uplink.js';

/** How much longer than audio the ACK may be under way, through proxies. */
const MAX_AGE_MS = 200;
/** In packets of 10 ms. */
const MAX_PACKETS = 20;

/** Holds the caller's audio until the ACK arrives: RTP often overtakes it. */
export class EarlyAudio {
  readonly #packets: AudioPacket[] = [];

  hear(packet: AudioPacket): void {
    const { buffer, offset, lengthBytes } = packet;
    if (lengthBytes > MAX_SRTP_PACKET_BYTES) return;
    this.#packets.push({ ...packet, buffer: Uint8Array.prototype.slice.call(buffer, offset, offset + lengthBytes), offset: 0 });
    if (this.#packets.length > MAX_PACKETS) this.#packets.shift();
  }

  /** Gives the latest of it on, as it came. */
  giveTo(uplink: Uplink, nowMs: number): void {
    for (const packet of this.#packets.splice(0)) if (nowMs - packet.nowMs <= MAX_AGE_MS) uplink.hear(packet);
  }
}
