import type { WireFormat } from '../stream/wire-format.js';

const MAX_BYTES = 2 * 1_024 * 1_024;

interface EarlyPiece {
  readonly utterance: string;
  /** `null`: no more audio of it follows. */
  readonly bytes: Uint8Array | null;
  /** `undefined`: that of the provider. */
  readonly format?: WireFormat | undefined;
}

/** What the agent says before the ACK: the caller hears it from there on. */
export class EarlySpeech {
  #pieces: EarlyPiece[] = [];
  #bytes = 0;

  add(piece: EarlyPiece): void {
    this.#bytes += piece.bytes?.length ?? 0;
    if (piece.bytes === null || this.#bytes <= MAX_BYTES) this.#pieces.push(piece);
  }

  /** The session is over, and the next one begins anew: what it said is not heard. @param kept is no utterance of the session */
  sessionEnded(kept: string): void {
    this.#pieces = this.#pieces.filter(({ utterance }) => utterance === kept);
    this.#bytes = this.#pieces.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0);
  }

  /** All of it, once. */
  take(): readonly EarlyPiece[] {
    return this.#pieces.splice(0);
  }
}
