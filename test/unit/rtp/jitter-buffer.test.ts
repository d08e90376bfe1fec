import { describe, expect, it } from 'vitest';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { JitterBuffer } from '../../../src/rtp/jitter-buffer.js';
import { addTicks } from '../../../src/rtp/rtp-packet.js';
import { packetStream, simulate } from '../../support/media/simulated-network.js';

const SSRC = 5;
const MINUTE = 3_000;
const FRAME_MS = 20;

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

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** A source begins with a delay of 40 ms. */
const SILENCE = Array.from({ length: 320 }, () => 0);

describe('the jitter buffer', () => {
  it('plays everything in order after 40 ms, though packets are reordered, doubled, and the timestamp wraps', () => {
    const buffer = new JitterBuffer();
    const base = 0xffffff00;
    for (const index of [0, 2, 1, 1, 4, 3]) buffer.push(SSRC, addTicks(base, index * 160), samples(index * 160));
    expect(pull(buffer, 7)).toEqual([...SILENCE, ...samples(0, 800)]);
    expect(buffer.figures).toMatchObject({ duplicatePackets: 1, latePackets: 0, restarts: 0, skippedSamples: 0 });
  });

  it.each([10, 20, 30, 40, 60])('accepts packets of %i ms', (packetMs) => {
    const buffer = new JitterBuffer();
    const length = packetMs * 8;
    for (let index = 0; index * length < 960; index += 1) buffer.push(SSRC, index * length, samples(index * length, length));
    expect(pull(buffer, 8)).toEqual([...SILENCE, ...samples(0, 960)]);
  });

  it('repeats the last 20 ms for a lost packet, fading, and then continues; a long loss fades to silence', () => {
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

  it('drops a late packet, and has a longer delay from then on', () => {
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

  it('restarts with another SSRC and with a jump of the timestamp, either way', () => {
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
  ])('handles a packet %i samples behind the next one as %s at once', (ticks, outcome) => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 100_000, samples(0));
    // 40 ms of silence, and the packet.
    pull(buffer, 3);
    expect(buffer.push(SSRC, 100_160 - ticks, samples(0))).toBe(outcome);
  });

  it('follows a path that became slower for good after a short run of late packets', () => {
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

  it('returns to its delay when a burst after a stall had filled it', () => {
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

  it('counts a copy of played audio as a duplicate, without a longer delay', () => {
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

  it('shortens its delay within half a minute when the jitter is over, without an audible jump', () => {
    const sent = packetStream(2 * MINUTE);
    const rough = simulate(sent.slice(0, MINUTE), { jitter: { kind: 'uniform', ms: 50 } }, 7);
    const smooth = simulate(sent.slice(MINUTE), {}, 7).map(({ arrivalMs, index }) => ({ arrivalMs, index: index + MINUTE }));
    const buffer = new JitterBuffer();
    const frame = new Int16Array(160);
    const arrivals = [...rough, ...smooth].sort((a, b) => a.arrivalMs - b.arrivalMs);
    const depthAt: number[] = [];
    for (let pull = 0, next = 0; pull < 2 * MINUTE; pull += 1) {
      for (; next < arrivals.length && arrivals[next]!.arrivalMs < pull * FRAME_MS + 7; next += 1) {
        buffer.push(1, sent[arrivals[next]!.index]!.ts, new Int16Array(160));
      }
      buffer.pull(frame);
      depthAt.push(buffer.depthMs);
    }
    const before = mean(depthAt.slice(MINUTE - 500, MINUTE));
    const after = mean(depthAt.slice(MINUTE + 1_500, MINUTE + 2_000));
    expect(before).toBeGreaterThan(45);
    expect(after).toBeLessThanOrEqual(40);
  });

  it('keeps a tone in tune and changes its delay in a pause', () => {
    const heard = (startOfTone: number): { readonly audio: Int16Array; readonly tone: Int16Array; readonly depthMs: number } => {
      const buffer = new JitterBuffer();
      const tone = Int16Array.from({ length: 4_000 }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * 1_004 * n) / 8_000)));
      const audio = new Int16Array(startOfTone * 160 + 16_000);
      let depthMs = 0;
      for (let pull = 0; (pull + 1) * 160 <= audio.length; pull += 1) {
        const samples = new Int16Array(160);
        samples.set(tone.subarray(Math.max(0, pull - startOfTone) * 160, Math.max(0, pull - startOfTone + 1) * 160));
        buffer.push(1, pull * 160, samples);
        buffer.pull(audio.subarray(pull * 160, (pull + 1) * 160));
        if (pull === startOfTone) ({ depthMs } = buffer);
      }
      return { audio, tone, depthMs };
    };
    // A second after the start the delay begins to shrink; 0.3 s of a pause are enough for it.
    expect(heard(70).depthMs).toBe(20);
    // Two samples within a quarter of a second, each an eighth of a period of the tone, leave 0.94.
    for (const startOfTone of [20, 49, 52, 60, 100, 200]) {
      const { audio, tone } = heard(startOfTone);
      expect(findPhrase(audio, tone.subarray(0, 2_000))!.score, String(startOfTone)).toBeGreaterThan(0.9);
    }
  });

  it('keeps a tone without pauses in tune, too', () => {
    const buffer = new JitterBuffer();
    const tone = Int16Array.from({ length: 160 * 500 }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * 1_004 * n) / 8_000)));
    const audio = new Int16Array(tone.length);
    for (let pull = 0; pull < 500; pull += 1) {
      buffer.push(1, pull * 160, tone.subarray(pull * 160, (pull + 1) * 160));
      buffer.pull(audio.subarray(pull * 160, (pull + 1) * 160));
    }
    // Any quarter of a second, also while the delay shrinks.
    for (let second = 0.25; second < 9.5; second += 0.25) {
      const piece = audio.subarray(second * 8_000, second * 8_000 + 4_000);
      expect(findPhrase(piece, tone.subarray(0, 2_000))!.score, `${second} s`).toBeGreaterThan(0.9);
    }
    expect(buffer.depthMs).toBeLessThan(40);
  });
});

/** A packet of each frame arrives just before its pull. Depth in samples after each of them; [0] is that after the first push. */
function steady(buffer: JitterBuffer, pulls: number, packet: Int16Array): number[] {
  const depths: number[] = [];
  const frame = new Int16Array(160);
  for (let index = 0; index < pulls; index += 1) {
    buffer.push(SSRC, index * 160, packet);
    if (index === 0) depths.push(buffer.depthMs * 8);
    buffer.pull(frame);
    depths.push(buffer.depthMs * 8);
  }
  return depths;
}

const level = (value: number): Int16Array => new Int16Array(160).fill(value);
const LOUD = level(1_000);
/** What the delay changes by in each pull. */
const changes = (depths: readonly number[]): number[] => depths.slice(1).map((depth, n) => depth - depths[n]!);

describe('the jitter buffer at its bounds', () => {
  it('measures its content in the clock of its codec', () => {
    const buffer = new JitterBuffer({ clockRateHz: 16_000 });
    buffer.push(SSRC, 0, samples(0, 320));
    expect(buffer.depthMs).toBe(60);
    expect(pull(buffer, 6)).toEqual([...SILENCE, ...SILENCE, ...samples(0, 320)]);
    expect(buffer.depthMs).toBe(0);
  });

  it('admits half a second of one packet, and leaves the rest', () => {
    const buffer = new JitterBuffer({ startMs: 0 });
    buffer.push(SSRC, 0, samples(0, 5_000));
    expect(buffer.depthMs).toBe(512);
    expect(pull(buffer, 26).slice(4_090, 4_097)).toEqual([4_091, 4_092, 4_093, 4_094, 4_095, 4_096, 3_937]);
  });

  it.each([
    [3_520, 'stored'],
    [3_521, 'restarted'],
  ])('makes a packet that ends half a second ahead, or a sample later (timestamp %i), %s', (rtpTimestamp, outcome) => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 0, LOUD);
    expect(buffer.push(SSRC, rtpTimestamp, LOUD)).toBe(outcome);
  });

  it.each([
    [2_048, 'duplicate'],
    [2_049, 'late'],
  ])('makes a copy of what was played %i samples ago %s', (ticks, outcome) => {
    const buffer = new JitterBuffer();
    steady(buffer, 40, LOUD);
    expect(buffer.push(SSRC, 38 * 160 - ticks, LOUD)).toBe(outcome);
  });

  it('fades the last 20 ms out over 60 ms, to the sample', () => {
    const buffer = new JitterBuffer({ startMs: 0 });
    buffer.push(SSRC, 0, samples(0));
    const expected = Array.from({ length: 640 }, (_, n) => (n < 480 ? Math.round(((n % 160) + 1) * (1 - n / 480)) : 0));
    expect(pull(buffer, 5)).toEqual([...samples(0), ...expected]);
    expect(buffer.figures.concealedSamples).toBe(640);
  });

  it('plays the rest of a partly late packet, with a longer delay from then on', () => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 0, samples(0));
    pull(buffer, 3);
    buffer.pull(new Int16Array(80));
    // 50 ms later than the first, in its time.
    expect(buffer.push(SSRC, 160, samples(1_000))).toBe('stored');
    expect(buffer.figures).toMatchObject({ adjustments: 1, latePackets: 0 });
    // 30 ms more: those 50, and 20 for what comes later still, less the 40 of the beginning.
    expect(pull(buffer, 2).slice(240)).toEqual([...samples(1_080, 80)]);
  });

  it.each([
    [9, 'late'],
    [10, 'restarted'],
  ])('makes a packet too late %i frames after the last one in time %s', (frames, outcome) => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 0, LOUD);
    pull(buffer, frames);
    expect(buffer.push(SSRC, 800, LOUD)).toBe(outcome);
  });

  it.each([
    [4, ['late', 'late', 'late', 'late']],
    [5, ['late', 'late', 'restarted']],
  ])('restarts at the third late packet in a row, when %i frames have passed since the first: %j', (frames, outcomes) => {
    const buffer = new JitterBuffer();
    buffer.push(SSRC, 0, LOUD);
    pull(buffer, 4);
    const heard = [buffer.push(SSRC, 160, LOUD)];
    pull(buffer, frames);
    for (let more = 1; more < outcomes.length; more += 1) heard.push(buffer.push(SSRC, 160, LOUD));
    expect(heard).toEqual(outcomes);
  });
});

describe('a delay that is longer than needed', () => {
  it.each([
    [80, 0, 0],
    [81, 488, 1],
    [200, 1_440, 1],
  ])('of %i ms, of which 20 would do, leaves out %i samples after a second', (startMs, skippedSamples, adjustments) => {
    const buffer = new JitterBuffer({ startMs });
    const depths = steady(buffer, 50, LOUD);
    expect(new Set(changes(depths.slice(0, -1).slice(1)))).toEqual(new Set([0]));
    expect(depths.at(-2)! - depths.at(-1)!).toBe(skippedSamples);
    expect(buffer.figures).toMatchObject({ skippedSamples, adjustments, latePackets: 0 });
  });

  it.each([
    // More than 30 ms too long: a sample every 5 frames.
    [80, 1_000, [54, 59, 64, 69, 74, 79, 84, 89, 94, 99], 1],
    [50, 1_000, [59, 69, 79, 89, 99], 1],
    // Less than 10 ms: nothing.
    [30, 1_000, [59, 69, 79, 89, 99], 1],
    [29, 1_000, [], 0],
    // In a pause, which has a level of at most 100: 40 samples a frame.
    [80, 100, [50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61], 40],
    [80, -101, [54, 59, 64, 69, 74, 79, 84, 89, 94, 99], 1],
  ])('of %i ms, in sound of the level %i, shrinks in the frames %j by %i samples each', (startMs, value, frames, each) => {
    const buffer = new JitterBuffer({ startMs });
    const changed = changes(steady(buffer, 100, level(value))).slice(1);
    expect(changed.flatMap((change, n) => (change === 0 ? [] : [[n + 2, change]]))).toEqual(frames.map((frame) => [frame, -each]));
    expect(buffer.figures).toMatchObject({ adjustments: 0, skippedSamples: 0 });
  });

  it('grows by the same steps where it is too short', () => {
    const grown = (packet: Int16Array): number[] => {
      const changed = changes(steady(new JitterBuffer({ leastMs: 60 }), 100, packet)).slice(1);
      return changed.flatMap((change, n) => (change === 0 ? [] : [n + 2, change]));
    };
    expect(grown(LOUD)).toEqual([59, 1, 69, 1, 79, 1, 89, 1, 99, 1]);
    expect(grown(level(0))).toEqual([50, 40, 51, 40, 52, 40, 53, 40]);
  });

  it.each([
    ['left out', {}, (s: number[]) => [...s.slice(0, 70), ...s.slice(71), s[0]]],
    ['doubled', { leastMs: 60 }, (s: number[]) => [...s.slice(0, 71), s[70], ...s.slice(71, 159)]],
  ] as const)('changes where two neighbours differ least: a sample is %s', (_what, options, expected) => {
    const buffer = new JitterBuffer(options);
    // A ramp with one level place.
    const packet = Int16Array.from({ length: 160 }, (_, i) => 200 * (i > 70 ? i - 1 : i) + 1);
    steady(buffer, 58, packet);
    buffer.push(SSRC, 58 * 160, packet);
    expect(pull(buffer)).toEqual(expected([...packet]));
  });
});
