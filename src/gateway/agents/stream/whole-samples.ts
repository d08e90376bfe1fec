import type { WireFormat } from './wire-format.js';

/** Cuts an agent's audio in a linear format into whole samples: its messages may end within one. */
export class WholeSamples {
  #oddByte: number | null = null;

  of(format: WireFormat, bytes: Uint8Array): Uint8Array {
    if (format === 'pcmu' || format === 'pcma') return bytes;
    const joined = this.#oddByte === null ? bytes : Buffer.concat([Uint8Array.of(this.#oddByte), bytes]);
    this.#oddByte = joined.length % 2 === 0 ? null : (joined.at(-1) ?? null);
    return joined;
  }

  /** What follows does not go on with it. */
  reset(): void {
    this.#oddByte = null;
  }
}
