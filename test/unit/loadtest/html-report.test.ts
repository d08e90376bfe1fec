import { describe, expect, it } from 'vitest';
import type { RunFigures, Second, StageFigures } from '../../../src/loadtest/figures.js';
import { htmlReport } from '../../../src/loadtest/html-report.js';
import { resultText } from '../../../src/loadtest/result-text.js';

const second = (at: number, over: Partial<Second> = {}): Second => ({
  ...{ at, stage: 1, started: 10, answered: 10, failed: 0, inProgress: 20, p50: 2, p90: 3, p99: 4, failures: {}, media: null },
  processes: { gateway: { cpu: 40, memoryMb: 100 } },
  ...over,
});
const STAGE: StageFigures = {
  plan: { cps: 10, calls: 20, holdMs: 2_000, mediaCalls: 0 },
  ...{ startedAt: '2026-01-01T00:00:00.000Z', seconds: 4, started: 20, answered: 19, successful: 19, failed: 1, interrupted: 0 },
  ...{ callsPerSecond: 10, peakInProgress: 20, failures: [{ code: '503', reason: 'OVERLOADED', count: 1 }], behind: 0, media: null },
  latency: { count: 19, p50: 2, p90: 3, p99: 4, max: 5 },
  processes: [
    {
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
    },
  ],
  machine: { cores: 2, busyPercent: 50, memoryFreeMb: 1_000 },
  verdict: {
    passed: false,
    faults: ['1 calls failed'],
    limit: { kind: 'refused', who: 'gateway', text: 'it refused', settings: ['admission.max_calls'] },
  },
};
const RUN: RunFigures = {
  ...{
    target: '127.0.0.1:5061',
    number: '+15550100100',
    scenario: '</style><script>alert(1)</script>',
    sipp: 'v3.6.1',
    measured: 'INVITE to 200',
    connections: 1,
  },
  ...{
    startedAt: '2026-01-01T00:00:00.000Z',
    seconds: 4,
    interrupted: false,
    passed: false,
    batchId: null,
    notes: ['<b>note</b>'],
    ramps: [],
  },
  stages: [STAGE],
  timeline: [second(0), second(1, { failed: 1, failures: { '503 OVERLOADED': 1 } }), second(2, { p50: null, p90: null, p99: null })],
};

const UPLOT = { script: 'uPlot();', style: '.uplot{}' };
/** What each figure draws, by its title. */
const drawnIn = (html: string): Record<string, unknown> =>
  Object.fromEntries(
    [...html.matchAll(/<figcaption><b>(.*?)<\/b>.*?<script type="application\/json">(.*?)<\/script>/g)].map(([, title = '', data = '']) => [
      title,
      JSON.parse(data) as unknown,
    ]),
  );

describe('the HTML report', () => {
  it('needs nothing but itself, and nothing that came from outside is markup', () => {
    const html = htmlReport(RUN, UPLOT);
    expect(html).not.toMatch(/<script[^>]+src|alert\(1\)<\/script|<link|<img|url\(|https?:\/\/|<b>note/);
    expect(html).toContain('&#60;b&#62;note');
    for (const title of ['Calls', 'INVITE to 200', 'Calls in progress', 'Failed calls', 'CPU of each process', 'Memory of each process'])
      expect(html).toContain(`<b>${title}</b>`);
    expect(html).not.toContain('<b>Lost packets</b>');
    expect(html).toContain('503 OVERLOADED');
    expect(html).toContain('prefers-color-scheme:dark');
  });

  it('every tag that is opened is closed', () => {
    const open: string[] = [];
    for (const [, slash = '', name = '', rest = ''] of htmlReport(RUN, UPLOT)
      .replace(/<style>.*?<\/style>|<script>.*<\/script>/gs, '')
      .matchAll(/<(\/?)([a-z][a-z0-9]*)([^>]*)>/g)) {
      if (name === 'meta' || rest.endsWith('/')) continue;
      if (slash === '') open.push(name);
      else expect(open.pop()).toBe(name);
    }
    expect(open).toEqual([]);
  });

  it('of a ramp says what was highest, and has a row for each stage', () => {
    const ramps = [{ kind: 'rate', highest: 400, lowestFailed: 420, limit: STAGE.verdict.limit }] as const;
    const html = htmlReport({ ...RUN, ramps, stages: [STAGE, STAGE] }, UPLOT);
    expect(html).toContain('<b>400</b>');
    expect(html.match(/<tr><td>[12]<\/td><td>10<\/td>/g)).toHaveLength(2);
  });

  it('the table of the terminal names what limited and the settings', () => {
    const text = resultText(RUN);
    expect(text).toContain('1 × 503 OVERLOADED  → admission.max_calls; ');
    expect(text).toContain('it refused → admission.max_calls');
    expect(text.endsWith('FAILED.')).toBe(true);
  });

  it('draws each second, gaps as gaps, and what has no figures not at all', () => {
    const drawn = drawnIn(htmlReport({ ...RUN, stages: [STAGE, STAGE], timeline: [...RUN.timeline, second(3, { stage: 2 })] }, UPLOT));
    expect(drawn['INVITE to 200']).toMatchObject({
      x: [0, 1, 2, 3],
      series: [{ name: 'p50', values: [2, 2, null, 2] }, {}, {}],
      marks: [3],
    });
    expect(drawn['Failed calls']).toMatchObject({ series: [{ name: '503 OVERLOADED', values: [0, 1, 0, 0] }] });
    expect(Object.keys(drawn)).not.toContain('Lost packets');
  });

  it('a peer cannot end the script by what it answers', () => {
    const failures = { '500 </script><script>alert(2)': 1 };
    const html = htmlReport({ ...RUN, timeline: [second(0, { failures })] }, UPLOT);
    expect(html).not.toContain('<script>alert(2)');
    expect(drawnIn(html)['Failed calls']).toMatchObject({ series: [{ name: '500 </script><script>alert(2)' }] });
  });
});
