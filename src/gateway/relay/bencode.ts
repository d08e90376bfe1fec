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

class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  get isAtEnd(): boolean {
    return this.#at === this.text.length;
  }

  read(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new Error('bencode that is nested too deeply');
    switch (this.text.charAt(this.#at)) {
      case 'i':
        this.#at += 1;
        return this.#number('e');
      case 'l':
        return this.#list(depth);
      case 'd':
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

  #dictionary(depth: number): Record<string, unknown> {
    // Names come from the network.
    const entries = Object.create(null) as Record<string, unknown>;
    this.#at += 1;
    while (!this.#ends()) {
      const name = this.#string();
      entries[name] = this.read(depth + 1);
    }
    return entries;
  }

  #ends(): boolean {
    if (this.text.charAt(this.#at) !== 'e') return false;
    this.#at += 1;
    return true;
  }

  #string(): string {
    const length = this.#number(':');
    const end = this.#at + length;
    if (length < 0 || end > this.text.length) throw new Error('bencode that ends within a string');
    const bytes = this.text.slice(this.#at, end);
    this.#at = end;
    return ASCII.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString();
  }

  #number(closing: string): number {
    const end = this.text.indexOf(closing, this.#at);
    const digits = this.text.slice(this.#at, end);
    if (end < 0 || !NUMBER.test(digits)) throw new Error('bencode without a number where one is due');
    this.#at = end + 1;
    return Number(digits);
  }
}

// eslint-disable-next-line no-control-regex -- ASCII begins there
const ASCII = /^[\x00-\x7f]*$/;
const NUMBER = /^-?\d{1,20}$/;
