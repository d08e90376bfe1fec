import type { ProcessFigures, RunFigures, Second, StageFigures } from './figures.js';
import { failureName, limitText, stageCells } from './result-text.js';
import { lossPercent, settingsOf } from './verdict.js';

const STYLE = `
:root{color-scheme:light dark;--bg:#fff;--fg:#1c1e21;--soft:#5d6470;--line:#d9dde3;--card:#f5f6f8;--good:#1a7f37;--bad:#c5221f;
--c0:#0b62c4;--c1:#d1571b;--c2:#0a8a5f;--c3:#8b3fc0;--c4:#b8860b;--c5:#c2255c;--c6:#0c8599;--c7:#6b7280}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8eb;--soft:#9aa3af;--line:#343a42;--card:#1d2127;--good:#56d364;--bad:#ff7b72;
--c0:#6cb0ff;--c1:#ff9e5e;--c2:#4ad0a0;--c3:#cf9bff;--c4:#e3b341;--c5:#ff7aa8;--c6:#53c7dd;--c7:#aab2bd}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:16px;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.4rem;margin:.2em 0}h2{font-size:1.1rem;margin:1.6em 0 .5em}small,.soft{color:var(--soft)}
.good{color:var(--good)}.bad{color:var(--bad)}.cards,.plots{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(150px,1fr))}
.plots{grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr))}.card,figure{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;margin:0}
.card b{display:block;font-size:1.25rem}.card span{color:var(--soft);font-size:.85rem}.uplot{font:inherit!important;width:100%!important}.u-legend{font-size:.8rem!important}.u-legend :is(tr,th,td){border:0}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);white-space:nowrap}
td.text{white-space:normal;min-width:14em}li{margin:.2em 0}`;

interface Series {
  readonly name: string;
  /** One for each second; `null`: a gap. */
  readonly values: readonly (number | null)[];
}

interface Plot {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
}

/** The browser build of uPlot, as text. */
export interface UplotFiles {
  readonly script: string;
  readonly style: string;
}

/** Runs in the page: draws each figure from the JSON in it. Lines beyond the eighth are dashed. */
const DRAW = `
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } };
for (const figure of document.querySelectorAll('figure')) {
  const { x, series, marks } = JSON.parse(figure.querySelector('script').textContent);
  const size = () => ({ width: figure.clientWidth - 26, height: 220 });
  const drawMarks = ({ ctx, bbox, valToPos }) => {
    ctx.strokeStyle = color('--soft');
    ctx.setLineDash([2, 3]);
    for (const mark of marks) ctx.stroke(new Path2D('M' + valToPos(mark, 'x', true) + ' ' + bbox.top + 'v' + bbox.height));
  };
  const plot = new uPlot({
    ...size(),
    scales: { x: { time: false }, y: { range: (_plot, _least, most) => uPlot.rangeNum(0, most || 1, 0.1, true) } },
    axes: [{ ...axis, values: (_plot, all) => all.map((value) => value + ' s') }, axis],
    series: [{ label: 'second' }, ...series.map(({ name }, i) => (
      { label: name, stroke: color('--c' + (i % 8)), width: 1.6, dash: i < 8 ? undefined : [5, 3] }))],
    hooks: { draw: [drawMarks] },
  }, [x, ...series.map(({ values }) => values)], figure);
  addEventListener('resize', () => plot.setSize(size()));
}`;

/** One page that loads nothing: its script and its figures are in it. */
export function htmlReport(figures: RunFigures, uplot: UplotFiles): string {
  const { stages, ramps, notes } = figures;
  const outcome = figures.interrupted ? 'interrupted' : figures.passed ? 'passed' : 'failed';
  const last = stages.at(-1);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">',
    `<title>Load test ${escapeHtml(figures.startedAt)}</title><style>${uplot.style}${STYLE}</style></head><body>`,
    `<h1>Load test <span class="${figures.passed ? 'good' : 'bad'}">${outcome}</span></h1>`,
    `<p class="soft">${escapeHtml(figures.target)}, number ${escapeHtml(figures.number)}, ${escapeHtml(figures.startedAt)}, ${figures.seconds.toFixed(0)} s. `,
    `SIPp ${escapeHtml(figures.sipp)}, ${escapeHtml(figures.scenario)} scenario${figures.batchId === null ? '' : `, batch ${escapeHtml(figures.batchId)}`}.</p>`,
    ...ramps.map(rampHtml),
    ...(stages.length === 1 && last !== undefined ? [cards(last, figures.measured)] : []),
    ...(notes.length === 0 ? [] : [`<ul>${notes.map((note) => `<li>${escapeHtml(note)}</li>`).join('')}</ul>`]),
    `<h2>Over time</h2><div class="plots">${plotFigures(figures)}</div>`,
    ...(stages.length > 1 ? [`<h2>Stages</h2>${stagesTable(stages)}`] : []),
    ...(last === undefined ? [] : [`<h2>Failures</h2>${failuresTable(stages)}`]),
    ...(last === undefined ? [] : [`<h2>Processes${stages.length > 1 ? ' in the last stage' : ''}</h2>${processesTable(last.processes)}`]),
    `<script>${uplot.script}${DRAW}</script></body></html>\n`,
  ].join('\n');
}

function card(value: string, name: string): string {
  return `<div class="card"><b>${escapeHtml(value)}</b><span>${escapeHtml(name)}</span></div>`;
}

function cards(stage: StageFigures, measured: RunFigures['measured']): string {
  const { latency, media, verdict } = stage;
  const found = [
    card(`${stage.callsPerSecond.toFixed(1)}/s`, `calls started, of ${String(stage.plan.cps)}/s wanted`),
    card(`${String(stage.answered)} of ${String(stage.plan.calls)}`, 'calls answered'),
    card(String(stage.failed), 'calls failed'),
    card(latency === null ? '-' : `${latency.p50.toFixed(1)} ms`, `${measured}, p50`),
    card(latency === null ? '-' : `${latency.p99.toFixed(1)} ms`, `${measured}, p99`),
    card(String(stage.peakInProgress), 'calls in progress at most'),
    ...(media === null
      ? []
      : [
          card(`${String(media.tone.heard)} of ${String(media.calls)}`, 'calls heard their own tone'),
          card(`${lossPercent(media.packets).toFixed(3)} %`, `packets lost, of ${String(media.packets.expected)}`),
          card(media.delayMs === null ? '-' : `${media.delayMs.p99.toFixed(0)} ms`, 'audio there and back, p99 of the worst call'),
          ...(media.mos === null ? [] : [card(media.mos.least.toFixed(2), 'MOS of the worst call')]),
        ]),
  ];
  const faults = verdict.faults.map((fault) => `<li class="bad">${escapeHtml(fault)}</li>`).join('');
  const limited = `<p>What limited: ${escapeHtml(limitText(stage))}</p>`;
  return `<div class="cards">${found.join('')}</div>${faults === '' ? '' : `<ul>${faults}</ul>`}${limited}`;
}

function rampHtml({ kind, highest, lowestFailed, limit }: RunFigures['ramps'][number]): string {
  const what = kind === 'rate' ? 'calls a second' : 'calls held';
  const failed = lowestFailed === null ? 'nothing higher was tried' : `${String(lowestFailed)} failed`;
  const why =
    limit === null
      ? ''
      : `<p>What limited: ${escapeHtml(limit.text)}${limit.settings.length === 0 ? '' : ` → ${escapeHtml(limit.settings.join('; '))}`}</p>`;
  return `<div class="cards">${card(String(highest), `highest number of ${what} (${failed})`)}</div>${why}`;
}

/** A figure for each plot that has something to draw; a mark where each further stage begins. */
function plotFigures(figures: RunFigures): string {
  const { timeline, stages } = figures;
  const x = timeline.map(({ at }) => at);
  const marks = stages.slice(1).map((_, index) => timeline.find(({ stage }) => stage === index + 2)?.at ?? 0);
  return plots(figures)
    .map(({ series, ...rest }) => ({ ...rest, series: series.filter(({ values }) => values.some((value) => value !== null)) }))
    .filter(({ series }) => series.length > 0)
    .map(({ title, unit, series }) => {
      const data = JSON.stringify({ x, series, marks }).replaceAll('<', '\\u003c');
      const caption = `<figcaption><b>${escapeHtml(title)}</b> <small>${escapeHtml(unit)}</small></figcaption>`;
      return `<figure>${caption}<script type="application/json">${data}</script></figure>`;
    })
    .join('');
}

function plots({ timeline, measured }: RunFigures): Plot[] {
  const of = (name: string, pick: (second: Second) => number | null): Series => ({ name, values: timeline.map(pick) });
  const failures = [...new Set(timeline.flatMap((second) => Object.keys(second.failures)))];
  const plot = (title: string, unit: string, ...series: Series[]): Plot => ({ title, unit, series });
  return [
    plot(
      'Calls',
      'a second',
      of('started', ({ started }) => started),
      of('answered', ({ answered }) => answered),
    ),
    plot(
      measured,
      'milliseconds',
      of('p50', ({ p50 }) => p50),
      of('p90', ({ p90 }) => p90),
      of('p99', ({ p99 }) => p99),
    ),
    plot(
      'Calls in progress',
      'calls',
      of('in progress', ({ inProgress }) => inProgress),
    ),
    plot('Failed calls', 'a second', ...failures.map((name) => of(name, (second) => second.failures[name] ?? 0))),
    plot(
      'Lost packets',
      'a second',
      of('lost', ({ media }) => media?.lost ?? null),
    ),
    plot(
      'Audio there and back',
      'milliseconds',
      of('p50', ({ media }) => media?.delay50 ?? null),
      of('p99', ({ media }) => media?.delay99 ?? null),
    ),
    plot('CPU of each process', 'percent of a core', ...processSeries(timeline, ({ cpu }) => cpu)),
    plot('Memory of each process', 'MB', ...processSeries(timeline, ({ memoryMb }) => memoryMb)),
  ];
}

/** A line for all processes of a kind (sipp 1, sipp 2, …), the highest first: that has the clearest color. */
function processSeries(timeline: readonly Second[], pick: (usage: Second['processes'][string]) => number): Series[] {
  const kindOf = (name: string): string => name.replace(/ \d+$/, '');
  const kinds = [...new Set(timeline.flatMap(({ processes }) => Object.keys(processes).map(kindOf)))];
  const all = kinds.map((kind): Series => ({
    name: kind,
    values: timeline.map(({ processes }) => {
      const own = Object.entries(processes).filter(([name]) => kindOf(name) === kind);
      return own.length === 0 ? null : own.reduce((sum, [, usage]) => sum + pick(usage), 0);
    }),
  }));
  const peak = ({ values }: Series): number => Math.max(...values.map((value) => value ?? 0));
  return all.sort((one, other) => peak(other) - peak(one));
}

function tableHtml(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], tag: string): string =>
    row.map((cell) => `<${tag}${cell.length > 40 ? ' class="text"' : ''}>${escapeHtml(cell)}</${tag}>`).join('');
  return `<div class="wide"><table><tr>${cells(header, 'th')}</tr>${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('')}</table></div>`;
}

function stagesTable(stages: readonly StageFigures[]): string {
  return tableHtml(['stage', 'wanted/s', 'calls/s', 'held', 'well', 'failed', 'p50 ms', 'p99 ms', 'outcome'], stages.map(stageCells));
}

function failuresTable(stages: readonly StageFigures[]): string {
  const rows = stages.flatMap(({ failures }, index) =>
    failures.map((failure) => [String(index + 1), failureName(failure), String(failure.count), settingsOf(failure).join('; ')]),
  );
  return rows.length === 0 ? '<p>None.</p>' : tableHtml(['stage', 'what', 'calls', 'set by'], rows);
}

function processesTable(processes: readonly ProcessFigures[]): string {
  if (processes.length === 0) return '<p>None could be measured.</p>';
  const rows = processes.map((one) => [
    one.name,
    one.side === 'gateway' ? 'gateway' : 'load test',
    `${one.cpuMean.toFixed(0)} %`,
    `${one.cpuPeak.toFixed(0)} %`,
    `${one.threadBusy.toFixed(0)} %`,
    one.cpuMsPerCall?.toFixed(2) ?? '-',
    one.memoryMb.toFixed(0),
    String(one.openFiles),
  ]);
  return tableHtml(['process', 'of', 'CPU', 'peak', 'busiest thread', 'ms a call', 'memory MB', 'files'], rows);
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${String(character.charCodeAt(0))};`);
}
