import { describe, expect, it } from 'vitest';
import type { RunFigures, StageFigures } from '../../../src/loadtest/figures.js';
import { htmlReport } from '../../../src/loadtest/html-report.js';
import { MEDIA_OF_RUN, processOfRun, RUN as PLAIN, secondOfRun as second, STAGE_OF_RUN as STAGE } from '../../support/load/figures.js';

const RUN: RunFigures = { ...PLAIN, scenario: '</style><script>alert(1)</script>', notes: ['<b>note</b>'] };

const UPLOT = { script: 'uPlot();', style: '.uplot{}' };
/** What each figure draws, by its title. */
const drawnIn = (html: string): Record<string, unknown> =>
  Object.fromEntries(
    [...html.matchAll(/<figcaption><b>(.*?)<\/b>.*?<script type="application\/json">(.*?)<\/script>/g)].map(([, title = '', data = '']) => [
      title,
      JSON.parse(data) as unknown,
    ]),
  );

/** Values and names of its cards. */
const cardsIn = (html: string): (readonly [string | undefined, string | undefined])[] =>
  [...html.matchAll(/<div class="card"><b>(.*?)<\/b><span>(.*?)<\/span><\/div>/g)].map(([, value, name]) => [value, name]);
/** The rows of the table under a heading. */
const tableOf = (html: string, heading: string): readonly (readonly (string | undefined)[])[] => {
  const table = new RegExp(`<h2>${heading}</h2><div class="wide"><table>(.*?)</table></div>`).exec(html)?.[1] ?? '';
  return [...table.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/g)].map(([, cell]) => cell),
  );
};
const reportOf = (over: Partial<RunFigures>): string => htmlReport({ ...PLAIN, ...over }, UPLOT);
const ofStage = (over: Partial<StageFigures>): string => reportOf({ stages: [{ ...STAGE, ...over }] });

describe('the HTML report', () => {
  it('loads nothing, and escapes everything that came from outside', () => {
    const html = htmlReport(RUN, UPLOT);
    expect(html).not.toMatch(/<script[^>]+src|alert\(1\)<\/script|<link|<img|url\(|https?:\/\/|<b>note/);
    expect(html).toContain('&#60;b&#62;note');
    for (const title of ['Calls', 'INVITE to 200', 'Calls in progress', 'Failed calls', 'CPU of each process', 'Memory of each process'])
      expect(html).toContain(`<b>${title}</b>`);
    expect(html).not.toContain('<b>Lost packets</b>');
    expect(html).toContain('503 OVERLOADED');
    expect(html).toContain('prefers-color-scheme:dark');
  });

  it('closes every tag that it opens', () => {
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

  it('has for a ramp its highest value, and a row for each stage', () => {
    const ramps = [{ kind: 'rate', highest: 400, lowestFailed: 420, limit: STAGE.verdict.limit }] as const;
    const html = htmlReport({ ...RUN, ramps, stages: [STAGE, STAGE] }, UPLOT);
    expect(html).toContain('<b>400</b>');
    expect(html.match(/<tr><td>[12]<\/td><td>10<\/td>/g)).toHaveLength(2);
  });

  it('draws each second, gaps as gaps, and omits what has no figures', () => {
    const drawn = drawnIn(htmlReport({ ...RUN, stages: [STAGE, STAGE], timeline: [...RUN.timeline, second(3, { stage: 2 })] }, UPLOT));
    expect(drawn['INVITE to 200']).toMatchObject({
      x: [0, 1, 2, 3],
      series: [{ name: 'p50', values: [2, 2, null, 2] }, {}, {}],
      marks: [3],
    });
    expect(drawn['Failed calls']).toMatchObject({ series: [{ name: '503 OVERLOADED', values: [0, 1, 0, 0] }] });
    expect(Object.keys(drawn)).not.toContain('Lost packets');
  });

  it('lets no answer of a peer end its script', () => {
    const failures = { '500 </script><script>alert(2)': 1 };
    const html = htmlReport({ ...RUN, timeline: [second(0, { failures })] }, UPLOT);
    expect(html).not.toContain('<script>alert(2)');
    expect(drawnIn(html)['Failed calls']).toMatchObject({ series: [{ name: '500 </script><script>alert(2)' }] });
  });

  it.each([
    [{ passed: true }, '<span class="good">passed</span>'],
    [{ passed: false }, '<span class="bad">failed</span>'],
    [{ passed: true, interrupted: true }, '<span class="good">interrupted</span>'],
  ])('has for a run with %j the heading %s', (over, outcome) => {
    expect(reportOf(over)).toContain(`<h1>Load test ${outcome}</h1>`);
  });

  it.each([
    [null, '4 s. \nSIPp v3.6.1, answered scenario.</p>'],
    ['B&1', '4 s. \nSIPp v3.6.1, answered scenario, batch B&#38;1.</p>'],
  ])('has for batch %s what was measured, and with what', (batchId, end) => {
    expect(reportOf({ batchId })).toContain(`<p class="soft">127.0.0.1:5061, number +15550100100, 2026-01-01T00:00:00.000Z, ${end}`);
  });

  it('has notes where there are any', () => {
    expect(reportOf({ notes: ['one', 'two'] })).toContain('\n<ul><li>one</li><li>two</li></ul>\n');
    expect(reportOf({ stages: [] })).not.toContain('<ul>');
  });

  it('has no cards and no tables for a run without a stage', () => {
    const html = reportOf({ stages: [], timeline: [] });
    expect(html.slice(html.indexOf('</p>'), html.indexOf('<script>'))).toBe('</p>\n<h2>Over time</h2><div class="plots"></div>\n');
  });

  it('has a card for each figure of its only stage', () => {
    const plain = [
      ['10.0/s', 'calls started, of 10/s wanted'],
      ['19 of 20', 'calls answered'],
      ['1', 'calls failed'],
      ['2.0 ms', 'INVITE to 200, p50'],
      ['4.0 ms', 'INVITE to 200, p99'],
      ['20', 'calls in progress at most'],
    ];
    expect(cardsIn(ofStage({}))).toEqual(plain);
    expect(ofStage({})).toContain('calls answered</span></div><div class="card"><b>1</b>');
    expect(cardsIn(reportOf({ stages: [STAGE, STAGE] }))).toEqual([]);
    expect(cardsIn(ofStage({ media: MEDIA_OF_RUN }))).toEqual([
      ...plain,
      ['7 of 10', 'calls heard their own tone'],
      ['0.333 %', 'packets lost, of 3000'],
      ['55 ms', 'audio there and back, p99 of the worst call'],
      ['4.10', 'MOS of the worst call'],
    ]);
  });

  it('has no value where there is no figure', () => {
    const html = ofStage({ latency: null, media: { ...MEDIA_OF_RUN, delayMs: null, mos: null } });
    const cards = cardsIn(html);
    expect(cards.filter(([value]) => value === '-').map(([, name]) => name)).toEqual([
      'INVITE to 200, p50',
      'INVITE to 200, p99',
      'audio there and back, p99 of the worst call',
    ]);
    expect(html).toContain('p99 of the worst call</span></div></div><ul>');
  });

  it('names the faults, and the limit', () => {
    const faulty = ofStage({ verdict: { ...STAGE.verdict, faults: ['a < b', 'c'] } });
    expect(faulty).toContain(
      '</div><ul><li class="bad">a &#60; b</li><li class="bad">c</li></ul><p>What limited: it refused → admission.max_calls</p>\n',
    );
    expect(ofStage({ failures: [], verdict: { passed: true, faults: [], limit: null } })).toContain(
      'in progress at most</span></div></div><p>What limited: nothing: no limit of the gateway refused a call</p>\n',
    );
  });

  it.each([
    [{ kind: 'rate', highest: 400, lowestFailed: 420, limit: null }, 'calls a second (420 failed)', ''],
    [{ kind: 'held', highest: 0, lowestFailed: null, limit: null }, 'calls held (nothing higher was tried)', ''],
    [
      { kind: 'rate', highest: 1, lowestFailed: 2, limit: { ...STAGE.verdict.limit!, settings: [] } },
      'calls a second (2 failed)',
      '<p>What limited: it refused</p>',
    ],
    [
      { kind: 'rate', highest: 1, lowestFailed: 2, limit: { ...STAGE.verdict.limit!, settings: ['a', 'b'] } },
      'calls a second (2 failed)',
      '<p>What limited: it refused → a; b</p>',
    ],
  ] as const)('has for the ramp %j: %s %s', (ramp, what, why) => {
    const card = `<div class="card"><b>${String(ramp.highest)}</b><span>highest number of ${what}</span></div>`;
    expect(reportOf({ ramps: [ramp], stages: [] })).toContain(`<div class="cards">${card}</div>${why}\n`);
  });

  it('has a table of the stages where there are several', () => {
    const html = reportOf({ stages: [STAGE, { ...STAGE, verdict: { passed: true, faults: [], limit: null } }] });
    expect(tableOf(html, 'Stages')).toEqual([
      ['stage', 'wanted/s', 'calls/s', 'held', 'well', 'failed', 'p50 ms', 'p99 ms', 'outcome'],
      ['1', '10', '10.0', '20', '19', '1', '2.0', '4.0', 'failed: 1 calls failed'],
      ['2', '10', '10.0', '20', '19', '1', '2.0', '4.0', 'passed'],
    ]);
    expect(ofStage({})).not.toContain('<h2>Stages</h2>');
  });

  it('has the failures of every stage with the settings to change; long texts are wrapped', () => {
    const stages = [
      { ...STAGE, failures: [{ code: 'timeout', reason: null, count: 2 }] },
      { ...STAGE, failures: [{ code: '486', reason: 'SOURCE_NOT_ALLOWED', count: 1 }] },
    ];
    const html = reportOf({ stages });
    const settings = 'admission.allowed_sources; allowed_sources of the number and the organization';
    expect(tableOf(html, 'Failures')).toEqual([
      ['stage', 'what', 'calls', 'set by'],
      ['1', 'timeout', '2', ''],
      ['2', '486 SOURCE_NOT_ALLOWED', '1', settings],
    ]);
    expect(html).toContain(`<td>486 SOURCE_NOT_ALLOWED</td><td>1</td><td class="text">${settings}</td>`);
    expect(ofStage({ failures: [] })).toContain('<h2>Failures</h2><p>None.</p>');
  });

  it.each([
    ['a'.repeat(40), `<td>${'a'.repeat(40)}</td>`],
    ['a'.repeat(41), `<td class="text">${'a'.repeat(41)}</td>`],
  ])('wraps a text of more than 40 letters: %s', (code, cell) => {
    expect(ofStage({ failures: [{ code, reason: null, count: 1 }] })).toContain(cell);
  });

  it('has the processes of the last stage', () => {
    const load = processOfRun({ name: 'sipp 1', side: 'load', cpuMsPerCall: null });
    const header = ['process', 'of', 'CPU', 'peak', 'busiest thread', 'ms a call', 'memory MB', 'files'];
    const stages = [STAGE, { ...STAGE, processes: [processOfRun(), load] }];
    expect(tableOf(reportOf({ stages }), 'Processes in the last stage')).toEqual([
      header,
      ['gateway', 'gateway', '40 %', '50 %', '45 %', '1.50', '100', '9'],
      ['sipp 1', 'load test', '40 %', '50 %', '45 %', '-', '100', '9'],
    ]);
    expect(tableOf(ofStage({}), 'Processes')[0]).toEqual(header);
    expect(ofStage({})).toContain('<th>files</th></tr><tr><td>gateway</td>');
    expect(ofStage({ processes: [] })).toContain('<h2>Processes</h2><p>None could be measured.</p>');
  });

  it('draws calls, latency, media and the processes, each in its unit', () => {
    const media = { calls: 3, received: 9, lost: 1, jitterMs: 0, delay50: 40, delay99: 55, lateMs: 0 };
    const timeline = [
      second(0, { processes: {}, failures: { timeout: 2 } }),
      second(1, {
        media,
        processes: { redis: { cpu: 10, memoryMb: 300 }, 'sipp 1': { cpu: 30, memoryMb: 20 }, 'sipp 12': { cpu: 40, memoryMb: 5 } },
      }),
    ];
    const html = reportOf({ timeline });
    expect(drawnIn(html)).toEqual({
      Calls: {
        x: [0, 1],
        marks: [],
        series: [
          { name: 'started', values: [10, 10] },
          { name: 'answered', values: [10, 10] },
        ],
      },
      'INVITE to 200': {
        x: [0, 1],
        marks: [],
        series: [
          { name: 'p50', values: [2, 2] },
          { name: 'p90', values: [3, 3] },
          { name: 'p99', values: [4, 4] },
        ],
      },
      'Calls in progress': { x: [0, 1], marks: [], series: [{ name: 'in progress', values: [20, 20] }] },
      'Lost packets': { x: [0, 1], marks: [], series: [{ name: 'lost', values: [null, 1] }] },
      'Failed calls': { x: [0, 1], marks: [], series: [{ name: 'timeout', values: [2, 0] }] },
      'Audio there and back': {
        x: [0, 1],
        marks: [],
        series: [
          { name: 'p50', values: [null, 40] },
          { name: 'p99', values: [null, 55] },
        ],
      },
      'CPU of each process': {
        x: [0, 1],
        marks: [],
        series: [
          { name: 'sipp', values: [null, 70] },
          { name: 'redis', values: [null, 10] },
        ],
      },
      'Memory of each process': {
        x: [0, 1],
        marks: [],
        series: [
          { name: 'redis', values: [null, 300] },
          { name: 'sipp', values: [null, 25] },
        ],
      },
    });
    expect([...html.matchAll(/<figcaption>.*?<small>(.*?)<\/small>/g)].map(([, unit]) => unit)).toEqual([
      ...['a second', 'milliseconds', 'calls', 'a second', 'a second', 'milliseconds', 'percent of a core', 'MB'],
    ]);
    expect(html).toMatch(/<h2>Over time<\/h2><div class="plots">(?:<figure>.*?<\/figure>){8}<\/div>\n/);
  });
});
