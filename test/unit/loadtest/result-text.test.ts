import { describe, expect, it } from 'vitest';
import type { RunFigures, StageFigures } from '../../../src/loadtest/figures.js';
import { StageRecorder } from '../../../src/loadtest/recorder.js';
import { failureName, limitText, processTable, progressLine, resultText } from '../../../src/loadtest/result-text.js';
import { MEDIA_OF_RUN, processOfRun, RUN, STAGE_OF_RUN } from '../../support/load/figures.js';

const PASSED: StageFigures = {
  ...STAGE_OF_RUN,
  answered: 20,
  successful: 20,
  failed: 0,
  failures: [],
  processes: [],
  verdict: { passed: true, faults: [], limit: null },
};
const linesOf = (over: Partial<RunFigures>): string[] => resultText({ ...RUN, ...over }).split('\n');
/** The line that begins so. */
const lineOf = (stage: Partial<StageFigures>, start: string): string | undefined =>
  linesOf({ stages: [{ ...PASSED, ...stage }] }).find((line) => line.trimStart().startsWith(start));

it('a failure has its status as name, and the gateway’s own code where there is one', () => {
  expect([failureName({ code: '503', reason: 'DRAINING' }), failureName({ code: 'timeout', reason: null })]).toEqual([
    '503 DRAINING',
    'timeout',
  ]);
});

describe('the line of a run in progress', () => {
  const START = 1_000_000;
  const counted = (second: number, created: number) => ({
    atMs: START + second * 1_000,
    created,
    current: 3,
    successful: created - 3,
    failed: 0,
  });
  const lost = (packets: number) => ({ calls: 3, received: 9, lost: packets, jitterMs: 0, delay50: null, delay99: null, lateMs: 0 });
  const recorder = (mediaCalls: number): StageRecorder => new StageRecorder(1, START, { cps: 10, calls: 30, holdMs: 1_000, mediaCalls });

  it('has zeros at its beginning', () => {
    expect(progressLine(recorder(0), 499, '')).toBe('0 s  0 calls/s  0 in progress  0/30 answered  p50 - p99 -  0 failed');
  });

  it('has rate and latency of the last whole second, all failures and lost packets', () => {
    const stage = recorder(5);
    for (const [second, created] of [
      [1.7, 8],
      [2.7, 20],
    ] as const)
      stage.counters(0, counted(second, created));
    stage.answered(START + 1_200, 2.04);
    stage.answered(START + 2_200, 9);
    for (const reason of ['OVERLOADED', 'OVERLOADED', null]) stage.error({ atMs: START + 1_300, code: '503', reason });
    stage.media(START + 1_500, lost(4));
    stage.media(START + 2_500, lost(3));
    expect(progressLine(stage, 2_800, 'stage 2, ')).toBe(
      'stage 2, 3 s  8 calls/s  3 in progress  2/30 answered  p50 2.0 ms p99 2.0 ms  7 packets lost  failed: 503 OVERLOADED × 2, 503 × 1',
    );
  });
});

describe('the result of one stage', () => {
  it('has a row for each measurement', () => {
    expect(linesOf({})).toEqual([
      '',
      'Load test of 127.0.0.1:5061, number +15550100100 (answered scenario, SIPp v3.6.1)',
      '',
      '  calls           20 started of 20, 19 answered, 1 failed',
      '  rate            10.0 calls/s of 10 wanted, at most 0 behind schedule',
      '  in progress     20 at most, held 2.0 s each',
      '  INVITE to 200   p50 2.0 ms  p90 3.0 ms  p99 4.0 ms  max 5.0 ms',
      expect.stringMatching(/^ {2}failed {10}1 × 503 OVERLOADED {2}→ admission\.max_calls; /),
      '  limited         it refused → admission.max_calls',
      '',
      '  process  of       CPU   thread  ms/call  memory  files',
      '  gateway  gateway  40 %  45 %    1.50     100 MB  9 of 100',
      '  fault: 1 calls failed',
      '',
      'FAILED.',
    ]);
  });

  it('has no more rows than there are measurements', () => {
    expect(linesOf({ stages: [PASSED], passed: true }).slice(3)).toEqual([
      '  calls           20 started of 20, 20 answered, 0 failed',
      '  rate            10.0 calls/s of 10 wanted, at most 0 behind schedule',
      '  in progress     20 at most, held 2.0 s each',
      '  INVITE to 200   p50 2.0 ms  p90 3.0 ms  p99 4.0 ms  max 5.0 ms',
      '  limited         nothing: no limit of the gateway refused a call',
      '',
      '',
      'Passed.',
    ]);
  });

  it.each([
    [{ interrupted: 3 }, 'calls', '20 started of 20, 20 answered, 0 failed, 3 ended early'],
    [{ latency: null }, 'INVITE to 200', 'no call was answered'],
    [{ failures: [{ code: 'timeout', reason: null, count: 2 }] }, 'failed', '2 × timeout'],
  ] as const)('with %j has the row %s: %s', (stage, name, text) => {
    expect(lineOf(stage, name)).toBe(`  ${name.padEnd(14)}  ${text}`);
  });

  it('has what the calls heard', () => {
    const lines = linesOf({ stages: [{ ...PASSED, media: { ...MEDIA_OF_RUN, unchecked: 4 } }] });
    expect(lines.slice(7, 11)).toEqual([
      "  media           10 calls: own tone heard in 7, silent 2, another's 1; keys read back 19 of 20; 4 not checked",
      '  packets         3000 sent, 2990 received, 10 lost (0.333 %), 3 out of order, 2 twice, 1 failed their SRTP check',
      '                  delay there and back p50 40.3 ms  p99 55.0 ms  max 60.0 ms, jitter 1.5 ms at worst, MOS 4.25 (least 4.10)',
      '                  the generator itself was 2.0 ms late at worst',
    ]);
  });

  it('reports when no stamp came back, and omits unchecked calls when there are none', () => {
    expect(lineOf({ media: MEDIA_OF_RUN }, 'media')).toMatch(/read back 19 of 20$/);
    expect(lineOf({ media: { ...MEDIA_OF_RUN, delayMs: null, mos: null } }, 'no stamp')).toBe(
      `${' '.repeat(18)}no stamp came back, jitter 1.5 ms at worst`,
    );
  });
});

describe('the result of a run', () => {
  it('has a row for each stage where there are several', () => {
    const second = { ...PASSED, plan: { ...PASSED.plan, cps: 12.5 }, callsPerSecond: 12.46, latency: null };
    expect(linesOf({ stages: [STAGE_OF_RUN, second] }).slice(3)).toEqual([
      '  stage  wanted/s  calls/s  held  well  failed  p50 ms  p99 ms',
      '  1      10        10.0     20    19    1       2.0     4.0     failed: 1 calls failed',
      '  2      12.5      12.5     20    20    0       -       -       passed',
      '',
      'FAILED.',
    ]);
  });

  it('of several faults of a stage names each', () => {
    const verdict = { passed: false, faults: ['slow', 'late'], limit: null };
    expect(linesOf({ stages: [PASSED, { ...PASSED, verdict }] })[5]).toMatch(/failed: slow; late$/);
    expect(linesOf({ stages: [{ ...PASSED, verdict }] })).toEqual(expect.arrayContaining(['  fault: slow', '  fault: late']));
  });

  it('has the highest value of each ramp, and its limit', () => {
    const limit = { kind: 'cpu', who: 'gateway', text: 'a core was full', settings: ['one', 'two'] } as const;
    const ramps = [
      { kind: 'rate', highest: 400, lowestFailed: 420, limit },
      { kind: 'held', highest: 0, lowestFailed: null, limit: null },
    ] as const;
    expect(linesOf({ ramps, stages: [] }).slice(3)).toEqual([
      '',
      'Highest: 400 calls a second (420 failed)',
      '  limited by      a core was full',
      '                  → one',
      '                  → two',
      '',
      'Highest: 0 calls held (nothing higher was tried)',
      '',
      'FAILED.',
    ]);
  });

  it('ends with its notes, whether it was interrupted, and the outcome', () => {
    expect(linesOf({ stages: [], notes: ['one', 'two'], interrupted: true, passed: true }).slice(3)).toEqual([
      '',
      'Note: one',
      'Note: two',
      'Interrupted: calls in progress were ended, the figures are of what was until then.',
      'Passed.',
    ]);
  });
});

describe('the limit of a stage', () => {
  const of = (over: Partial<StageFigures>): string => limitText({ ...PASSED, ...over });
  const limited = (settings: readonly string[]) => ({
    verdict: { passed: false, faults: [], limit: { kind: 'memory', who: 'gateway', text: 'no memory', settings } as const },
  });

  it('is that of the verdict, with the settings that change it', () => {
    expect(of(limited([]))).toBe('no memory');
    expect(of(limited(['one', 'two']))).toBe('no memory → one; two');
  });

  it('is in a stage that passed what the gateway refused by a setting', () => {
    const failures = [
      { code: '486', reason: 'NUMBER_CALL_LIMIT', count: 2 },
      { code: 'timeout', reason: null, count: 1 },
      { code: '486', reason: 'ORG_CALL_LIMIT', count: 1 },
    ];
    expect(of({ failures })).toBe(
      "2 × 486 NUMBER_CALL_LIMIT  → max_concurrent_calls of the number's options; " +
        '1 × 486 ORG_CALL_LIMIT  → trunkline org set-limits --max-concurrent-calls',
    );
  });
});

describe('the table of processes', () => {
  it('has the gateway’s first, and the busiest of each side', () => {
    const table = processTable([
      processOfRun({ name: 'sipp 1', side: 'load', cpuMean: 90.4, cpuMsPerCall: null, maxOpenFiles: null }),
      processOfRun({ name: 'redis', cpuMean: 5 }),
      processOfRun({ name: 'gateway', cpuMean: 60 }),
      processOfRun({ name: 'sipp 2', side: 'load', cpuMean: 95 }),
    ]);
    expect(table).toEqual([
      '  process  of         CPU   thread  ms/call  memory  files',
      '  gateway  gateway    60 %  45 %    1.50     100 MB  9 of 100',
      '  redis    gateway    5 %   45 %    1.50     100 MB  9 of 100',
      '  sipp 2   load test  95 %  45 %    1.50     100 MB  9 of 100',
      '  sipp 1   load test  90 %  45 %    -        100 MB  9',
    ]);
  });

  it('is empty without processes', () => {
    expect(processTable([])).toEqual([]);
  });
});
