import type { AudioPacket } from '../../rtp/audio-packet.js';
import { decodeG711, FRAME_SAMPLES } from '../../rtp/codec/g711.js';
import { AnswererDetector, type AnswererEvent } from '../../rtp/answerer/answerer-detector.js';
import type { LegFork } from './leg-agent.js';

/** A side that sends nothing is silent. */
const MOST_BEHIND_FRAMES = 10;
/** Longer gaps are another stream. */
const MOST_GAP_SAMPLES = 8_000;

/** Finds out who answered a call that we placed, from the packets of its leg. */
export class AnswererWatch implements LegFork {
  readonly #detector = new AnswererDetector();
  readonly #frame = new Int16Array(FRAME_SAMPLES);
  #filled = 0;
  #ssrc: number | null = null;
  #nextTimestamp = 0;
  #heardFrames = 0;
  #sentFrames = 0;

  constructor(private readonly onEvent: (event: AnswererEvent, isDone: boolean) => void) {}

  start(): void {
    // The far side is heard before.
  }

  hear({ codec, ssrc, rtpTimestamp, buffer, offset, lengthBytes }: AudioPacket): void {
    const gap = (rtpTimestamp - this.#nextTimestamp) | 0;
    if (ssrc === this.#ssrc && gap < 0) return;
    if (ssrc === this.#ssrc && gap <= MOST_GAP_SAMPLES) this.#silence(gap);
    this.#ssrc = ssrc;
    this.#nextTimestamp = (rtpTimestamp + lengthBytes) >>> 0;
    for (let at = 0; at < lengthBytes;) {
      const size = Math.min(FRAME_SAMPLES - this.#filled, lengthBytes - at);
      decodeG711(codec, buffer.subarray(offset + at, offset + at + size), this.#frame.subarray(this.#filled, this.#filled + size));
      this.#add(size);
      at += size;
    }
  }

  sent(): void {
    this.#sentFrames += 1;
    if (this.#sentFrames - this.#heardFrames <= MOST_BEHIND_FRAMES) return;
    this.#nextTimestamp = (this.#nextTimestamp + FRAME_SAMPLES) >>> 0;
    this.#silence(FRAME_SAMPLES);
  }

  pass(_nowMs: number, frames: number): void {
    this.#sentFrames += frames;
  }

  close(): void {
    // Holds nothing.
  }

  #silence(samples: number): void {
    for (let rest = samples; rest > 0;) {
      const size = Math.min(FRAME_SAMPLES - this.#filled, rest);
      this.#frame.fill(0, this.#filled, this.#filled + size);
      this.#add(size);
      rest -= size;
    }
  }

  #add(samples: number): void {
    this.#filled += samples;
    if (this.#filled < FRAME_SAMPLES) return;
    this.#filled = 0;
    this.#heardFrames += 1;
    const event = this.#detector.take(this.#frame);
    if (event !== null) this.onEvent(event, this.#detector.isDone);
  }
}
