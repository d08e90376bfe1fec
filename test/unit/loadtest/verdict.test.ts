import { describe, expect, it } from 'vitest';
import type { MediaFigures, ProcessFigures } from '../../../src/loadtest/figures.js';
import { limitOf, verdictOf, type StageFacts, type Thresholds } from '../../../src/loadtest/verdict.js';

const thresholds: Thresholds = { maxFailures: 0, maxP99: 10, maxLossPercent: 0.1, echoes: true };
const process = (over: Partial<ProcessFigures> = {}): ProcessFigures => ({
  name: 'gateway',
  side: 'gateway',
  pid: 1,
  cpuMean: 40,
  cpuPeak: 60,
  threadBusy: 50,
  cpuMsPerCall: 1,
  memoryMb: 100,
  openFiles: 100,
  maxOpenFiles: 1_000,
  ...over,
});
const facts = (over: Partial<StageFacts> = {}): StageFacts => ({
  plan: { cps: 100, calls: 1_000, holdMs: 1_000, mediaCalls: 0 },
  started: 1_000,
  failed: 0,
  failures: [],
  latency: { count: 1_000, p50: 2, p90: 3, p99: 4, max: 9 },
  behind: 2,
  media: null,
  processes: [process(), process({ name: 'sipp 1', side: 'load', threadBusy: 20 })],
  machine: { cores: 2, busyPercent: 50, memoryFreeMb: 4_000 },
  interrupted: false,
  problem: null,
  ...over,
});
const MEDIA: MediaFigures = {
  calls: 10,
  unchecked: 0,
  tone: { heard: 10, silent: 0, wrong: 0 },
  digits: { pressed: 10, answered: 10 },
  packets: { sent: 1_000, received: 1_000, expected: 1_000, lost: 0, outOfOrder: 0, duplicates: 0, rejected: 0 },
  delayMs: { p50: 40, p99: 60, max: 70 },
  jitterMs: 1,
  mos: { least: 4.4, mean: 4.4 },
  lateMs: 0,
};

describe('the verdict on a stage', () => {
  it('is passed when nothing failed and p99 is under its limit', () => {
    expect(verdictOf(facts(), thresholds)).toEqual({ passed: true, faults: [], limit: null });
    expect(verdictOf(facts({ media: MEDIA }), thresholds).passed).toBe(true);
  });

  it.each<[string, Partial<StageFacts>, string]>([
    ['a failed call', { failed: 1, failures: [{ code: 'timeout', reason: null, count: 1 }] }, '1 call failed'],
    ['a slow answer', { latency: { count: 9, p50: 1, p90: 2, p99: 10.4, max: 11 } }, 'p99 is 10.4 ms, over 10 ms'],
    ['no answer', { latency: null }, 'no call was answered'],
    ['a call that was not placed', { started: 999 }, '1 of 1000 calls were not placed'],
    ['a load generator that broke off', { problem: 'SIPp ended with 255: no' }, 'SIPp ended with 255: no'],
    ['a load that was not placed in time', { behind: 26 }, 'the load generator was 26 calls behind its schedule'],
    ["another call's audio", { media: { ...MEDIA, tone: { heard: 9, silent: 0, wrong: 1 } } }, "1 call heard another call's audio"],
    ['silence', { media: { ...MEDIA, tone: { heard: 9, silent: 1, wrong: 0 } } }, '1 call did not hear their own tone come back'],
    ['a digit that was not read back', { media: { ...MEDIA, digits: { pressed: 10, answered: 9 } } }, '1 of 10 keys were not read back'],
    ['loss', { media: { ...MEDIA, packets: { ...MEDIA.packets, lost: 2 } } }, '0.20 % of the packets were lost'],
    ['packets with a wrong key', { media: { ...MEDIA, packets: { ...MEDIA.packets, rejected: 3 } } }, '3 packets failed their SRTP check'],
    ['media that was not checked', { media: { ...MEDIA, unchecked: 2 } }, 'the media of 2 calls could not be checked'],
  ])('has a fault for %s', (_name, over, fault) => {
    const verdict = verdictOf(facts(over), thresholds);
    expect(verdict.passed).toBe(false);
    expect(verdict.faults).toEqual([fault]);
    expect(verdict.limit).not.toBeNull();
  });

  it.each<[string, Partial<StageFacts>]>([
    ['as many failures as allowed', { failed: 3, failures: [{ code: 'timeout', reason: null, count: 3 }] }],
    ['a p99 at its limit', { latency: { count: 9, p50: 1, p90: 2, p99: 10, max: 11 } }],
    ['a quarter of a second of calls that are late', { behind: 25 }],
    ['two late calls of a slow load', { behind: 2, plan: { cps: 1, calls: 10, holdMs: 1_000, mediaCalls: 0 } }],
    ['loss at its limit', { media: { ...MEDIA, packets: { ...MEDIA.packets, lost: 1 } } }],
    ['media of which nothing was expected', { media: { ...MEDIA, packets: { ...MEDIA.packets, expected: 0, lost: 0 } } }],
  ])('has no fault for %s', (_name, over) => {
    expect(verdictOf(facts(over), { ...thresholds, maxFailures: 3 })).toEqual({ passed: true, faults: [], limit: null });
  });

  it('has a fault for three late calls of a slow load', () => {
    const slow = { behind: 3, plan: { cps: 1, calls: 10, holdMs: 1_000, mediaCalls: 0 } };
    expect(verdictOf(facts(slow), thresholds).faults).toEqual(['the load generator was 3 calls behind its schedule']);
  });

  it('depends on thresholds that allow some of it', () => {
    const silent = { ...MEDIA, tone: { heard: 0, silent: 10, wrong: 0 }, digits: { pressed: 10, answered: 0 } };
    const lax: Thresholds = { maxFailures: 5, maxP99: null, maxLossPercent: 1, echoes: false };
    const over = {
      failed: 5,
      media: { ...silent, packets: { ...MEDIA.packets, lost: 9 } },
      latency: { count: 1, p50: 1, p90: 1, p99: 900, max: 900 },
    };
    expect(verdictOf(facts(over), lax)).toMatchObject({ passed: true, faults: [] });
  });

  it('is not passed for an interrupted stage, which has no limit', () => {
    expect(verdictOf(facts({ interrupted: true, started: 10 }), thresholds)).toEqual({ passed: false, faults: [], limit: null });
  });
});

describe('the limit of a stage in the verdict', () => {
  it('is first one of the gateway, with its settings', () => {
    const failures = [
      { code: 'timeout', reason: null, count: 90 },
      { code: '503', reason: 'OVERLOADED', count: 10 },
    ];
    const limit = limitOf(facts({ failures, processes: [process({ threadBusy: 99 })] }));
    expect(limit).toMatchObject({ kind: 'refused', who: 'gateway' });
    expect(limit.text).toContain('10 calls: 503 OVERLOADED; the busiest process was gateway with 99 %');
    expect(limit.settings).toContain('admission.max_cpu_percent');
  });

  it('is for a 503 without a reason the SIP server’s limit of one source', () => {
    const limit = limitOf(facts({ failures: [{ code: '503', reason: null, count: 3 }] }));
    expect(limit.settings[0]).toBe('sip.max_requests_per_second_per_source');
  });

  it('is for a refusal without a setting that refusal', () => {
    const limit = limitOf(facts({ failures: [{ code: '404', reason: 'NUMBER_NOT_ATTACHED', count: 3 }] }));
    expect(limit).toEqual({
      kind: 'refused',
      who: 'gateway',
      text: 'the gateway refused or ended 3 calls: 404 NUMBER_NOT_ATTACHED',
      settings: [],
    });
  });

  it('is the load generator, before any process of the gateway', () => {
    const full = [process({ threadBusy: 97 }), process({ name: 'sipp 1', side: 'load', threadBusy: 92 })];
    expect(limitOf(facts({ processes: full }))).toMatchObject({ kind: 'load-generator', who: 'sipp 1' });
    expect(limitOf(facts({ behind: 500 })).text).toBe('the load generator limits, not the gateway: calls were started late (500 behind)');
  });

  it('may be open files and memory', () => {
    const files = process({ name: 'rtpengine', openFiles: 990 });
    expect(limitOf(facts({ processes: [process({ threadBusy: 99 }), files] }))).toMatchObject({ kind: 'open-files', who: 'rtpengine' });
    const machine = { cores: 2, busyPercent: 50, memoryFreeMb: 100 };
    expect(limitOf(facts({ machine, processes: [process(), process({ name: 'redis-server', memoryMb: 9_000 })] }))).toMatchObject({
      kind: 'memory',
      who: 'redis-server',
    });
  });

  it('may be a thread that fills its core', () => {
    expect(limitOf(facts({ processes: [process({ cpuMean: 130 }), process({ name: 'sip-server', threadBusy: 96 })] }))).toMatchObject({
      kind: 'cpu',
      who: 'sip-server',
    });
  });

  it('may be all cores of the machine, with the other users of them', () => {
    const machine = { cores: 2, busyPercent: 99, memoryFreeMb: 4_000 };
    const limit = limitOf(
      facts({ machine, processes: [process({ cpuMean: 70 }), process({ name: 'sipp 1', side: 'load', cpuMean: 30 })] }),
    );
    expect(limit).toMatchObject({ kind: 'machine', who: 'gateway' });
    expect(limit.text).toContain('gateway used 70 % of a core, the load generator itself 30 %, processes of neither 98 %');
  });

  it('may be unknown', () => {
    expect(limitOf(facts())).toMatchObject({
      kind: 'unknown',
      text: 'no process was at its limit; the busiest was gateway with 50 % of a core',
    });
    expect(limitOf(facts({ processes: [], failures: [{ code: 'timeout', reason: null, count: 1 }] })).settings[0]).toContain(
      'sip.drop_above_factor',
    );
  });

  it.each<[string, Partial<StageFacts>, string]>([
    ['a thread at 85 %', { processes: [process({ threadBusy: 85 })] }, 'cpu'],
    ['a thread below', { processes: [process({ threadBusy: 84.9 })] }, 'unknown'],
    ['a load generator at 85 %', { processes: [process(), process({ side: 'load', threadBusy: 85 })] }, 'load-generator'],
    ['a load generator below', { processes: [process(), process({ side: 'load', threadBusy: 84.9 })] }, 'unknown'],
    ['cores at 90 %', { machine: { cores: 2, busyPercent: 90, memoryFreeMb: 4_000 } }, 'machine'],
    ['cores below', { machine: { cores: 2, busyPercent: 89.9, memoryFreeMb: 4_000 } }, 'unknown'],
    ['cores that were not measured', { machine: { cores: 2, busyPercent: null, memoryFreeMb: 4_000 } }, 'unknown'],
    ['95 % of the open files', { processes: [process({ openFiles: 950 })] }, 'open-files'],
    ['fewer open files', { processes: [process({ openFiles: 949 })] }, 'unknown'],
    ['open files without a limit', { processes: [process({ openFiles: 1e6, maxOpenFiles: null })] }, 'unknown'],
    ['less than 200 MB', { machine: { cores: 2, busyPercent: 50, memoryFreeMb: 199 } }, 'memory'],
    ['200 MB', { machine: { cores: 2, busyPercent: 50, memoryFreeMb: 200 } }, 'unknown'],
  ])('is right for %s', (_name, over, kind) => {
    expect(limitOf(facts(over)).kind).toBe(kind);
  });

  it.each([
    ['299', null, 'unknown'],
    ['300', null, 'refused'],
    ['699', null, 'refused'],
    ['timeout', null, 'unknown'],
    ['BYE', 'MEDIA_TIMEOUT', 'refused'],
  ])('of a failure with %s and the reason %s is %s', (code, reason, kind) => {
    expect(limitOf(facts({ failures: [{ code, reason, count: 1 }] })).kind).toBe(kind);
  });

  it('is the most frequent refusal with a setting, with the settings of all of them once', () => {
    const failures = [
      { code: '404', reason: 'NUMBER_NOT_ATTACHED', count: 50 },
      { code: '503', reason: 'MEDIA_UNAVAILABLE', count: 3 },
      { code: '503', reason: 'OVERLOADED', count: 9 },
    ];
    const machine = { cores: 2, busyPercent: 90, memoryFreeMb: 4_000 };
    const { text, settings } = limitOf(facts({ failures, machine }));
    expect(text).toMatch(/^the gateway refused or ended 9 calls: 503 OVERLOADED; .*; the cores of this machine were 90 % busy$/);
    expect(new Set(settings).size).toBe(settings.length);
    expect(settings).toEqual(expect.arrayContaining(['admission.max_calls', 'rtpengine.timeout_ms']));
  });
});
