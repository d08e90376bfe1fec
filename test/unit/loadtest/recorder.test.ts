import { describe, expect, it } from 'vitest';
import { StageRecorder, type UsageSample } from '../../../src/loadtest/recorder.js';

const RUN_START = 1_000_000;
const plan = { cps: 10, calls: 30, holdMs: 1_000, mediaCalls: 0 };
const counters = (second: number, created: number, current: number, failed = 0) => ({
  atMs: RUN_START + second * 1_000,
  created,
  current,
  successful: created - current - failed,
  failed,
});
const usage = (over: Partial<UsageSample>): UsageSample => ({
  name: 'gateway',
  side: 'gateway',
  pid: 7,
  cpuMs: 500,
  cpu: 50,
  threadBusy: 40,
  memoryMb: 100,
  openFiles: 20,
  maxOpenFiles: 1_000,
  ...over,
});

function recorder(): StageRecorder {
  const made = new StageRecorder(1, RUN_START, plan);
  for (const process of [0, 1]) made.begin(process, { cps: 5, calls: 15 }, RUN_START + 700);
  return made;
}

describe('the record of a stage', () => {
  it('sums what several SIPp processes count, second by second', () => {
    const stage = recorder();
    const counts = [counters(0.1, 0, 0), counters(1.7, 5, 5), counters(2.7, 10, 4)];
    for (const count of counts) for (const process of [0, 1]) stage.counters(process, count);
    expect(stage.seconds().map(({ at, started, inProgress }) => ({ at, started, inProgress }))).toEqual([
      { at: 0, started: 0, inProgress: 0 },
      { at: 1, started: 10, inProgress: 10 },
      { at: 2, started: 10, inProgress: 8 },
    ]);
    expect([stage.started, stage.successful, stage.peakInProgress, stage.behind]).toEqual([20, 12, 10, 0]);
  });

  it('has how far SIPp is behind its schedule', () => {
    const stage = recorder();
    stage.counters(0, counters(2.7, 4, 4));
    stage.counters(0, counters(3.7, 15, 4));
    expect(stage.behind).toBe(6);
  });

  it('has percentiles of each second, and none of a second without answers', () => {
    const stage = recorder();
    for (let call = 1; call <= 100; call += 1) stage.answered(RUN_START + 500, call);
    stage.answered(RUN_START + 2_500, 7);
    expect(stage.seconds().map(({ answered, p50, p99 }) => [answered, p50, p99])).toEqual([
      [100, 50, 99],
      [0, null, null],
      [1, 7, 7],
    ]);
    expect(stage.latency?.count).toBe(101);
  });

  it('measures the rate by when INVITEs were sent', () => {
    const stage = recorder();
    for (let call = 0; call <= 20; call += 1) stage.answered(RUN_START + call * 100 + 5, 5);
    expect(stage.callsPerSecond).toBeCloseTo(10, 6);
  });

  it('measures the rate of all calls that were started, when few of them are answered', () => {
    const stage = recorder();
    // 20/s for 4.2 s, of which every seventeenth is answered.
    for (const second of [1, 2, 3, 4, 4.2]) {
      for (const process of [0, 1]) stage.counters(process, counters(0.7 + Math.ceil(second), 10 * second, 10));
    }
    for (let call = 0; call < 5; call += 1) stage.answered(RUN_START + 700 + call * 850 + 5, 5);
    expect(stage.started).toBe(84);
    expect(stage.callsPerSecond).toBeGreaterThan(19);
    expect(stage.callsPerSecond).toBeLessThan(21);
  });

  it('has a rate when no call is answered, and none before a call was started', () => {
    const stage = recorder();
    expect(stage.callsPerSecond).toBe(0);
    for (const second of [1, 2, 3]) for (const process of [0, 1]) stage.counters(process, counters(0.7 + second, 5 * second, 5));
    expect(stage.callsPerSecond).toBeGreaterThan(9);
    expect(stage.callsPerSecond).toBeLessThan(11);
  });

  it('counts failures by code and reason, and those that no log has', () => {
    const stage = recorder();
    const error = { atMs: RUN_START, code: '503', reason: 'OVERLOADED' };
    stage.error(error);
    stage.error(error);
    stage.error({ ...error, code: 'timeout', reason: null });
    stage.counters(0, counters(1, 10, 0, 5));
    expect(stage.failures).toEqual([
      { code: '503', reason: 'OVERLOADED', count: 2 },
      { code: 'other', reason: null, count: 2 },
      { code: 'timeout', reason: null, count: 1 },
    ]);
    expect(stage.failed).toBe(5);
    expect(stage.seconds()[0]?.failures).toEqual({ '503 OVERLOADED': 2, timeout: 1 });
  });

  it('does not count calls that an interruption ended as failed, but those of an overdue stage', () => {
    const [interrupted, overdue] = [recorder(), recorder()];
    overdue.isOverdue = true;
    for (const stage of [interrupted, overdue]) {
      stage.error({ atMs: RUN_START, code: 'interrupted', reason: null });
      stage.counters(0, counters(1, 1, 0, 1));
    }
    expect([interrupted.failed, interrupted.interrupted]).toEqual([0, 1]);
    expect(overdue.failures).toEqual([{ code: 'unfinished', reason: null, count: 1 }]);
  });

  it('counts calls of a lost connection as failed', () => {
    const stage = recorder();
    stage.counters(0, counters(1, 8, 3));
    stage.lost(0, RUN_START + 1_500);
    expect(stage.failures).toEqual([{ code: 'connection', reason: null, count: 3 }]);
    expect(stage.inProgress).toBe(0);
  });

  it('has figures of each process, CPU a call among them', () => {
    const stage = recorder();
    stage.counters(0, counters(1, 10, 0));
    stage.usage(RUN_START, [usage({}), usage({ name: 'sipp 1', side: 'load', cpu: 5 })], 60, 900);
    stage.usage(RUN_START + 1_000, [usage({ cpuMs: 1_000, cpu: 100, threadBusy: 90, memoryMb: 150 })], 80, 800);
    const [gateway] = stage.processes();
    expect(gateway).toEqual({
      name: 'gateway',
      side: 'gateway',
      pid: 7,
      cpuMean: 75,
      cpuPeak: 100,
      threadBusy: 90,
      cpuMsPerCall: 150,
      memoryMb: 150,
      openFiles: 20,
      maxOpenFiles: 1_000,
    });
    expect([stage.machineBusy, stage.memoryFreeMb]).toEqual([80, 800]);
    expect(stage.seconds()[1]?.processes).toEqual({ gateway: { cpu: 100, memoryMb: 150 } });
  });
});
