import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/client/index.js';
import { changesOf, formOf } from '../../../web/src/agents/agent-fields.js';
import { otherFigures, seriesOf, totalsOf, type LogEntry } from '../../../web/src/batches/series.js';
import { linesOf } from '../../../web/src/calls/quality.js';
import { clockTime, duration, isoOfLocal, localOfIso, milliseconds, shorten, sinceBegin } from '../../../web/src/format.js';
import { failureOf } from '../../../web/src/parts/failure.js';
import { jsonOf, numberOf, wordsOf } from '../../../web/src/parts/input.js';
import { retryDelayMs, troubleText } from '../../../web/src/retry.js';
import { pageOf } from '../../../web/src/routes.js';
import { ratesOf } from '../../../web/src/throughput/rates.js';

describe('the address of a page', () => {
  it.each([
    ['/console', { name: 'calls' }],
    ['/console/', { name: 'calls' }],
    ['/console/numbers', { name: 'numbers' }],
    ['/console/calls/a%2Fb', { name: 'call', id: 'a/b' }],
    ['/console/batches/1', { name: 'batch', id: '1' }],
    ['/console/numbers/1', { name: 'unknown' }],
    ['/console/calls/1/2', { name: 'unknown' }],
    ['/console/%zz', { name: 'unknown' }],
  ])('%s', (path, page) => expect(pageOf(path)).toEqual(page));
});

describe('a request that failed', () => {
  it('is repeated when that is useful, with backoff or as the server says, and never after a refusal', () => {
    const failed = (status: number, retryAfterSeconds: number | null = null) => ({ status, code: 'X', retryAfterSeconds });
    expect([1, 2, 3, 9].map((times) => retryDelayMs(failed(0), times))).toEqual([1_000, 2_000, 4_000, 15_000]);
    expect(retryDelayMs(failed(429, 7), 1)).toBe(7_000);
    expect(retryDelayMs(failed(503, 0), 1)).toBe(1_000);
    expect([400, 401, 403, 404, 409].map((status) => retryDelayMs(failed(status), 1))).toEqual([null, null, null, null, null]);
    expect(troubleText(failed(429, 7), 7_000)).toContain('Trying again in 7 s');
  });

  it('is reported at the field at fault, with the remedy where that is known', () => {
    const errors = [
      { error: 'VALIDATION' as const, message: 'is not an address', path: 'options.allowed_sources[1]' },
      { error: 'VALIDATION' as const, message: 'must be a number', path: 'phone_number' },
    ];
    const failure = failureOf(new ApiError('no', { status: 400, code: 'VALIDATION', errors }));
    expect(failure.errorAt('phone_number')).toBe('must be a number');
    expect(failure.errorAt('options.allowed_sources')).toBe('options.allowed_sources[1] is not an address');
    expect(failure.errorAt('options')).toContain('allowed_sources');
    expect(failure.errorAt('phone')).toBeUndefined();
    expect(failureOf(new ApiError('no', { status: 409, code: 'AGENT_IN_USE' })).advice).toContain('give the number another agent');
  });
});

describe('the times and figures of the console', () => {
  it('have a form for people', () => {
    expect([4_230, 9_990, 42_000, 187_000, 3_765_000].map(duration)).toEqual(['4.2 s', '10.0 s', '42 s', '3:07', '1:02:45']);
    expect([sinceBegin(12_345), sinceBegin(-5)]).toEqual(['+12.345 s', '-0.005 s']);
    expect([milliseconds(null), milliseconds(1.24), milliseconds(126.4)]).toEqual(['–', '1.2 ms', '126 ms']);
    expect([shorten('INVITE', 6), shorten('INVITE', 4)]).toEqual(['INVITE', 'INV…']);
    const at = new Date(2026, 0, 31, 14, 5, 9);
    expect(clockTime(at.toISOString(), at)).toBe('14:05:09');
    expect(clockTime(at.toISOString(), new Date(2026, 1, 1))).toBe('2026-01-31 14:05:09');
    expect(localOfIso(isoOfLocal('2026-01-31T14:05'))).toBe('2026-01-31T14:05');
    expect([isoOfLocal(''), isoOfLocal('soon'), localOfIso('')]).toEqual(['', '', '']);
  });

  it('of a batch become lines, including entries of any other type', () => {
    const entry = (second: number, event_type: string, payload: LogEntry['payload']): LogEntry => ({
      id: String(second),
      batch_id: 'b',
      org_id: 'o',
      event_type,
      timestamp: new Date(second * 1_000).toISOString(),
      payload,
    });
    const log = [
      entry(1, 'figures', { in_progress: 1, setup_p50_ms: null }),
      entry(2, 'figures', { in_progress: 3, setup_p50_ms: 80 }),
      entry(3, 'weather', { rain: 1, place: 'x' }),
      entry(4, 'complete', { calls_total: 9, calls_failed: 1, calls_successful: 8 }),
    ];
    expect(seriesOf(log, 'figures', ['in_progress', 'setup_p50_ms', 'absent'])).toEqual({
      x: [1, 2],
      lines: [
        { name: 'in_progress', values: [1, 3] },
        { name: 'setup_p50_ms', values: [null, 80] },
      ],
    });
    expect(otherFigures(log, ['figures', 'complete'])).toEqual([{ type: 'weather', fields: ['rain'] }]);
    expect([totalsOf(log), totalsOf([])]).toEqual([{ total: 9, failed: 1, successful: 8 }, null]);
  });

  it('of the throughput are calls a second, without the current interval', () => {
    const interval = (begun: number) => ({ at: '2026-01-01T00:00:00.000Z', begun, ended: 0, refused: 5 });
    expect(ratesOf({ step_seconds: 10, in_progress: 0, intervals: [interval(20), interval(3)] })).toMatchObject({
      begun: [2],
      refused: [0.5],
    });
  });

  it('of quality have a gap where a side reported nothing', () => {
    const figures = { lost_percent: 1, jitter_ms: 2, mos: 4.1 };
    const lines = linesOf([
      { at_ms: 5_000, from_caller: figures, to_caller: null, round_trip_ms: null },
      { at_ms: 10_000, from_caller: figures, to_caller: figures, round_trip_ms: 12 },
    ]);
    expect(lines).toMatchObject({ x: [5, 10], fromCaller: { mos: [4.1, 4.1] }, toCaller: { mos: [null, 4.1] } });
  });
});

describe('the input of a form', () => {
  it('is refused at its field when it cannot be sent', () => {
    expect([numberOf('a', ' '), numberOf('a', '12'), jsonOf('a', ''), jsonOf('a', '{"b":1}')]).toEqual([null, 12, null, { b: 1 }]);
    expect(() => numberOf('max_duration', 'x')).toThrow('max_duration must be a number');
    expect(() => jsonOf('metadata', '{')).toThrow('metadata is not JSON');
    expect(wordsOf('1.2.3.4,  10.0.0.0/8\n::1')).toEqual(['1.2.3.4', '10.0.0.0/8', '::1']);
  });

  it('of an agent is sent as far as it changed', () => {
    const before = formOf(null);
    expect(changesOf(before, before)).toEqual({});
    expect(changesOf(before, { ...before, name: 'Desk', prompt: 'Be brief.', max_duration: '5', metadata: '{"a":1}' })).toEqual({
      name: 'Desk',
      prompt: 'Be brief.',
      max_duration: 5,
      metadata: { a: 1 },
    });
    const bot = { ...before, prompt: 'x', stream: 'url', url: 'wss://bot.example.com/' };
    expect(changesOf(bot, { ...bot, prompt: '', format: 'pcmu' })).toEqual({ prompt: null, stream: { url: bot.url, format: 'pcmu' } });
    expect(changesOf(bot, { ...bot, stream: '' })).toEqual({ stream: null });
  });
});
