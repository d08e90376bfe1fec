import { audioPacket } from '../../../support/audio-packet.js';
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

  it('[3960 §3.2] gives way to early media from its first packet on, pauses included, and returns when that ends', () => {
    const ringBack = new RingBack();
    const next = (): Uint8Array => {
      const payload = new Uint8Array(160).fill(SILENCE);
      ringBack.mix('PCMU', payload);
      return payload;
    };
    const isTone = (payload: Uint8Array): boolean => new Set(payload).size > 10;
    expect(isTone(next())).toBe(true);
    const packet = new Uint8Array(160).fill(0x90);
    const heard: Uint8Array[] = [];
    for (let at = 0; at < 20; at += 1) {
      ringBack.hear(audioPacket('PCMU', 7, at * 160, packet, 0, 160));
      heard.push(next());
    }
    expect(heard.some(isTone)).toBe(false);
    expect(heard.at(-1)?.every((byte) => byte === 0x90)).toBe(true);
    // What is missing is concealed for 60 ms.
    for (let at = 0; at < 6; at += 1) next();
    for (let at = 0; at < 20; at += 1) expect(next().every((byte) => byte === SILENCE)).toBe(true);
    ringBack.endEarlyMedia();
    expect(isTone(next())).toBe(true);
  });

  it('is silent where the agent speaks', () => {
    const payload = new Uint8Array(160).fill(0x20);
    new RingBack().mix('PCMU', payload);
    expect([...payload].every((byte) => byte === 0x20)).toBe(true);
  });
});
