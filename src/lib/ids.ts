import { randomBytes, randomUUID } from 'node:crypto';

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
