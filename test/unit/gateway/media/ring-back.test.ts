import { mulaw } from 'alawmulaw';
import { describe, expect, it } from 'vitest';
import { RingBack } from '../../../../src/gateway/media/ring-back.js';

const SILENCE = 0xff;

describe('the ring-back tone', () => {
  it('[E.180] is 1 s of 425 Hz and 4 s of silence', () => {
    const tone = new RingBack();
    const frames = Array.from({ length: 500 }, () => {
      const payload = new Uint8Array(160).fill(SILENCE);
      tone.mix('PCMU', payload);
      return payload;
    });
    const isHeard = frames.map((payload) => payload.some((byte) => byte !== SILENCE));
    expect(isHeard).toEqual(Array.from({ length: 500 }, (_, index) => index % 250 < 50));
    const samples = frames.slice(0, 50).flatMap((payload) => [...mulaw.decode(payload)]);
    const crossings = samples.filter((sample, index) => index > 0 && sample >= 0 && (samples[index - 1] ?? 0) < 0).length;
    expect(crossings).toBeGreaterThanOrEqual(423);
    expect(crossings).toBeLessThanOrEqual(426);
  });

  it('is silent where the agent speaks', () => {
    const payload = new Uint8Array(160).fill(0x20);
    new RingBack().mix('PCMU', payload);
    expect([...payload].every((byte) => byte === 0x20)).toBe(true);
  });
});
