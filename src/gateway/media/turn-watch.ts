import { type AudioCodec, FRAME_MS, decodeG711 } from '../../rtp/codec/g711.js';

// Turns of a call, by the loudness of both sides: from the end of the caller's speech to the agent's first audio.

/** A sample counts as loud from here on, about -35 dBFS; */
const LOUD = 600;
/** and a frame when at least this part of it is. */
const LOUD_PART = 1 / 4;
/** Every third sample is enough: no voice has a tone that hides between them. */
const LOOKED_AT = 3;
/** Shorter noise of the caller is no speech; */
export const MIN_SPEECH_FRAMES = 5;
/** and a shorter pause of the agent does not end its turn. */
const MIN_PAUSE_FRAMES = 15;
const MAX_TURNS = 500;

const LOUD_BYTES: Readonly<Record<AudioCodec, Uint8Array>> = { PCMU: loudBytes('PCMU'), PCMA: loudBytes('PCMA') };

function loudBytes(codec: AudioCodec): Uint8Array {
  const samples = new Int16Array(256);
  decodeG711(
    codec,
    Uint8Array.from({ length: 256 }, (_, byte) => byte),
    samples,
  );
  return Uint8Array.from(samples, (sample) => (Math.abs(sample) >= LOUD ? 1 : 0));
}

/** Whether a packet of G.711 has speech, as far as its loudness says so. */
export function isLoud(codec: AudioCodec, buffer: Uint8Array, offset: number, length: number): boolean {
  const loud = LOUD_BYTES[codec];
  let count = 0;
  for (let at = offset; at < offset + length; at += LOOKED_AT) count += loud[buffer[at] ?? 0] ?? 0;
  return length > 0 && count >= (LOUD_PART * length) / LOOKED_AT;
}

export class TurnWatch {
  /** From the end of the caller's speech to the agent's first audio, in milliseconds, of each turn. */
  readonly delaysMs: number[] = [];
  /** The agent's first audio, in milliseconds of the endpoint's clock; `null`: none so far. */
  firstAudioMs: number | null = null;
  #speechFrames = 0;
  #speechEndMs = 0;
  #pauseFrames = MIN_PAUSE_FRAMES;

  /** A packet of the caller, as it arrives. */
  heard(codec: AudioCodec, buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): void {
    if (!isLoud(codec, buffer, offset, lengthBytes)) return;
    this.#speechFrames += 1;
    this.#speechEndMs = nowMs;
  }

  /** A frame to the caller. */
  sent(codec: AudioCodec, payload: Uint8Array, nowMs: number): void {
    if (!isLoud(codec, payload, 0, payload.length)) {
      this.#pauseFrames += 1;
      return;
    }
    const isTurn = this.#pauseFrames >= MIN_PAUSE_FRAMES;
    this.#pauseFrames = 0;
    this.firstAudioMs ??= nowMs;
    const isAnswer = isTurn && this.#speechFrames >= MIN_SPEECH_FRAMES && this.delaysMs.length < MAX_TURNS;
    // The caller who still speaks was interrupted, not answered.
    if (isAnswer && nowMs - this.#speechEndMs > FRAME_MS) this.delaysMs.push(Math.round(nowMs - this.#speechEndMs));
    if (isTurn) this.#speechFrames = 0;
  }
}
