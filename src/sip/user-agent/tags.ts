import { randomFillSync } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789XZ';
const pool = Buffer.alloc(4_096);
let used = pool.length;

/** 13 random characters of 6 bits: more than the 32 bits that RFC 3261 §19.3 asks of a tag. Randomness is drawn in blocks. */
export function newTag(): string {
  if (used + 13 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  let tag = '';
  for (let index = 0; index < 13; index += 1) tag += ALPHABET.charAt((pool[used + index] ?? 0) & 63);
  used += 13;
  return tag;
}

/** A branch that is unique by itself (RFC 3261 §8.1.1.7). */
export function newBranch(): string {
  return `z9hG4bK${newTag()}`;
}
