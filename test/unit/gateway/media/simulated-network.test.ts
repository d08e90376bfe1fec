import { describe, expect, it } from 'vitest';
import { packetStream, simulate } from '../../../support/media/simulated-network.js';

// The network that other tests rely on is what it says it is.

const COUNT = 50_000;
const SENT = packetStream(COUNT);

describe('the simulated network', () => {
  it('is perfect by default, and the same for the same seed', () => {
    expect(simulate(SENT.slice(0, 3), {}, 1)).toEqual([
      { arrivalMs: 20, index: 0 },
      { arrivalMs: 40, index: 1 },
      { arrivalMs: 60, index: 2 },
    ]);
    const rough = { lossRate: 0.1, jitter: { kind: 'uniform', ms: 60 }, duplicateRate: 0.1, reorderRate: 0.1 } as const;
    expect(simulate(SENT, rough, 5)).toEqual(simulate(SENT, rough, 5));
    expect(simulate(SENT, rough, 5)).not.toEqual(simulate(SENT, rough, 6));
  });

  it.each([1, 4])('loses as many packets as configured, %i in a row on average', (meanLossBurst) => {
    const arrived = new Set(simulate(SENT, { lossRate: 0.05, meanLossBurst }, 3).map(({ index }) => index));
    const lost = SENT.flatMap((_, index) => (arrived.has(index) ? [] : [index]));
    const bursts = lost.filter((index) => arrived.has(index - 1)).length;
    expect(lost.length / COUNT).toBeCloseTo(0.05, 2);
    expect(lost.length / bursts / meanLossBurst).toBeGreaterThan(0.9);
    expect(lost.length / bursts / meanLossBurst).toBeLessThan(1.15);
    expect(simulate(SENT, { lossRate: 1 }, 3)).toEqual([]);
  });

  it('reorders neighbours and doubles packets as often as configured', () => {
    const reordered = simulate(SENT, { reorderRate: 0.02 }, 3);
    const swaps = reordered.filter(({ index }, i) => index > (reordered[i + 1]?.index ?? Infinity)).length;
    expect(swaps / COUNT).toBeCloseTo(0.02, 2);
    expect(simulate(SENT, { duplicateRate: 0.1 }, 3).length / COUNT).toBeCloseTo(1.1, 2);
  });

  it.each([
    [{ kind: 'uniform', ms: 60 } as const, 30],
    [{ kind: 'exponential', meanMs: 10 } as const, 10],
    [{ kind: 'normal', sigmaMs: 10 } as const, 10 * Math.sqrt(2 / Math.PI)],
    [{ kind: 'spikes', rate: 0.1, ms: 50 } as const, 5],
  ])('delays by %o, in order only when it is a queue', (jitter, meanMs) => {
    const arrivals = simulate(SENT, { jitter, keepsOrder: false }, 9);
    const mean = arrivals.reduce((sum, { arrivalMs, index }) => sum + arrivalMs - index * 20 - 20, 0) / COUNT;
    expect(mean / meanMs).toBeCloseTo(1, 1);
    expect(Math.min(...arrivals.map(({ arrivalMs, index }) => arrivalMs - index * 20))).toBeGreaterThanOrEqual(20);
    const queued = simulate(SENT, { jitter }, 9);
    expect(queued.map(({ index }) => index)).toEqual(SENT.map((_, index) => index));
  });

  it('makes a sender whose clock is fast by 100 ppm 360 ms early after an hour', () => {
    const hour = packetStream(180_001);
    expect(simulate(hour, { driftPpm: 100 }, 1).at(-1)!.arrivalMs).toBeCloseTo(3_600_020 - 360, 0);
    expect(simulate(hour, { driftPpm: -100 }, 1).at(-1)!.arrivalMs).toBeCloseTo(3_600_020 + 360, 0);
  });
});
