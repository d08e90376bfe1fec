import { describe, expect, it } from 'vitest';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { JitterBuffer, type JitterBufferFigures } from '../../../src/rtp/jitter-buffer.js';
import { packetStream, simulate, type NetworkOptions } from '../../support/media/simulated-network.js';

// The buffer behind a simulated network, in virtual time: a frame is pulled each 20 ms of the receiver's clock.

const HOUR = 180_000;
const MINUTE = 3_000;
const FRAME_MS = 20;

interface Run {
  readonly figures: JitterBufferFigures;
  /** What lay in the buffer after each pull, in milliseconds. */
  readonly depthsMs: Float64Array;
  /** Concealed in each pull, in samples. */
  readonly concealed: Uint16Array;
  readonly arrived: number;
}

/** @param phaseMs when within a frame the first packet arrives */
function play(frames: number, network: Partial<NetworkOptions>, seed: number, phaseMs = 7): Run {
  // A sender with a fast clock has more of them in the same time.
  const sent = packetStream(frames + 50);
  const arrivals = simulate(sent, { ...network, delayMs: 20 + phaseMs }, seed);
  const buffer = new JitterBuffer();
  const samples = new Int16Array(160).fill(1_000);
  const frame = new Int16Array(160);
  const depthsMs = new Float64Array(frames);
  const concealed = new Uint16Array(frames);
  for (let pull = 0, next = 0, before = 0; pull < frames; pull += 1) {
    for (; next < arrivals.length && arrivals[next]!.arrivalMs < pull * FRAME_MS; next += 1) {
      buffer.push(1, sent[arrivals[next]!.index]!.ts, samples);
    }
    buffer.pull(frame);
    depthsMs[pull] = buffer.depthMs;
    const { concealedSamples } = buffer.figures;
    concealed[pull] = concealedSamples - before;
    before = concealedSamples;
  }
  return {
    figures: buffer.figures,
    depthsMs,
    concealed,
    arrived: new Set(arrivals.filter(({ index }) => index < frames).map(({ index }) => index)).size,
  };
}

const most = (values: Float64Array): number => values.reduce((a, b) => Math.max(a, b));
const least = (values: Float64Array): number => values.reduce((a, b) => Math.min(a, b));
const mean = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('jitter buffer behind a network', () => {
  it.each([
    [100, 7],
    [-100, 7],
    [100, 0.5],
    [-100, 19.5],
  ])('an hour of a clock that is %d ppm fast: the delay does not grow, nothing is lost, nothing jumps', (driftPpm, phaseMs) => {
    const { figures, depthsMs } = play(HOUR, { driftPpm }, 1, phaseMs);
    expect(figures).toMatchObject({ latePackets: 0, skippedSamples: 0, restarts: 0, adjustments: 0 });
    // The 40 ms of the beginning, and what lies before the first packet.
    expect(figures.concealedSamples).toBeLessThanOrEqual(3 * 160);
    const settled = depthsMs.subarray(MINUTE);
    expect(most(settled)).toBeLessThanOrEqual(60);
    expect(least(settled)).toBeGreaterThanOrEqual(0);
    expect(Math.abs(mean(settled.subarray(0, MINUTE)) - mean(settled.subarray(-MINUTE)))).toBeLessThan(20);
  });

  it.each([100, -100])('the same with jitter of up to 15 ms (%d ppm)', (driftPpm) => {
    const { figures, depthsMs } = play(HOUR, { driftPpm, jitter: { kind: 'uniform', ms: 15 } }, 2);
    expect(figures.adjustments).toBeLessThan(5);
    expect(figures.latePackets).toBeLessThan(HOUR / 10_000);
    expect(most(depthsMs.subarray(MINUTE))).toBeLessThanOrEqual(80);
  });

  it.each([1, 3])('5 % of loss, %i in a row: what is lost is concealed, and nothing else', (meanLossBurst) => {
    const { figures, depthsMs, arrived } = play(10 * MINUTE, { lossRate: 0.05, meanLossBurst }, 3);
    const lost = 10 * MINUTE - arrived;
    expect(figures.latePackets).toBe(0);
    expect(figures.concealedSamples / 160).toBeGreaterThan(lost - 3);
    expect(figures.concealedSamples / 160).toBeLessThan(lost + 6);
    expect(figures.adjustments).toBe(0);
    expect(most(depthsMs.subarray(MINUTE))).toBeLessThanOrEqual(40);
  });

  it('neighbours that change places are all played', () => {
    const { figures } = play(10 * MINUTE, { reorderRate: 0.02 }, 4);
    expect(figures).toMatchObject({ latePackets: 0, skippedSamples: 0, restarts: 0, adjustments: 0 });
    expect(figures.concealedSamples).toBeLessThanOrEqual(3 * 160);
  });

  it('duplicates change nothing', () => {
    const jitter = { kind: 'uniform', ms: 30 } as const;
    const single = play(10 * MINUTE, { jitter, lossRate: 0.01, duplicateRate: 0 }, 5);
    const doubled = play(10 * MINUTE, { jitter, lossRate: 0.01, duplicateRate: 0.3 }, 5);
    expect(single.arrived).toBe(doubled.arrived);
    expect(doubled.depthsMs).toEqual(single.depthsMs);
    expect(doubled.figures).toEqual({ ...single.figures, duplicatePackets: doubled.figures.duplicatePackets });
    expect(doubled.figures.duplicatePackets).toBeGreaterThan(0.28 * single.arrived);
  });

  it('the delay follows the jitter: 0, 20, 60 ms and back, each for a minute', () => {
    const delays: number[] = [];
    for (const ms of [0, 20, 60]) {
      const { figures, depthsMs } = play(MINUTE, { jitter: { kind: 'uniform', ms } }, 6);
      delays.push(mean(depthsMs.subarray(MINUTE / 2)));
      expect(figures.latePackets).toBeLessThan(MINUTE / 100);
    }
    expect(delays[0]).toBeGreaterThanOrEqual(20);
    expect(delays[0]).toBeLessThanOrEqual(40);
    expect(delays[1]! - delays[0]!).toBeGreaterThanOrEqual(5);
    // A packet that is early waits longer: on average there is half of the jitter more in it.
    expect(delays[2]! - delays[1]!).toBeGreaterThanOrEqual(15);
    expect(delays[2]).toBeLessThan(100);
  });

  it('comes down again when the jitter is over, within half a minute, without a jump that is heard as one', () => {
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
    const before = mean(Float64Array.from(depthAt.slice(MINUTE - 500, MINUTE)));
    const after = mean(Float64Array.from(depthAt.slice(MINUTE + 1_500, MINUTE + 2_000)));
    expect(before).toBeGreaterThan(45);
    expect(after).toBeLessThanOrEqual(40);
  });

  it('keeps to its bounds: 200 ms however rough it is', () => {
    const { depthsMs, figures } = play(5 * MINUTE, { jitter: { kind: 'exponential', meanMs: 150 }, keepsOrder: false }, 8);
    // The depth is the delay and what came early.
    expect(mean(depthsMs.subarray(MINUTE))).toBeLessThan(260);
    expect(figures.latePackets).toBeGreaterThan(0);
    const late = figures.latePackets / (5 * MINUTE);
    expect(late).toBeLessThan(0.35);
  });

  it('a spike of 150 ms now and then loses a packet, and does not make the delay long for good', () => {
    const { depthsMs, figures } = play(10 * MINUTE, { jitter: { kind: 'spikes', rate: 0.001, ms: 150 }, keepsOrder: false }, 9);
    expect(mean(depthsMs.subarray(MINUTE))).toBeLessThan(60);
    expect(figures.latePackets).toBeLessThan(60);
  });

  it('a tone stays in tune and a pause takes the change: the delay of the beginning shrinks in the silence before', () => {
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

  it('a tone that never pauses stays in tune too', () => {
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

  it('doubling and leaving out single samples is not heard: a sine stays smooth while the delay changes', () => {
    const sent = packetStream(5 * MINUTE, { seq: 0, ts: 0 });
    const arrivals = simulate(sent, { driftPpm: 1_000, delayMs: 27 }, 1);
    const buffer = new JitterBuffer();
    const frame = new Int16Array(160);
    const heard: number[] = [];
    for (let pull = 0, next = 0; pull < 5 * MINUTE; pull += 1) {
      for (; next < arrivals.length && arrivals[next]!.arrivalMs < pull * FRAME_MS; next += 1) {
        const { ts } = sent[arrivals[next]!.index]!;
        buffer.push(
          1,
          ts,
          Int16Array.from({ length: 160 }, (_, i) => Math.round(8_000 * Math.sin((2 * Math.PI * 300 * (ts + i)) / 8_000))),
        );
      }
      buffer.pull(frame);
      heard.push(...frame);
    }
    const largestStep = 8_000 * 2 * Math.sin((Math.PI * 300) / 8_000);
    let worst = 0;
    for (let n = 161 * 5; n < heard.length; n += 1) worst = Math.max(worst, Math.abs(heard[n]! - heard[n - 1]!));
    expect(worst).toBeLessThan(1.2 * largestStep);
    expect(buffer.figures).toMatchObject({ adjustments: 0, latePackets: 0 });
  });
});
