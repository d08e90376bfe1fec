import { readFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunFigures, Second } from '../../../src/loadtest/figures.js';
import { htmlReport } from '../../../src/loadtest/html-report.js';
import { openBrowser, visit } from '../../support/browser.js';

const [script, style] = ['uPlot.iife.min.js', 'uPlot.min.css'].map((name) => readFileSync(`node_modules/uplot/dist/${name}`, 'utf8'));
let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

const second = (at: number): Second => ({
  at,
  stage: 1,
  started: 10,
  answered: 10 + (at % 3),
  failed: 0,
  inProgress: at,
  p50: 2,
  p90: 3,
  p99: at === 5 ? null : 4,
  failures: { '503 <b>OVERLOADED': at % 2 },
  media: null,
  processes: { gateway: { cpu: 40, memoryMb: 100 } },
});
const RUN: RunFigures = {
  target: '127.0.0.1:5061',
  number: '+15550100100',
  scenario: 'built-in',
  sipp: 'v3.6.1',
  measured: 'INVITE to 200',
  connections: 1,
  startedAt: '2026-01-01T00:00:00.000Z',
  seconds: 30,
  interrupted: false,
  passed: true,
  batchId: null,
  notes: [],
  ramps: [],
  stages: [],
  timeline: Array.from({ length: 30 }, (_, at) => second(at)),
};

it('the report of a load test draws its plots without any request', async () => {
  const { page, context, complaints } = await visit(browser, 'http://unused.invalid');
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  await page.setContent(htmlReport(RUN, { script: script!, style: style! }));
  expect(await page.locator('figure canvas').count()).toBe(6);
  expect(await page.locator('figure', { hasText: 'Failed calls' }).locator('.u-legend').textContent()).toContain('503 <b>OVERLOADED');
  // A line of each color is on the canvas.
  const painted = await page.evaluate(`(() => {
    const canvas = document.querySelector('figure canvas');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const isPainted = (...color) => pixels.some((_, at) => at % 4 === 0 && color.every((part, index) => pixels[at + index] === part));
    return [isPainted(0x0b, 0x62, 0xc4), isPainted(0xd1, 0x57, 0x1b)];
  })()`);
  expect(painted).toEqual([true, true]);
  expect([requests, complaints]).toEqual([[], []]);
  await context.close();
});
