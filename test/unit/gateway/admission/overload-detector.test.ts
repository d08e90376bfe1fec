import { describe, expect, it } from 'vitest';
import {
  nextVerdict,
  NOT_OVERLOADED,
  OverloadDetector,
  type OverloadSample,
  type OverloadVerdict,
} from '../../../../src/gateway/admission/overload-detector.js';
import { FrameDelay } from '../../../../src/gateway/media/slot-clock.js';
import { EventLog } from '../../../support/event-log.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const LIMITS = { maxEventLoopDelayMs: 500, maxMediaDelayMs: 40, maxCpuPercent: 180 };
const ON_TIME = { frameMs: 2, arrivalMs: 1 };
const QUIET: OverloadSample = { delayMs: 5, media: ON_TIME, cpuPercent: 20, idlePercent: 50 };
const LATE: OverloadSample = { ...QUIET, delayMs: 501 };
const MEDIA_LATE: OverloadSample = { ...QUIET, media: { ...ON_TIME, frameMs: 41 } };
const PACKETS_LATE: OverloadSample = { ...QUIET, media: { ...ON_TIME, arrivalMs: 41 } };
const PACKETS_LATE_AND_BUSY: OverloadSample = { ...PACKETS_LATE, idlePercent: 4 };
const BUSY: OverloadSample = { ...QUIET, cpuPercent: 181 };
/** Below the limits, but not well below. */
const NEARLY: OverloadSample = { ...QUIET, delayMs: 450, cpuPercent: 100 };
const MEDIA_NEARLY: OverloadSample = { ...QUIET, media: { ...ON_TIME, frameMs: 33 } };

const after = (...samples: readonly OverloadSample[]): boolean =>
  samples.reduce<OverloadVerdict>((verdict, sample) => nextVerdict(verdict, sample, LIMITS), NOT_OVERLOADED).isOverloaded;

describe('the overload detector', () => {
  it.each([
    ['quiet', [QUIET], false],
    ['late twice, as by one garbage collection at the turn of two samples', [LATE, LATE, QUIET], false],
    ['late for a second and a half', [LATE, LATE, LATE], true],
    ['late, quiet, late', [LATE, LATE, QUIET, LATE, LATE], false],
    ['late in a media thread by one pause of 200 ms', [{ ...MEDIA_LATE, media: { ...ON_TIME, frameMs: 200 } }, MEDIA_LATE, QUIET], false],
    ['late by one pause that began at the end of a sample', [LATE, { ...LATE, delayMs: 800 }, QUIET], false],
    [
      'late in a media thread by one pause that began at the end of a sample',
      [MEDIA_LATE, { ...QUIET, media: { ...ON_TIME, frameMs: 95 } }, QUIET],
      false,
    ],
    ['later and later', [LATE, { ...LATE, delayMs: 800 }, { ...LATE, delayMs: 1_200 }], true],
    ['late in a media thread for a second and a half', [MEDIA_LATE, MEDIA_LATE, MEDIA_LATE], true],
    ['late packets on an idle machine: their way became longer', [PACKETS_LATE, PACKETS_LATE, PACKETS_LATE], false],
    ['late packets on a machine that has no CPU left', [PACKETS_LATE_AND_BUSY, PACKETS_LATE_AND_BUSY, PACKETS_LATE_AND_BUSY], true],
    ['near the limit of media', [MEDIA_NEARLY, MEDIA_NEARLY, MEDIA_NEARLY], false],
    ['short of CPU for a second', [BUSY, { ...BUSY, cpuPercent: 400 }], false],
    ['short of CPU for a second and a half', [BUSY, BUSY, BUSY], true],
    ['late, then short of CPU', [LATE, BUSY, BUSY], true],
    ['near the limit', [NEARLY, NEARLY, NEARLY], false],
  ])('judges samples that are %s', (_what, samples, isOverloaded) => {
    expect(after(...samples)).toBe(isOverloaded);
  });

  it('reports overload until two samples are well below the limits', () => {
    expect(after(LATE, LATE, LATE, QUIET)).toBe(true);
    expect(after(LATE, LATE, LATE, NEARLY, NEARLY, NEARLY)).toBe(true);
    expect(after(LATE, LATE, LATE, QUIET, QUIET)).toBe(false);
    expect(after(MEDIA_LATE, MEDIA_LATE, MEDIA_LATE, MEDIA_NEARLY, MEDIA_NEARLY)).toBe(true);
    expect(after(MEDIA_LATE, MEDIA_LATE, MEDIA_LATE, QUIET, QUIET)).toBe(false);
  });
});

describe('the overload detector of this process', () => {
  it('reports an overload at the third sample over a limit, and logs once which figure it was', () => {
    const clock = new VirtualClock();
    const log = new EventLog();
    // Any process that runs takes some CPU.
    const monitor = new OverloadDetector({ ...LIMITS, maxEventLoopDelayMs: 60_000, maxCpuPercent: 0 }, () => ON_TIME, clock, log);
    monitor.start();
    const seen = [1, 2, 3, 4].map(() => {
      clock.advance(500);
      return monitor.excess?.replace(/\d+ %, /, '… %, ') ?? null;
    });
    monitor.stop();
    const over = 'the process uses its CPU: … %, limit 0 %';
    expect(seen).toEqual([null, null, over, over]);
    expect(log.named('gateway.overload.began')).toMatchObject([{ fields: { over: 'cpu_percent', limit: 0 } }]);
  });

  it('includes the delay of the media threads, and logs it at the end too', () => {
    const clock = new VirtualClock();
    const log = new EventLog();
    let frameMs = 41;
    const limits = { ...LIMITS, maxEventLoopDelayMs: 60_000, maxCpuPercent: 100_000 };
    const detector = new OverloadDetector(limits, () => ({ frameMs, arrivalMs: 0 }), clock, log);
    detector.start();
    clock.advance(1_500);
    const during = detector.excess;
    frameMs = 31;
    clock.advance(1_000);
    detector.stop();
    expect([during, detector.excess]).toEqual(['audio leaves late: 41 ms, limit 40 ms', null]);
    expect(log.events.map(({ event, fields }) => [event, fields.media_delay_ms])).toEqual([
      ['gateway.overload.began', 41],
      ['gateway.overload.ended', 31],
    ]);
  });
});

describe('the delay of a media thread', () => {
  it('is the 99th percentile of its wake-ups since the last reading, in whole milliseconds; 0 without any', () => {
    const delay = new FrameDelay();
    expect(delay.take()).toBe(0);
    for (let wakeUp = 1; wakeUp <= 200; wakeUp += 1) delay.add(wakeUp <= 2 ? 70 : wakeUp === 3 ? 55.4 : 0.5);
    expect(delay.take()).toBe(55);
    delay.add(12);
    expect(delay.take()).toBe(12);
    expect(delay.take()).toBe(0);
    for (let wakeUp = 0; wakeUp < 5_000; wakeUp += 1) delay.add(3);
    expect(delay.take()).toBe(3);
  });
});
