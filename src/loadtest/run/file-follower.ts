import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK = 1 << 18;

/** Reads what a program appends to a file, which need not be there yet. */
export class FileFollower {
  #file: number | undefined;
  #isClosed = false;
  #rest = '';
  readonly #buffer = Buffer.allocUnsafe(CHUNK);

  constructor(private readonly path: string) {}

  /** What is new, one character a byte. */
  text(): string {
    if (this.#isClosed) return '';
    if (this.#file === undefined) {
      try {
        this.#file = openSync(this.path, 'r');
      } catch {
        return '';
      }
    }
    const parts: string[] = [];
    for (;;) {
      const read = readSync(this.#file, this.#buffer, 0, CHUNK, null);
      if (read > 0) parts.push(this.#buffer.toString('latin1', 0, read));
      if (read < CHUNK) return parts.join('');
    }
  }

  /** The lines that are whole. */
  lines(): string[] {
    const lines = (this.#rest + this.text()).split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }

  close(): void {
    if (this.#file !== undefined && !this.#isClosed) closeSync(this.#file);
    this.#isClosed = true;
  }
}
