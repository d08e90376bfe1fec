import { describe, expect, it } from 'vitest';
import { OverloadDetector } from '../../../../src/gateway/admission/overload-detector.js';
import {
  nextVerdict,
  NOT_OVERLOADED,
  type OverloadSample,
  type OverloadVerdict,
} from '../../../../src/gateway/admission/overload-verdict.js';
import { EventLog } from '../../../support/event-log.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const LIMITS = { maxEventLoopDelayMs: 500, maxCpuPercent: 180 };
const QUIET: OverloadSample = { delayMs: 5, cpuPercent: 20 };
const LATE: OverloadSample = { delayMs: 501, cpuPercent: 20 };
const BUSY: OverloadSample = { delayMs: 5, cpuPercent: 181 };
/** Below the limits, but not well below. */
const NEARLY: OverloadSample = { delayMs: 450, cpuPercent: 100 };

const after = (...samples: readonly OverloadSample[]): boolean =>
  samples.reduce<OverloadVerdict>((verdict, sample) => nextVerdict(verdict, sample, LIMITS), NOT_OVERLOADED).isOverloaded;

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

describe('the watch over this process', () => {
  it('finds it overloaded at the second sample over a limit, and says so once', () => {
    const clock = new VirtualClock();
    const log = new EventLog();
    // Any process that runs takes some CPU.
    const monitor = new OverloadDetector({ maxEventLoopDelayMs: 60_000, maxCpuPercent: 0 }, clock, log);
    monitor.start();
    const seen = [1, 2, 3].map(() => {
      clock.advance(500);
      return monitor.isOverloaded;
    });
    monitor.stop();
    expect(seen).toEqual([false, true, true]);
    expect(log.named('gateway.overload.began')).toHaveLength(1);
  });
});
