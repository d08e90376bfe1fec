import type { AudioPacket } from '../../rtp/audio-packet.js';
import { decodeG711, encodeG711, FRAME_SAMPLES, G711_CLOCK_RATE_HZ, silenceByte, type AudioCodec } from '../../rtp/codec/g711.js';
import { JitterBuffer } from '../../rtp/jitter-buffer.js';
import { MAX_SRTP_PACKET_BYTES } from '../../srtp/srtp.js';

/** ITU-T E.180: 425 Hz, 1 s of tone and 4 s of pause. */
const TONE_HZ = 425;
const TONE_FRAMES = 50;
const PERIOD_FRAMES = 250;
const AMPLITUDE = 3_000;

// All legs of a thread share these: each is used within one call of a method.
const PACKET = new Int16Array(MAX_SRTP_PACKET_BYTES);
const SAMPLES = new Int16Array(FRAME_SAMPLES);

/** What a caller hears while somebody else's phone rings: early media once a packet of it came, else a tone (RFC 3960 §3.2). */
export class RingBack {
  #frame = 0;
  #earlyMedia: JitterBuffer | null = null;

  /** One packet of early media. */
  hear({ codec, ssrc, rtpTimestamp, buffer, offset, lengthBytes }: AudioPacket): void {
    if (lengthBytes > MAX_SRTP_PACKET_BYTES) return;
    decodeG711(codec, buffer, PACKET, offset, lengthBytes);
    this.#earlyMedia ??= new JitterBuffer();
    this.#earlyMedia.push(ssrc, rtpTimestamp, PACKET.subarray(0, lengthBytes));
  }

  endEarlyMedia(): void {
    this.#earlyMedia = null;
  }

  /** Writes the next frame of 20 ms over one in which nothing is said; what is heard goes on meanwhile. */
  mix(codec: AudioCodec, payload: Uint8Array): void {
    const at = this.#frame % PERIOD_FRAMES;
    this.#frame += 1;
    this.#earlyMedia?.pull(SAMPLES);
    const silence = silenceByte(codec);
    if (payload.some((byte) => byte !== silence)) return;
    if (this.#earlyMedia !== null) return encodeG711(codec, SAMPLES, payload);
    if (at >= TONE_FRAMES) return;
    const first = at * FRAME_SAMPLES;
    for (let index = 0; index < FRAME_SAMPLES; index += 1)
      SAMPLES[index] = AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * (first + index)) / G711_CLOCK_RATE_HZ);
    encodeG711(codec, SAMPLES, payload);
  }
}
