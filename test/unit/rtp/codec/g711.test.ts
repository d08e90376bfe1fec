import { alaw, mulaw } from 'alawmulaw';
import { describe, expect, it } from 'vitest';
import {
  decodeG711,
  encodeG711,
  isQuietG711,
  payloadTypeOf,
  silenceByte,
  throughG711,
  transcodeG711,
} from '../../../../src/rtp/codec/g711.js';

const ALL_SAMPLES = Int16Array.from({ length: 65_536 }, (_, i) => i - 32_768);
const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i);

describe('G.711', () => {
  it.each([
    ['PCMU', mulaw],
    ['PCMA', alaw],
  ] as const)(
    '[G.711] %s encodes all 65,536 samples and decodes all 256 codes as an independent implementation does',
    (codec, reference) => {
      const encoded = new Uint8Array(65_536);
      encodeG711(codec, ALL_SAMPLES, encoded);
      const decoded = new Int16Array(256);
      decodeG711(codec, ALL_BYTES, decoded);
      expect(Buffer.compare(encoded, reference.encode(ALL_SAMPLES))).toBe(0);
      expect(decoded).toEqual(reference.decode(ALL_BYTES));
    },
  );

  it('has the well-known silence codes 0xff and 0xd5', () => {
    expect(silenceByte('PCMU')).toBe(0xff);
    expect(silenceByte('PCMA')).toBe(0xd5);
  });

  it.each(['PCMU', 'PCMA'] as const)('%s counts a pause as quiet at the level of line noise, and a voice as louder', (codec) => {
    const encoded = new Uint8Array(6);
    encodeG711(codec, Int16Array.of(0, 100, -100, 150, -150, 20_000), encoded);
    expect([...encoded].map((code) => isQuietG711(codec, code))).toEqual([true, true, true, false, false, false]);
  });

  it('has the static payload types of RFC 3551', () => {
    expect([payloadTypeOf('PCMU'), payloadTypeOf('PCMA')]).toEqual([0, 8]);
  });

  it('encodes at the given offset, and leaves the rest alone', () => {
    const target = new Uint8Array(5).fill(1);
    encodeG711('PCMU', Int16Array.of(0, 0), target, 2);
    expect([...target]).toEqual([1, 1, 0xff, 0xff, 1]);
  });

  it.each([
    ['all', undefined, undefined, [0, 8316, 0, 0, 7, 7]],
    ['from an offset on', 1, undefined, [8316, 0, 0, 7, 7, 7]],
    ['a number of bytes from an offset on', 1, 2, [8316, 0, 7, 7, 7, 7]],
  ] as const)('decodes %s, and leaves the rest alone', (_what, offset, length, expected) => {
    const target = new Int16Array(6).fill(7);
    decodeG711('PCMU', Uint8Array.of(0xff, 0x9f, 0xff, 0xff), target, offset, length);
    expect([...target]).toEqual(expected);
  });

  it.each([
    ['all', undefined, undefined, [0xd5, 0xb5, 0xd5, 0xd5, 7, 7]],
    ['from an offset on', 1, undefined, [0xb5, 0xd5, 0xd5, 7, 7, 7]],
    ['a number of bytes from an offset on', 1, 2, [0xb5, 0xd5, 7, 7, 7, 7]],
  ] as const)('transcodes %s, and leaves the rest alone', (_what, offset, length, expected) => {
    const target = new Uint8Array(6).fill(7);
    transcodeG711('PCMU', Uint8Array.of(0xff, 0x9f, 0xff, 0xff), target, offset, length);
    expect([...target]).toEqual(expected);
  });

  it.each([
    ['PCMU', 'PCMA'],
    ['PCMA', 'PCMU'],
  ] as const)('transcodes from %s to %s as decoding and encoding do', (from, to) => {
    const [samples, expected, transcoded] = [new Int16Array(256), new Uint8Array(256), new Uint8Array(256)];
    decodeG711(from, ALL_BYTES, samples);
    encodeG711(to, samples, expected);
    transcodeG711(from, ALL_BYTES, transcoded);
    expect(transcoded).toEqual(expected);
  });

  it('keeps a loud tone in shape through either law within 3 %', () => {
    const tone = Int16Array.from({ length: 800 }, (_, i) => Math.round(20_000 * Math.sin(i / 5)));
    for (const codec of ['PCMU', 'PCMA'] as const) {
      const heard = throughG711(codec, tone);
      const error = heard.reduce((sum, sample, i) => sum + (sample - tone[i]!) ** 2, 0);
      const energy = tone.reduce((sum, sample) => sum + sample ** 2, 0);
      expect(Math.sqrt(error / energy)).toBeLessThan(0.03);
    }
  });
});
