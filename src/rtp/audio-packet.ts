import type { AudioCodec } from './codec/g711.js';

/**
 * One packet of the caller's audio as it came: late, duplicated, out of order or lost. Who gets it may look at it during the call alone: the
 * next packet is the same object, and its buffer is used again.
 */
export interface AudioPacket {
  readonly codec: AudioCodec;
  readonly ssrc: number;
  readonly rtpTimestamp: number;
  /** G.711 of `codec` in `buffer[offset, offset + lengthBytes)`. */
  readonly buffer: Uint8Array;
  readonly offset: number;
  readonly lengthBytes: number;
  /** Monotonic time of its arrival, in milliseconds. */
  readonly nowMs: number;
}
