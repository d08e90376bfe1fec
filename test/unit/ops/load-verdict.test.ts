import { describe, expect, it } from 'vitest';
import { nextVerdict, NOT_OVERLOADED, type LoadSample, type LoadVerdict } from '../../../src/ops/load-verdict.js';

const LIMITS = { maxEventLoopDelayMs: 500, maxCpuPercent: 180 };
const QUIET: LoadSample = { delayMs: 5, cpuPercent: 20 };
const LATE: LoadSample = { delayMs: 501, cpuPercent: 20 };
const BUSY: LoadSample = { delayMs: 5, cpuPercent: 181 };
/** Below the limits, but not well below. */
const NEARLY: LoadSample = { delayMs: 450, cpuPercent: 100 };

const after = (...samples: readonly LoadSample[]): boolean =>
  samples.reduce<LoadVerdict>((verdict, sample) => nextVerdict(verdict, sample, LIMITS), NOT_OVERLOADED).isOverloaded;

describe('whether a gateway is overloaded', () => {
  it.each([
    ['quiet', [QUIET], false],
    ['late once, as by a garbage collection', [LATE], false],
    ['late twice', [LATE, LATE], true],
    ['late, quiet, late', [LATE, QUIET, LATE], false],
    ['short of CPU twice', [BUSY, BUSY], true],
    ['late, then short of CPU', [LATE, BUSY], true],
    ['near the limit', [NEARLY, NEARLY, NEARLY], false],
  ])('%s', (_what, samples, isOverloaded) => {
    expect(after(...samples)).toBe(isOverloaded);
  });

  it('until it is well below the limits, twice', () => {
    expect(after(LATE, LATE, QUIET)).toBe(true);
    expect(after(LATE, LATE, NEARLY, NEARLY, NEARLY)).toBe(true);
    expect(after(LATE, LATE, QUIET, QUIET)).toBe(false);
  });
});
