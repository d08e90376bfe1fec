import { describe, expect, it } from 'vitest';
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

describe('the jitter buffer behind a network', () => {
  it.each([
    [100, 7],
    [-100, 7],
    [100, 0.5],
    [-100, 19.5],
  ])('keeps its delay for an hour of a clock that is %d ppm fast, and loses nothing', (driftPpm, phaseMs) => {
    const { figures, depthsMs } = play(HOUR, { driftPpm }, 1, phaseMs);
    expect(figures).toMatchObject({ latePackets: 0, skippedSamples: 0, restarts: 0, adjustments: 0 });
    // The 40 ms of the beginning, and what lies before the first packet.
    expect(figures.concealedSamples).toBeLessThanOrEqual(3 * 160);
    const settled = depthsMs.subarray(MINUTE);
    expect(most(settled)).toBeLessThanOrEqual(60);
    expect(least(settled)).toBeGreaterThanOrEqual(0);
    expect(Math.abs(mean(settled.subarray(0, MINUTE)) - mean(settled.subarray(-MINUTE)))).toBeLessThan(20);
  });

  it.each([100, -100])('keeps its delay with jitter of up to 15 ms, too (%d ppm)', (driftPpm) => {
    const { figures, depthsMs } = play(HOUR, { driftPpm, jitter: { kind: 'uniform', ms: 15 } }, 2);
    expect(figures.adjustments).toBeLessThan(5);
    expect(figures.latePackets).toBeLessThan(HOUR / 10_000);
    expect(most(depthsMs.subarray(MINUTE))).toBeLessThanOrEqual(80);
  });

  it.each([1, 3])('conceals 5 % of loss, %i in a row, and nothing else', (meanLossBurst) => {
    const { figures, depthsMs, arrived } = play(10 * MINUTE, { lossRate: 0.05, meanLossBurst }, 3);
    const lost = 10 * MINUTE - arrived;
    expect(figures.latePackets).toBe(0);
    expect(figures.concealedSamples / 160).toBeGreaterThan(lost - 3);
    expect(figures.concealedSamples / 160).toBeLessThan(lost + 6);
    expect(figures.adjustments).toBe(0);
    expect(most(depthsMs.subarray(MINUTE))).toBeLessThanOrEqual(40);
  });

  it('plays packets that change places', () => {
    const { figures } = play(10 * MINUTE, { reorderRate: 0.02 }, 4);
    expect(figures).toMatchObject({ latePackets: 0, skippedSamples: 0, restarts: 0, adjustments: 0 });
    expect(figures.concealedSamples).toBeLessThanOrEqual(3 * 160);
  });

  it('ignores duplicates', () => {
    const jitter = { kind: 'uniform', ms: 30 } as const;
    const single = play(10 * MINUTE, { jitter, lossRate: 0.01, duplicateRate: 0 }, 5);
    const doubled = play(10 * MINUTE, { jitter, lossRate: 0.01, duplicateRate: 0.3 }, 5);
    expect(single.arrived).toBe(doubled.arrived);
    expect(doubled.depthsMs).toEqual(single.depthsMs);
    expect(doubled.figures).toEqual({ ...single.figures, duplicatePackets: doubled.figures.duplicatePackets });
    expect(doubled.figures.duplicatePackets).toBeGreaterThan(0.28 * single.arrived);
  });

  it('follows the jitter with its delay: 0, 20, 60 ms and back, each for a minute', () => {
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

  it('stays within 200 ms however large the jitter is', () => {
    const { depthsMs, figures } = play(5 * MINUTE, { jitter: { kind: 'exponential', meanMs: 150 }, keepsOrder: false }, 8);
    // The depth is the delay and what came early.
    expect(mean(depthsMs.subarray(MINUTE))).toBeLessThan(260);
    expect(figures.latePackets).toBeGreaterThan(0);
    const late = figures.latePackets / (5 * MINUTE);
    expect(late).toBeLessThan(0.35);
  });

  it('loses a packet at a rare spike of 150 ms, without a longer delay for good', () => {
    const { depthsMs, figures } = play(10 * MINUTE, { jitter: { kind: 'spikes', rate: 0.001, ms: 150 }, keepsOrder: false }, 9);
    expect(mean(depthsMs.subarray(MINUTE))).toBeLessThan(60);
    expect(figures.latePackets).toBeLessThan(60);
  });

  it('changes its delay by single samples, inaudibly for a sine', () => {
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

  it('keeps its delay against a sender whose clock is 0.1 % fast, for ten minutes', () => {
    const buffer = new JitterBuffer();
    const samples = Int16Array.from({ length: 160 }, (_, i) => i + 1);
    const frame = new Int16Array(160);
    let pushed = 0;
    for (let pull = 0; pull < 10 * MINUTE; pull += 1) {
      while (pushed <= pull * 1.001) {
        buffer.push(1, (pushed * 160) >>> 0, samples);
        pushed += 1;
      }
      buffer.pull(frame);
      expect(buffer.depthMs).toBeLessThan(100);
    }
    expect(buffer.figures).toMatchObject({ latePackets: 0, adjustments: 0 });
  });
});
