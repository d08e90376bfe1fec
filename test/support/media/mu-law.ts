import { mulaw } from 'alawmulaw';
import { voiceLikeNoise } from './audio.js';

const SECOND = 8_000;

/** µ-law unlike any other, without the second zero. */
export function muLawNoise(seconds: number, seed: number): Buffer {
  return Buffer.from(mulaw.encode(voiceLikeNoise(seconds * SECOND, seed))).map((byte) => (byte === 0x7f ? 0xff : byte)) as Buffer;
}

/** A file that is played byte for byte. */
export function muLawWav(bytes: Buffer): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(36 + bytes.length, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(7, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(SECOND, 24);
  head.writeUInt32LE(SECOND, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes.length, 40);
  return Buffer.concat([head, bytes]);
}
