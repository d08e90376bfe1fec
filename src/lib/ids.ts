import { randomBytes, randomUUID } from 'node:crypto';

/** UUID v4 text: 36 characters, lower-case hex. */
export function newUuid(): string {
  return randomUUID();
}

/** URL-safe random text with 6 bits a character. */
export function newToken(characters: number): string {
  return randomBytes(Math.ceil((characters * 3) / 4))
    .toString('base64url')
    .slice(0, characters);
}
