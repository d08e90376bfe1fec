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

  /** All of it, once. */
  take(): readonly EarlyPiece[] {
    return this.#pieces.splice(0);
  }
}
