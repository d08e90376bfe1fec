// Commands and replies of rtpengine's ng protocol. The codec of rtpengine-client makes a buffer of each string, 70 for one offer, and takes
// four times as long.

/**
 * Strings by their length in UTF-8, keys in any order.
 * @param value of strings, whole numbers, arrays and objects
 */
export function bencode(value: unknown): string {
  if (typeof value === 'string') return stringOf(value);
  if (typeof value === 'number') return `i${String(Math.trunc(value))}e`;
  if (Array.isArray(value)) return `l${value.map((item) => (typeof item === 'string' ? wordOf(item) : bencode(item))).join('')}e`;
  let text = 'd';
  for (const [name, one] of Object.entries(value as object)) text += wordOf(name) + bencode(one);
  return `${text}e`;
}

/** Names and flags are the same few in every command. */
const WORDS = new Map<string, string>();
const MAX_WORDS = 200;

function wordOf(text: string): string {
  const known = WORDS.get(text);
  if (known !== undefined) return known;
  const word = stringOf(text);
  if (WORDS.size < MAX_WORDS) WORDS.set(text, word);
  return word;
}

function stringOf(text: string): string {
  return `${String(Buffer.byteLength(text))}:${text}`;
}

/** Deeper than any reply. */
const MAX_DEPTH = 32;

/**
 * A dictionary, from a byte of a datagram to its end. Throws `Error` when it is not one.
 * @param from place of its first byte
 */
export function bdecode(datagram: Buffer, from: number): Record<string, unknown> {
  // One character a byte, so that lengths are places.
  const reader = new Reader(datagram.toString('latin1', from));
  const value = reader.read(0);
  if (!reader.isAtEnd || typeof value !== 'object' || Array.isArray(value)) throw new Error('not one dictionary in bencode');
  return value as Record<string, unknown>;
}

const COLON = 0x3a;
const MINUS = 0x2d;
const ZERO = 0x30;
const D = 0x64;
const E = 0x65;
const I = 0x69;
const L = 0x6c;
const MAX_DIGITS = 20;

/** Names come from the network: none is inherited. (With objects of `Object.create(null)` V8 takes twice as long.) */
class Entries {
  [name: string]: unknown;
}
Object.setPrototypeOf(Entries.prototype, null);

class Reader {
  #at = 0;
  readonly #isAscii: boolean;

  constructor(private readonly text: string) {
    this.#isAscii = ASCII.test(text);
  }

  get isAtEnd(): boolean {
    return this.#at === this.text.length;
  }

  read(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new Error('bencode that is nested too deeply');
    switch (this.text.charCodeAt(this.#at)) {
      case I:
        this.#at += 1;
        return this.#number(E);
      case L:
        return this.#list(depth);
      case D:
        return this.#dictionary(depth);
      default:
        return this.#string();
    }
  }

  #list(depth: number): unknown[] {
    const items: unknown[] = [];
    this.#at += 1;
    while (!this.#ends()) items.push(this.read(depth + 1));
    return items;
  }

  #dictionary(depth: number): Entries {
    const entries = new Entries();
    this.#at += 1;
    while (!this.#ends()) {
      const name = this.#string();
      entries[name] = this.read(depth + 1);
    }
    return entries;
  }

  #ends(): boolean {
    if (this.text.charCodeAt(this.#at) !== E) return false;
    this.#at += 1;
    return true;
  }

  #string(): string {
    const length = this.#number(COLON);
    const end = this.#at + length;
    if (length < 0 || end > this.text.length) throw new Error('bencode that ends within a string');
    const bytes = this.text.slice(this.#at, end);
    this.#at = end;
    return this.#isAscii || ASCII.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString();
  }

  /** Without a text of its digits: most of a reply is lengths. */
  #number(closing: number): number {
    const isNegative = this.text.charCodeAt(this.#at) === MINUS;
    const first = this.#at + (isNegative ? 1 : 0);
    let value = 0;
    let at = first;
    for (; this.text.charCodeAt(at) !== closing; at += 1) {
      const digit = this.text.charCodeAt(at) - ZERO;
      // NaN behind the end.
      if (!(digit >= 0 && digit <= 9) || at - first >= MAX_DIGITS) throw new Error('bencode without a number where one is due');
      value = 10 * value + digit;
    }
    if (at === first) throw new Error('bencode without a number where one is due');
    this.#at = at + 1;
    return isNegative ? -value : value;
  }
}

// eslint-disable-next-line no-control-regex -- ASCII begins there
const ASCII = /^[\x00-\x7f]*$/;
