import { type AudioCodec, decodeG711, encodeG711, silenceByte, BYTES_PER_MS, FRAME_BYTES, FRAME_MS } from './codec/g711.js';
import { addTicks, timestampDelta } from './rtp-packet.js';

export interface ReorderBufferFigures {
  /** Packets that arrived after their time had been concealed. */
  readonly latePackets: number;
  readonly duplicatePackets: number;
  /** Bytes concealed because no packet had arrived. */
  readonly concealedBytes: number;
  /** Restarts: another SSRC, a timestamp jump, a lasting change of delay. */
  readonly restarts: number;
}

/** G.711 in order, without gaps. Valid during the call only. */
export type OnAudio = (buffer: Uint8Array, offset: number, lengthBytes: number) => void;

interface HeldPacket {
  readonly rtpTimestamp: number;
  readonly arrivalMs: number;
  readonly bytes: Uint8Array;
}

const MIN_WAIT_MS = 40;
const MAX_WAIT_MS = 200;
/** Wait beyond the delay of the latest packet. */
const WAIT_MARGIN_MS = 10;
/** Packets in order after which the wait shrinks: 10 s of 20 ms packets. */
const CALM_PACKETS = 500;
const CALMER = 0.9;
/** Late packets in a row that mean a lasting change of delay. */
const LATE_PACKETS = 3;
const MAX_HELD = 32;
/** A packet that ends further ahead, or lies as far behind, is a timestamp jump: everything held lies within this. */
const MAX_AHEAD_BYTES = 500 * BYTES_PER_MS;
const MAX_BEHIND_BYTES = 1_000 * BYTES_PER_MS;
/** A tick this long after the previous one was late itself: packets of that time wait in the socket and are read before the next tick. */
const STALL_MS = 2 * FRAME_MS;
/** Silence that long is not made up for: the leg was held. */
const MAX_SILENCE_BEHIND_MS = 1_000;
/** Concealment repeats the last frame, fainter each time, then sends silence. */
const CONCEAL_GAINS = [1, 0.66, 0.33];

/**
 * Orders the caller's packets for a listener that needs order and completeness but no even pace: the next packet passes at once, without
 * delay. Only when one is missing do later ones wait, as long as packets were late recently (40 to 200 ms); then the gap is concealed.
 * While no packet arrives, silence passes in real time.
 *
 * The source's clock drives the listener: drift between source and machine adds and drops nothing.
 */
export class ReorderBuffer {
  readonly #last = new Uint8Array(FRAME_BYTES);
  readonly #concealed = new Uint8Array(FRAME_BYTES);
  readonly #samples = new Int16Array(FRAME_BYTES);
  readonly #held: HeldPacket[] = [];
  #ssrc: number | undefined;
  #nextTimestamp = 0;
  /** When the next byte is expected. */
  #dueMs = 0;
  #tickedMs = Infinity;
  #stalledMs = -Infinity;
  #waitMs = MIN_WAIT_MS;
  #calm = 0;
  #lateRun = 0;
  /** Frames concealed since the last packet. */
  #concealedRun = CONCEAL_GAINS.length;
  /** The last concealed gap: its first byte, and the one after its last. */
  #gapTimestamp = 0;
  #gapEndTimestamp = 0;
  /** One after the newest byte received. */
  #newestTimestamp = 0;
  #figures = { latePackets: 0, duplicatePackets: 0, concealedBytes: 0, restarts: 0 };

  /** @param codec of all packets */
  constructor(
    private readonly codec: AudioCodec,
    private readonly onAudio: OnAudio,
  ) {}

  get figures(): ReorderBufferFigures {
    return { ...this.#figures };
  }

  /** Audio that waits for earlier packets, 500 ms at most; overlapping packets count once. */
  get heldMs(): number {
    let [bytes, end] = [0, 0];
    for (const { rtpTimestamp, bytes: held } of this.#held) {
      const ahead = timestampDelta(rtpTimestamp, this.#nextTimestamp);
      bytes += Math.max(0, ahead + held.length - Math.max(end, ahead));
      end = Math.max(end, ahead + held.length);
    }
    return bytes / BYTES_PER_MS;
  }

  /** How long the buffer waits for a missing packet now. */
  get waitMs(): number {
    return this.#waitMs;
  }

  /** From now on silence fills the time without packets. */
  start(nowMs: number): void {
    this.#dueMs = nowMs + FRAME_MS;
  }

  /** Takes the payload of one packet, `buffer[offset, offset + lengthBytes)`. */
  push(ssrc: number, rtpTimestamp: number, buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): void {
    if (ssrc !== this.#ssrc) this.#begin(ssrc, rtpTimestamp, nowMs);
    const ahead = timestampDelta(rtpTimestamp, this.#nextTimestamp);
    if (ahead === 0) return this.#takeNext(buffer, offset, lengthBytes, nowMs);
    // After silence new audio needs no repair, wherever the source's timestamp is now.
    const isAwaited = this.#concealedRun >= CONCEAL_GAINS.length && timestampDelta(rtpTimestamp, this.#newestTimestamp) >= 0;
    if (ahead + lengthBytes > MAX_AHEAD_BYTES || ahead < -MAX_BEHIND_BYTES || isAwaited) {
      if (!isAwaited) this.#figures.restarts += 1;
      this.#begin(ssrc, rtpTimestamp, nowMs);
      return this.#takeNext(buffer, offset, lengthBytes, nowMs);
    }
    if (ahead > 0) return this.#hold(rtpTimestamp, buffer.slice(offset, offset + lengthBytes), nowMs);
    if (ahead + lengthBytes > 0) return this.#takeNext(buffer, offset - ahead, lengthBytes + ahead, nowMs);
    this.#late(rtpTimestamp, ahead, buffer, offset, lengthBytes, nowMs);
  }

  /**
   * Call each 20 ms: conceals what the buffer has waited for long enough. Returns the frames left out because it was not called for more
   * than a second.
   */
  tick(nowMs: number): number {
    if (nowMs - this.#tickedMs > STALL_MS) this.#stalledMs = nowMs;
    this.#tickedMs = nowMs;
    // The ticks held back by a stall come all at once.
    if (nowMs === this.#stalledMs) return 0;
    const [oldest] = this.#held;
    if (oldest !== undefined) {
      if (nowMs - oldest.arrivalMs < this.#waitMs) return 0;
      this.#conceal(timestampDelta(oldest.rtpTimestamp, this.#nextTimestamp));
      this.#dueMs = nowMs;
      this.#drain(nowMs);
      return 0;
    }
    const skipped = nowMs - this.#dueMs > MAX_SILENCE_BEHIND_MS ? Math.floor((nowMs - this.#dueMs) / FRAME_MS) : 0;
    if (skipped > 0) this.#concealedRun = CONCEAL_GAINS.length;
    this.#dueMs += skipped * FRAME_MS;
    // More than one after a stall of this process.
    while (nowMs >= this.#dueMs + this.#waitMs) {
      this.#conceal(FRAME_BYTES);
      this.#dueMs += FRAME_MS;
    }
    return skipped;
  }

  #begin(ssrc: number, rtpTimestamp: number, nowMs: number): void {
    if (this.#ssrc !== undefined && this.#ssrc !== ssrc) this.#figures.restarts += 1;
    this.#ssrc = ssrc;
    this.#nextTimestamp = rtpTimestamp;
    this.#newestTimestamp = rtpTimestamp;
    this.#held.length = 0;
    this.#lateRun = 0;
    this.#dueMs = nowMs;
  }

  #takeNext(buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): void {
    this.#lateRun = 0;
    this.#calm += 1;
    if (this.#calm >= CALM_PACKETS) {
      this.#calm = 0;
      this.#waitMs = Math.max(MIN_WAIT_MS, this.#waitMs * CALMER);
    }
    this.#emit(buffer, offset, lengthBytes);
    this.#dueMs = nowMs + lengthBytes / BYTES_PER_MS;
    if (this.#held.length > 0) this.#drain(nowMs);
  }

  /** Passes on the next of the held packets; those behind the position now were duplicates. */
  #drain(nowMs: number): void {
    for (let oldest = this.#held[0]; oldest !== undefined; oldest = this.#held[0]) {
      const ahead = timestampDelta(oldest.rtpTimestamp, this.#nextTimestamp);
      if (ahead > 0) return;
      this.#held.shift();
      if (ahead + oldest.bytes.length <= 0) continue;
      this.#emit(oldest.bytes, -ahead, oldest.bytes.length + ahead);
      this.#dueMs = Math.max(nowMs, oldest.arrivalMs + oldest.bytes.length / BYTES_PER_MS);
    }
  }

  #hold(rtpTimestamp: number, bytes: Uint8Array, arrivalMs: number): void {
    const place = this.#held.findIndex((held) => timestampDelta(held.rtpTimestamp, rtpTimestamp) >= 0);
    if (this.#held[place]?.rtpTimestamp === rtpTimestamp) {
      this.#figures.duplicatePackets += 1;
      return;
    }
    const end = addTicks(rtpTimestamp, bytes.length);
    if (timestampDelta(end, this.#newestTimestamp) > 0) this.#newestTimestamp = end;
    this.#held.splice(place < 0 ? this.#held.length : place, 0, { rtpTimestamp, arrivalMs, bytes });
    if (this.#held.length <= MAX_HELD) return;
    this.#conceal(timestampDelta(this.#held[0]?.rtpTimestamp ?? rtpTimestamp, this.#nextTimestamp));
    this.#drain(arrivalMs);
  }

  /** Its time has passed: the listener got it already, or a concealment. */
  #late(rtpTimestamp: number, ahead: number, buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): void {
    const lateMs = nowMs - (this.#dueMs + ahead / BYTES_PER_MS);
    const isInGap = timestampDelta(rtpTimestamp, this.#gapTimestamp) >= 0 && timestampDelta(rtpTimestamp, this.#gapEndTimestamp) < 0;
    if (!isInGap) {
      this.#figures.duplicatePackets += 1;
      return;
    }
    this.#figures.latePackets += 1;
    this.#calm = 0;
    this.#waitMs = Math.min(MAX_WAIT_MS, Math.max(this.#waitMs, lateMs + WAIT_MARGIN_MS));
    this.#lateRun += 1;
    if (this.#lateRun < LATE_PACKETS) return;
    this.#figures.restarts += 1;
    this.#begin(this.#ssrc ?? 0, rtpTimestamp, nowMs);
    this.#takeNext(buffer, offset, lengthBytes, nowMs);
  }

  #emit(buffer: Uint8Array, offset: number, lengthBytes: number): void {
    this.#nextTimestamp = addTicks(this.#nextTimestamp, lengthBytes);
    if (timestampDelta(this.#nextTimestamp, this.#newestTimestamp) > 0) this.#newestTimestamp = this.#nextTimestamp;
    this.#concealedRun = 0;
    if (lengthBytes >= FRAME_BYTES) this.#last.set(buffer.subarray(offset + lengthBytes - FRAME_BYTES, offset + lengthBytes));
    else {
      this.#last.copyWithin(0, lengthBytes);
      this.#last.set(buffer.subarray(offset, offset + lengthBytes), FRAME_BYTES - lengthBytes);
    }
    this.onAudio(buffer, offset, lengthBytes);
  }

  #conceal(lengthBytes: number): void {
    this.#figures.concealedBytes += lengthBytes;
    if (this.#nextTimestamp !== this.#gapEndTimestamp) this.#gapTimestamp = this.#nextTimestamp;
    this.#nextTimestamp = addTicks(this.#nextTimestamp, lengthBytes);
    this.#gapEndTimestamp = this.#nextTimestamp;
    for (let left = lengthBytes; left > 0; left -= FRAME_BYTES) {
      this.#makeUp(CONCEAL_GAINS[this.#concealedRun]);
      this.#concealedRun += 1;
      this.onAudio(this.#concealed, 0, Math.min(left, FRAME_BYTES));
    }
  }

  #makeUp(gain: number | undefined): void {
    if (gain === undefined) {
      this.#concealed.fill(silenceByte(this.codec));
      return;
    }
    decodeG711(this.codec, this.#last, this.#samples);
    for (let i = 0; i < FRAME_BYTES; i += 1) this.#samples[i] = (this.#samples[i] ?? 0) * gain;
    encodeG711(this.codec, this.#samples, this.#concealed);
  }
}
