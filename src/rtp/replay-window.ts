import { sequenceDelta } from './rtp-packet.js';

/** RFC 3711 §3.3.2: at least 64. */
const WINDOW = 64;
/** Packets in a row, a second of audio, that mean that the source restarted (RFC 3550 A.1 requires two). */
const RESTART_RUN = 50;

/**
 * Remembers which packets of a source arrived, for a leg whose SRTP ends at a process without a replay list, such as rtpengine. A source
 * may restart at an earlier sequence number only if none of its later packets arrives in between, so packets replayed while the caller
 * speaks are never played.
 */
export class ReplayWindow {
  readonly #seen = new Int32Array(WINDOW).fill(-1);
  #highest: number | undefined;
  #lastOld = -1;
  #oldRun = 0;

  /** False: the packet arrived before, or is older than the window. */
  take(sequenceNumber: number): boolean {
    const delta = this.#highest === undefined ? 1 : sequenceDelta(sequenceNumber, this.#highest);
    if (delta <= -WINDOW) return this.#takeOld(sequenceNumber);
    if (delta <= 0 && this.#seen[sequenceNumber % WINDOW] === sequenceNumber) return false;
    if (delta > 0) this.#advance(sequenceNumber);
    this.#seen[sequenceNumber % WINDOW] = sequenceNumber;
    return true;
  }

  #advance(sequenceNumber: number): void {
    this.#highest = sequenceNumber;
    this.#oldRun = 0;
  }

  #takeOld(sequenceNumber: number): boolean {
    this.#oldRun = sequenceNumber === ((this.#lastOld + 1) & 0xffff) ? this.#oldRun + 1 : 1;
    this.#lastOld = sequenceNumber;
    if (this.#oldRun < RESTART_RUN) return false;
    this.#seen.fill(-1);
    this.#seen[sequenceNumber % WINDOW] = sequenceNumber;
    this.#advance(sequenceNumber);
    return true;
  }
}
