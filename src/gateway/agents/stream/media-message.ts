import { FRAME_BYTES } from '../../../rtp/codec/g711.js';

// The message `media`, fifty times a second and call each way: read and written as bytes, since texts and objects cost three times as much.

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
/** Both characters of twelve bits, the first one in the lower byte. */
const PAIRS = Uint16Array.from({ length: 4_096 }, (_, bits) => (ALPHABET[bits >> 6] ?? 0) | ((ALPHABET[bits & 63] ?? 0) << 8));
const NO_CHARACTER = 0xff;
const VALUES = new Uint8Array(256).fill(NO_CHARACTER);
for (const [value, character] of ALPHABET.entries()) VALUES[character] = value;
const PADDING = 0x3d;

/** What a call keeps is encoded by it: a part of Node's pool of buffers would keep 8 kB of the pool alive. */
const ENCODER = new TextEncoder();

const DIGIT_0 = 0x30;
const FRAME_BASE64 = 4 * Math.ceil(FRAME_BYTES / 3);

/** A text whose numbers grow, and keep their places for as long as they have as many digits. */
export class MediaText {
  #text: Uint8Array = new Uint8Array();
  /** Each number is below its limit, and ends here. */
  #sequence = { limit: 0, end: 0 };
  #chunk = { limit: 0, end: 0 };
  #timestamp = { limit: 0, end: 0 };
  #payloadAt = 0;
  #chunks = 0;

  constructor(
    private readonly streamSid: string,
    private readonly track: string,
  ) {}

  /** The next message of its track, with the frame `buffer[offset, offset + 160)`; its bytes are valid until the next one. */
  write(sequence: number, timestampMs: number, buffer: Uint8Array, offset: number): Uint8Array {
    this.#chunks += 1;
    if (sequence >= this.#sequence.limit || this.#chunks >= this.#chunk.limit || timestampMs >= this.#timestamp.limit)
      this.#lay(sequence, timestampMs);
    const text = this.#text;
    writeDigits(text, this.#sequence.end, sequence);
    writeDigits(text, this.#chunk.end, this.#chunks);
    writeDigits(text, this.#timestamp.end, timestampMs);
    writeBase64(buffer, offset, text, this.#payloadAt);
    return text;
  }

  #lay(sequence: number, timestampMs: number): void {
    let head = `{"event":"media","sequenceNumber":"`;
    const place = (number: number, then: string): { limit: number; end: number } => {
      head += String(number);
      const end = head.length;
      head += then;
      return { limit: 10 ** String(number).length, end };
    };
    this.#sequence = place(sequence, `","media":{"track":"${this.track}","chunk":"`);
    this.#chunk = place(this.#chunks, `","timestamp":"`);
    this.#timestamp = place(timestampMs, `","payload":"`);
    this.#payloadAt = head.length;
    this.#text = ENCODER.encode(`${head}${'A'.repeat(FRAME_BASE64)}"},"streamSid":"${this.streamSid}"}`);
  }
}

/** Writes a number so that it ends before `end`, over one with as many digits. */
function writeDigits(text: Uint8Array, end: number, number: number): void {
  let at = end;
  let left = number;
  do {
    at -= 1;
    const tenth = Math.floor(left / 10);
    text[at] = DIGIT_0 + (left - 10 * tenth);
    left = tenth;
  } while (left > 0);
}

/** Writes the frame `source[offset, offset + 160)` in base64 into `target` from `at` on. */
function writeBase64(source: Uint8Array, offset: number, target: Uint8Array, at: number): void {
  const end = offset + FRAME_BYTES - 1;
  let to = at;
  for (let from = offset; from < end; from += 3, to += 4) {
    const bits = ((source[from] ?? 0) << 16) | ((source[from + 1] ?? 0) << 8) | (source[from + 2] ?? 0);
    const first = PAIRS[bits >> 12] ?? 0;
    const second = PAIRS[bits & 0xfff] ?? 0;
    target[to] = first;
    target[to + 1] = first >> 8;
    target[to + 2] = second;
    target[to + 3] = second >> 8;
  }
  // The last of 160 bytes is alone.
  const last = PAIRS[(source[end] ?? 0) << 4] ?? 0;
  target[to] = last;
  target[to + 1] = last >> 8;
  target[to + 2] = PADDING;
  target[to + 3] = PADDING;
}

/** The bytes of base64 in `source[start, end)`, whole and padded; `null`: anything else. */
function readBase64(source: Uint8Array, start: number, end: number): Uint8Array | null {
  if (start === end || (end - start) % 4 !== 0) return null;
  const padding = source[end - 1] !== PADDING ? 0 : source[end - 2] !== PADDING ? 1 : 2;
  const target = Buffer.allocUnsafe(((end - start) / 4) * 3 - padding);
  let to = 0;
  let all = 0;
  for (let from = start; from < end - 4; from += 4, to += 3) {
    const first = VALUES[source[from] ?? 0] ?? 0;
    const second = VALUES[source[from + 1] ?? 0] ?? 0;
    const third = VALUES[source[from + 2] ?? 0] ?? 0;
    const fourth = VALUES[source[from + 3] ?? 0] ?? 0;
    all |= first | second | third | fourth;
    target[to] = (first << 2) | (second >> 4);
    target[to + 1] = (second << 4) | (third >> 2);
    target[to + 2] = (third << 6) | fourth;
  }
  let bits = 0;
  for (let at = end - 4; at < end - padding; at += 1) {
    const value = VALUES[source[at] ?? 0] ?? 0;
    all |= value;
    bits = (bits << 6) | value;
  }
  bits <<= 6 * padding;
  for (let shift = 16; to < target.length; to += 1, shift -= 8) target[to] = bits >> shift;
  return all > 63 ? null : target;
}

/** A payload that no other message has. */
const PROBE = 'dHJ1bmtsaW5l';
/** A bot that writes each message in another way is read as a whole. */
const MAX_FORMS = 3;

/**
 * Reads an agent's `media` messages. A bot writes all of them alike but for the payload: what stands before and behind it is learnt from
 * one, and of the next ones, only the payload is read.
 */
export class MediaReader {
  #head: Uint8Array = new Uint8Array();
  #tail: Uint8Array = new Uint8Array();
  #forms = 0;

  /** The audio of the message in `text[start, end)`; `null`: it is not written like the one that was learnt. */
  read(text: Uint8Array, start: number, end: number): Uint8Array | null {
    const payloadAt = start + this.#head.length;
    const payloadEnd = end - this.#tail.length;
    if (this.#tail.length === 0 || payloadAt >= payloadEnd || !isAt(text, start, this.#head) || !isAt(text, payloadEnd, this.#tail))
      return null;
    return readBase64(text, payloadAt, payloadEnd);
  }

  /** Learns how a message with this payload is written. */
  learn(text: string, payload: string): void {
    if (this.#forms === MAX_FORMS || payload === '') return;
    const at = text.indexOf(`"${payload}"`) + 1;
    if (at === 0) return;
    this.#forms += 1;
    const [head, tail] = [text.slice(0, at), text.slice(at + payload.length)];
    // The same text may stand elsewhere, too.
    const probe = JSON.parse(head + PROBE + tail) as { readonly media?: { readonly payload?: unknown } };
    if (probe.media?.payload !== PROBE) return;
    this.#head = ENCODER.encode(head);
    this.#tail = ENCODER.encode(tail);
  }
}

function isAt(text: Uint8Array, at: number, part: Uint8Array): boolean {
  for (let i = 0; i < part.length; i += 1) if (text[at + i] !== part[i]) return false;
  return true;
}
