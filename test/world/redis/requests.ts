import { RedisError } from './reply.js';

const MAX_WORDS = 1 << 20;
const MAX_WORD = 512 << 20;

/** Cuts the bytes of one connection into commands: arrays of bulk strings, or lines as a person types them. */
export class Requests {
  #bytes = '';

  /** The commands that are complete now. Throws `RedisError` when the bytes are no commands: the connection ends then. */
  *take(chunk: Buffer): Generator<string[]> {
    this.#bytes += chunk.toString('latin1');
    for (let at = 0; ;) {
      const read = this.#bytes[at] === '*' ? this.#readArray(at) : this.#readLine(at);
      if (read === null) {
        this.#bytes = this.#bytes.slice(at);
        return;
      }
      at = read.end;
      if (read.words.length > 0) yield read.words;
    }
  }

  #readArray(start: number): { readonly words: string[]; readonly end: number } | null {
    const bytes = this.#bytes;
    let at = start + 1;
    /** A length, and the end of its line; `null`: it is not all there yet. */
    const length = (most: number, name: string): number | null => {
      const end = bytes.indexOf('\r\n', at);
      if (end < 0) return null;
      const value = Number(bytes.slice(at, end));
      if (end === at || !Number.isInteger(value) || value < 0 || value > most)
        throw new RedisError(`ERR Protocol error: invalid ${name} length`);
      at = end + 2;
      return value;
    };
    const count = length(MAX_WORDS, 'multibulk');
    if (count === null) return null;
    const words: string[] = [];
    while (words.length < count) {
      if (at >= bytes.length) return null;
      if (bytes[at] !== '$') throw new RedisError(`ERR Protocol error: expected '$', got '${bytes[at] ?? ''}'`);
      at += 1;
      const size = length(MAX_WORD, 'bulk');
      if (size === null || bytes.length < at + size + 2) return null;
      words.push(bytes.slice(at, at + size));
      at += size + 2;
    }
    return { words, end: at };
  }

  #readLine(start: number): { readonly words: string[]; readonly end: number } | null {
    const end = this.#bytes.indexOf('\n', start);
    if (end < 0) return null;
    return { words: splitLine(this.#bytes.slice(start, end)), end: end + 1 };
  }
}

const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' };

/** The words of a line; one in double quotes may have escapes, such as `\x00`. */
function splitLine(line: string): string[] {
  const words: string[] = [];
  for (const [word, double, single] of line.trim().matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|\S+/g)) {
    if (double !== undefined)
      words.push(
        double.replace(/\\(?:x([0-9a-fA-F]{2})|(.))/g, (_all, hex: string | undefined, letter: string) =>
          hex === undefined ? (ESCAPED[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
        ),
      );
    else words.push(single === undefined ? word : single.replaceAll("\\'", "'"));
  }
  return words;
}
