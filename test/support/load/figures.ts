import type { MediaFigures, ProcessFigures, RunFigures, Second, StageFigures } from '../../../src/loadtest/figures.js';

/** A second of a run, with ten calls that are answered. */
export const secondOfRun = (at: number, over: Partial<Second> = {}): Second => ({
  at,
  stage: 1,
  started: 10,
  answered: 10,
  failed: 0,
  inProgress: 20,
  p50: 2,
  p90: 3,
  p99: 4,
  failures: {},
  media: null,
  processes: { gateway: { cpu: 40, memoryMb: 100 } },
  ...over,
});

export const processOfRun = (over: Partial<ProcessFigures> = {}): ProcessFigures => ({
  name: 'gateway',
  side: 'gateway',
  pid: 1,
  cpuMean: 40,
  cpuPeak: 50,
  threadBusy: 45,
  cpuMsPerCall: 1.5,
  memoryMb: 100,
  openFiles: 9,
  maxOpenFiles: 100,
  ...over,
});

/** What ten calls heard, one of them badly. */
export const MEDIA_OF_RUN: MediaFigures = {
  calls: 10,
  unchecked: 0,
  tone: { heard: 7, silent: 2, wrong: 1 },
  digits: { pressed: 20, answered: 19 },
  packets: { sent: 3_000, received: 2_990, expected: 3_000, lost: 10, outOfOrder: 3, duplicates: 2, rejected: 1 },
  delayMs: { p50: 40.25, p99: 55, max: 60 },
  jitterMs: 1.5,
  mos: { least: 4.1, mean: 4.25 },
  lateMs: 2,
};

/** A stage of which one call was refused. */
export const STAGE_OF_RUN: StageFigures = {
  plan: { cps: 10, calls: 20, holdMs: 2_000, mediaCalls: 0 },
  startedAt: '2026-01-01T00:00:00.000Z',
  seconds: 4,
  started: 20,
  answered: 19,
  successful: 19,
  failed: 1,
  interrupted: 0,
  callsPerSecond: 10,
  peakInProgress: 20,
  failures: [{ code: '503', reason: 'OVERLOADED', count: 1 }],
  behind: 0,
  media: null,
  latency: { count: 19, p50: 2, p90: 3, p99: 4, max: 5 },
  processes: [processOfRun()],
  machine: { cores: 2, busyPercent: 50, memoryFreeMb: 1_000 },
  verdict: {
    passed: false,
    faults: ['1 calls failed'],
    limit: { kind: 'refused', who: 'gateway', text: 'it refused', settings: ['admission.max_calls'] },
  },
};

export const RUN: RunFigures = {
  target: '127.0.0.1:5061',
  number: '+15550100100',
  scenario: 'answered',
  sipp: 'v3.6.1',
  measured: 'INVITE to 200',
  connections: 1,
  startedAt: '2026-01-01T00:00:00.000Z',
  seconds: 4,
  interrupted: false,
  passed: false,
  batchId: null,
  notes: [],
  ramps: [],
  stages: [STAGE_OF_RUN],
  timeline: [
    secondOfRun(0),
    secondOfRun(1, { failed: 1, failures: { '503 OVERLOADED': 1 } }),
    secondOfRun(2, { p50: null, p90: null, p99: null }),
  ],
};
