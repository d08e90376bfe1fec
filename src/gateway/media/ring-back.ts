import { encodeG711, FRAME_SAMPLES, G711_CLOCK_RATE_HZ, silenceByte, type AudioCodec } from '../../rtp/codec/g711.js';

/** ITU-T E.180: 425 Hz, 1 s of tone and 4 s of pause. */
const TONE_HZ = 425;
const TONE_FRAMES = 50;
const PERIOD_FRAMES = 250;
const AMPLITUDE = 3_000;

const SAMPLES = new Int16Array(FRAME_SAMPLES);

/** The tone that tells a caller that somebody else's phone rings. */
export class RingBack {
  #frame = 0;

  /** Writes the next frame of 20 ms over one in which nothing is said; the tone goes on meanwhile. */
  mix(codec: AudioCodec, payload: Uint8Array): void {
    const at = this.#frame % PERIOD_FRAMES;
    this.#frame += 1;
    const silence = silenceByte(codec);
    if (at >= TONE_FRAMES || payload.some((byte) => byte !== silence)) return;
    const first = at * FRAME_SAMPLES;
    for (let index = 0; index < FRAME_SAMPLES; index += 1)
      SAMPLES[index] = AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * (first + index)) / G711_CLOCK_RATE_HZ);
    encodeG711(codec, SAMPLES, payload);
  }
}
