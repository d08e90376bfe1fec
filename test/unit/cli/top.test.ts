import { describe, expect, it } from 'vitest';
import { renderTop, quantile, Samples, topView } from '../../../src/cli/top/view.js';

const scrape = (at: number, lines: readonly string[]): Samples => new Samples(['# TYPE x counter', ...lines, ''].join('\n'), at * 1_000);

const BEFORE = scrape(100, [
  'trunkline_process_up{process="gateway"} 1',
  'trunkline_process_up{process="gateway-2"} 0',
  'trunkline_process_cpu_seconds_total{mode="user",process="gateway"} 10',
  'trunkline_calls_begun_total{process="gateway"} 100',
  'trunkline_calls_refused_total{reason="INTERNAL_ERROR",fault="gateway",process="gateway"} 1',
  'trunkline_call_answer_seconds_bucket{le="0.1",process="gateway"} 10',
  'trunkline_call_answer_seconds_bucket{le="0.2",process="gateway"} 10',
  'trunkline_call_answer_seconds_bucket{le="+Inf",process="gateway"} 10',
  'trunkline_media_packets_received_total{worker="1",process="gateway"} 1000',
  'trunkline_media_packets_lost_total{worker="1",process="gateway"} 0',
]);

const NOW = scrape(102, [
  'trunkline_process_up{process="gateway"} 1',
  'trunkline_process_up{process="gateway-2"} 0',
  'trunkline_process_cpu_seconds_total{mode="user",process="gateway"} 11',
  'trunkline_process_resident_bytes{process="gateway"} 104857600',
  'trunkline_calls_in_progress{process="gateway"} 7',
  'trunkline_calls_in_progress{process="gateway-2"} 5',
  'trunkline_calls_begun_total{process="gateway"} 140',
  'trunkline_calls_ended_total{reason="CALLER_HANGUP",fault="nobody",process="gateway"} 30',
  'trunkline_calls_refused_total{reason="INTERNAL_ERROR",fault="gateway",process="gateway"} 4',
  'trunkline_call_answer_seconds_bucket{le="0.1",process="gateway"} 30',
  'trunkline_call_answer_seconds_bucket{le="0.2",process="gateway"} 50',
  'trunkline_call_answer_seconds_bucket{le="+Inf",process="gateway"} 50',
  'trunkline_relay_up{node="10.0.0.1:2223",process="gateway"} 1',
  'trunkline_relay_up{node="10.0.0.2:2223",process="gateway"} 0',
  'trunkline_media_packets_received_total{worker="1",process="gateway"} 1970',
  'trunkline_media_packets_lost_total{worker="1",process="gateway"} 30',
  'trunkline_calls_ended_total{reason="AGENT_LOST",fault="agent",process="gateway"} 0',
  'trunkline_redis_up{process="gateway"} 1',
  'trunkline_taking_calls{process="gateway"} 1',
]);

describe('the view of trunkline top', () => {
  const view = topView(NOW, BEFORE, [{ atMs: 0, text: 'earlier' }]);

  it('covers all processes, with rates over the time between two scrapes', () => {
    expect(view.calls).toEqual({ live: 12, headroom: 0, begunPerS: 20, begun: 140 });
    expect(view.processes.map(({ name, isUp, cpuPercent }) => [name, isUp, cpuPercent])).toEqual([
      ['gateway', true, 50],
      ['gateway-2', false, 0],
    ]);
    expect(view.media.lossPercent).toBeCloseTo(3);
    expect(view.relays.map(({ isUp }) => isUp)).toEqual([true, false]);
    expect([view.isRedisUp, view.isTakingCalls]).toEqual([true, true]);
  });

  it('has the answer time of the calls since the scrape before', () => {
    expect(view.answer.p50Ms).toBeCloseTo(100);
    expect(view.answer.p99Ms).toBeCloseTo(198);
  });

  it('has the newest failures first, without calls that ended well', () => {
    expect(view.newest.map(({ text }) => text)).toEqual(['3 × INTERNAL_ERROR, refused (gateway)', 'earlier']);
    expect(view.reasons.map(({ reason, count }) => [reason, count])).toEqual([
      ['CALLER_HANGUP', 30],
      ['INTERNAL_ERROR', 4],
    ]);
  });

  it('has no negative rates after a process was restarted', () => {
    const { calls, media } = topView(BEFORE, NOW, []);
    expect([calls.begunPerS, media.inPerS, media.lossPercent]).toEqual([0, 0, 0]);
  });

  it('has no rates and no failures at the first scrape', () => {
    const first = topView(NOW, null, []);
    expect([first.calls.begunPerS, first.newest]).toEqual([0, []]);
  });
});

describe('the screen of trunkline top', () => {
  const view = topView(NOW, BEFORE, []);

  it.each([
    [80, 24],
    [40, 10],
    [200, 60],
  ])('fits into %i columns and %i rows', (columns, rows) => {
    const lines = renderTop(view, { columns, rows, isColoured: false }, 'http://127.0.0.1:8080');
    expect(lines.length).toBeLessThanOrEqual(rows);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
  });

  it('has everything at 80 by 24', () => {
    const text = renderTop(view, { columns: 80, rows: 24, isColoured: false }, 'http://127.0.0.1:8080').join('\n');
    for (const part of [
      'calls 12',
      'DOWN: gateway-2',
      '3.00 %',
      '10.0.0.2:2223',
      'does not answer',
      '50 %',
      'CALLER_HANGUP',
      '3 × INTERNAL_ERROR',
    ])
      expect(text).toContain(part);
  });

  it('is as wide with colours as without', () => {
    const lines = renderTop(view, { columns: 60, rows: 24, isColoured: true }, 'x');
    // eslint-disable-next-line no-control-regex -- the escape sequences are what is taken out
    const seen = lines.map((line) => line.replace(/\u001b\[[\d;]*m/g, '').length);
    expect(lines.join('')).toContain('\u001b[31;1m');
    expect(Math.max(...seen)).toBeLessThanOrEqual(60);
  });
});

it('a quantile lies in its bucket; in the last one it is the lower bound, and null without any', () => {
  const buckets = new Map([
    ['0.1', 50],
    ['0.2', 100],
    ['+Inf', 101],
  ]);
  expect(quantile(buckets, 0.25)).toBeCloseTo(0.0505);
  expect(quantile(buckets, 0.999)).toBe(0.2);
  expect(quantile(new Map([['+Inf', 0]]), 0.5)).toBeNull();
});
