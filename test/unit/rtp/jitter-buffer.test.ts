import { describe, expect, it } from 'vitest';
import { JitterBuffer } from '../../../src/rtp/jitter-buffer.js';
import { addTicks } from '../../../src/rtp/rtp-packet.js';

const SSRC = 5;

/** A packet whose samples count up from its index, so that each sample tells where it belongs. */
function samples(from: number, length = 160): Int16Array {
  return Int16Array.from({ length }, (_, i) => from + i + 1);
}

function pull(buffer: JitterBuffer, frames = 1): number[] {
  const out: number[] = [];
  const frame = new Int16Array(160);
  for (let i = 0; i < frames; i += 1) {
    buffer.pull(frame);
    out.push(...frame);
  }
  return out;
}

/** A source begins with a delay of 40 ms. */
const SILENCE = Array.from({ length: 320 }, () => 0);

describe('jitter buffer', () => {
  it('plays everything in order after 40 ms, though packets are reordered, doubled, and the timestamp wraps', () => {
    const buffer = new JitterBuffer();
    const base = 0xffffff00;
    for (const index of [0, 2, 1, 1, 4, 3]) buffer.push(SSRC, addTicks(base, index * 160), samples(index * 160));
    expect(pull(buffer, 7)).toEqual([...SILENCE, ...samples(0, 800)]);
    expect(buffer.figures).toMatchObject({ duplicatePackets: 1, latePackets: 0, restarts: 0, skippedSamples: 0 });
  });

  it.each([10, 20, 30, 40, 60])('takes packets of %i ms', (packetMs) => {
    const buffer = new JitterBuffer();
    const length = packetMs * 8;
    for (let index = 0; index * length < 960; index += 1) buffer.push(SSRC, index * length, samples(index * length, length));
    expect(pull(buffer, 8)).toEqual([...SILENCE, ...samples(0, 960)]);
  });

  it('repeats the last 20 ms for a lost packet, fading, and then plays on; a long loss fades to silence', () => {
    const buffer = new JitterBuffer();
    const loud = new Int16Array(160).fill(9_000);
    buffer.push(SSRC, 0, loud);
    buffer.push(SSRC, 320, loud);
    pull(buffer, 2);
    const heard = pull(buffer, 7);
    expect(heard.slice(0, 160)).toEqual([...loud]);
    const repeated = heard.slice(160, 320);
    expect(repeated[0]).toBe(9_000);
    expect(repeated[159]).toBeLessThan(7_000);
    expect(repeated[159]).toBeGreaterThan(5_000);
    expect(heard.slice(320, 480)).toEqual([...loud]);
    expect(heard[480 + 479]).toBeLessThan(50);
    expect(heard.slice(960).every((sample) => sample === 0)).toBe(true);
  });

  it('drops a packet that comes after its time, and waits longer from then on', () => {
    const buffer = new JitterBuffer();
    for (let index = 0; index < 10; index += 1) {
      if (index !== 4) buffer.push(SSRC, index * 160, samples(index * 160));
    }
    pull(buffer, 8);
    expect(buffer.push(SSRC, 4 * 160, samples(640))).toBe('late');
    // It was 40 ms late; 20 ms more are kept for what comes later still.
    pull(buffer, 3);
    expect(pull(buffer)).toEqual([...samples(960)]);
    expect(buffer.figures).toMatchObject({ latePackets: 1, adjustments: 1 });
  });

  it('begins anew with another SSRC and with a jump of the timestamp, either way', () => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 0, samples(0));
    pull(buffer, 3);
    for (const [ssrc, rtpTimestamp] of [
      [6, 77],
      [6, 1_000_000],
      [6, 5_000],
    ] as const) {
      expect(buffer.push(ssrc, rtpTimestamp, samples(0))).toBe('restarted');
      expect(pull(buffer, 3).slice(320)).toEqual([...samples(0)]);
    }
    expect(buffer.figures.restarts).toBe(3);
  });

  it.each([
    // 8,192 samples, a second and a bit, are all that the buffer holds.
    [8_192, 'late'],
    [8_193, 'restarted'],
    [16_000, 'restarted'],
    [80_000, 'restarted'],
  ])('a packet %i samples behind what is played next is %s at once', (ticks, outcome) => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 100_000, samples(0));
    // 40 ms of silence, and the packet.
    pull(buffer, 3);
    expect(buffer.push(SSRC, 100_160 - ticks, samples(0))).toBe(outcome);
  });

  it('follows a path that became slower for good: after a short run of late packets they are played again', () => {
    const buffer = new JitterBuffer();
    let index = 0;
    for (; index < 20; index += 1) {
      buffer.push(SSRC, index * 160, samples(0));
      pull(buffer);
    }
    // 140 ms more from now on.
    pull(buffer, 7);
    const outcomes: string[] = [];
    for (; index < 60; index += 1) {
      outcomes.push(buffer.push(SSRC, index * 160, samples(0)));
      pull(buffer);
    }
    expect(outcomes.filter((outcome) => outcome === 'restarted')).toHaveLength(1);
    expect(outcomes.indexOf('restarted')).toBeLessThan(8);
    expect(outcomes.slice(-30).every((outcome) => outcome === 'stored')).toBe(true);
  });

  it('comes back to its delay when a burst after a stall had filled it', () => {
    const buffer = new JitterBuffer();
    let index = 0;
    for (; index < 10; index += 1) {
      buffer.push(SSRC, index * 160, samples(0));
      pull(buffer);
    }
    pull(buffer, 20);
    // 400 ms come at once, and then all is in time again.
    for (; index < 30; index += 1) buffer.push(SSRC, index * 160, samples(0));
    for (; index < 200; index += 1) {
      buffer.push(SSRC, index * 160, samples(0));
      pull(buffer);
    }
    expect(buffer.depthMs).toBeGreaterThanOrEqual(20);
    expect(buffer.depthMs).toBeLessThan(100);
    expect(buffer.figures.skippedSamples).toBeGreaterThan(0);
  });

  it('holds its delay against a sender whose clock is 0.1 % fast, for ten minutes', () => {
    const buffer = new JitterBuffer();
    let pushed = 0;
    for (let frame = 0; frame < 30_000; frame += 1) {
      while (pushed <= frame * 1.001) {
        buffer.push(SSRC, (pushed * 160) >>> 0, samples(0));
        pushed += 1;
      }
      pull(buffer);
      expect(buffer.depthMs).toBeLessThan(100);
    }
    expect(buffer.figures).toMatchObject({ latePackets: 0, adjustments: 0 });
  });

  it('a copy of what was played already is a duplicate, and no reason to wait longer', () => {
    const buffer = new JitterBuffer();
    for (let index = 0; index < 100; index += 1) {
      buffer.push(SSRC, index * 160, samples(0));
      pull(buffer);
      if (index > 20) expect(buffer.push(SSRC, (index - 10) * 160, samples(0))).toBe('duplicate');
    }
    expect(buffer.figures).toMatchObject({ duplicatePackets: 79, latePackets: 0, adjustments: 0, concealedSamples: 320 });
  });

  it('is silent before the first packet', () => {
    expect(pull(new JitterBuffer(), 2).every((sample) => sample === 0)).toBe(true);
  });
});
