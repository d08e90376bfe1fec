import { randomBytes, randomFillSync, randomInt, randomUUID } from 'node:crypto';

/** UUID v4 text: 36 characters, lower-case hex. */
export function newUuid(): string {
  return randomUUID();
}

const serialPrefix = randomUUID().slice(0, 24);
let serial = 0;

/** An id in the form of a UUID that is unique in this process and need not be hard to guess: one addition and no randomness. */
export function nextSerialId(): string {
  serial += 1;
  return serialPrefix + serial.toString(16).padStart(12, '0');
}

/** URL-safe random text with 6 bits a character. */
export function newToken(characters: number): string {
  return randomBytes(Math.ceil((characters * 3) / 4))
    .toString('base64url')
    .slice(0, characters);
}

/** RFC 8866 §5.2: decimal digits, of 48 random bits. Node.js draws randomness for this in blocks. */
export function newSessionId(): string {
  return String(randomInt(2 ** 48 - 1));
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789XZ';
const pool = Buffer.alloc(4_096);
let used = pool.length;

let tagPrefix = '';

/** What every tag of this process begins with from now on. */
export function prefixTags(prefix: string): void {
  tagPrefix = prefix;
}

/** 13 random characters of 6 bits: more than the 32 bits that RFC 3261 §19.3 asks of a tag. Randomness is drawn in blocks. */
export function newTag(): string {
  if (used + 13 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  let tag = tagPrefix;
  for (let index = 0; index < 13; index += 1) tag += ALPHABET.charAt((pool[used + index] ?? 0) & 63);
  used += 13;
  return tag;
}
