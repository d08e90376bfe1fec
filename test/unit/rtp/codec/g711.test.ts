import { alaw, mulaw } from 'alawmulaw';
import { describe, expect, it } from 'vitest';
import { decodeG711, encodeG711, silenceByte, throughG711 } from '../../../../src/rtp/codec/g711.js';

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

  it('the silence codes are the well-known 0xff and 0xd5', () => {
    expect(silenceByte('PCMU')).toBe(0xff);
    expect(silenceByte('PCMA')).toBe(0xd5);
  });

  it('a loud tone keeps its shape through either law within 3 %', () => {
    const tone = Int16Array.from({ length: 800 }, (_, i) => Math.round(20_000 * Math.sin(i / 5)));
    for (const codec of ['PCMU', 'PCMA'] as const) {
      const heard = throughG711(codec, tone);
      const error = heard.reduce((sum, sample, i) => sum + (sample - tone[i]!) ** 2, 0);
      const energy = tone.reduce((sum, sample) => sum + sample ** 2, 0);
      expect(Math.sqrt(error / energy)).toBeLessThan(0.03);
    }
  });
});
