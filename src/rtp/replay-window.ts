import { sequenceDelta } from './sequence.js';

/** RFC 3711 §3.3.2: at least 64. */
const WINDOW = 64;
/** So many packets in a row, a second of audio: the source itself has begun anew (RFC 3550 A.1 is content with two). */
const RESTART_RUN = 50;

/**
 * Which packets of one source were seen: for a leg on which another process ends SRTP that keeps no replay list, as rtpengine does not.
 * A source that begins anew at an earlier sequence number is believed when nothing of its later ones comes in between, so that whoever
 * plays recorded packets into a call in which the caller speaks is never heard.
 */
export class ReplayWindow {
  readonly #seen = new Int32Array(WINDOW).fill(-1);
  #highest: number | undefined;
  #lastOld = -1;
  #oldRun = 0;

  /** False: the packet was seen before, or is older than what is remembered. */
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
