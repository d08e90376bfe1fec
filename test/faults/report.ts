import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { FaultReport, Load } from './run-fault.js';

const BEGIN = '<!-- faults: made by npm run faults -->';
const END = '<!-- faults: end -->';

const HEAD = [
  '| fault | calls in progress | longest silence | reasons in their records | new calls meanwhile and after | slowest answer | back after | `/readyz` | holds |',
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
];
const EVENTS_HEAD = ['| fault | in the logs |', '| --- | --- |'];

const listed = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${String(count)} ${name}`)
    .join(', ') || '–';

const cell = (text: string): string => text.replaceAll('|', '\\|');

/** What is broken and not excused. */
export function unexcused({ broken, fault }: FaultReport): FaultReport['broken'] {
  return broken.filter(({ expectation }) => fault.excused?.[expectation] === undefined);
}

function figuresRow(report: FaultReport): string {
  const wrong = unexcused(report).map(({ what }) => what);
  const excused = report.broken.filter((one) => !unexcused(report).includes(one)).map(({ what }) => what);
  const holds = wrong.length > 0 ? `**no**: ${wrong.join('; ')}` : excused.length > 0 ? `yes; known: ${excused.join('; ')}` : 'yes';
  // Nobody listens to calls that are placed.
  const isDialled = report.fault.run !== undefined;
  const cells = [
    report.fault.title,
    report.late === undefined ? listed(report.long) : `${listed(report.long)}; answered in its last 100 ms: ${listed(report.late)}`,
    isDialled ? '–' : `${String(report.longestSilenceMs)} ms, p50 ${String(report.silenceP50Ms)} ms, p99 ${String(report.silenceP99Ms)} ms`,
    listed(report.reasons),
    listed(report.short),
    isDialled ? '–' : `${String(report.longestAnswerMs)} ms`,
    report.backMs === null ? '–' : `${String(report.backMs)} ms`,
    report.readyz.join('; '),
    holds,
  ];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function eventsRow({ fault, events }: FaultReport): string {
  const names = Object.keys(events).map((event) => `\`${event}\``);
  return `| ${cell(fault.title)} | ${cell(names.join(', ')) || '–'} |`;
}

/** The figures in Markdown, between two marks; rows of faults that were not made this time stay as they are, in the order of `titles`. */
export function writeReport(file: string, reports: readonly FaultReport[], titles: readonly string[], load: Load): void {
  const old = existsSync(file) ? readFileSync(file, 'utf8') : `${BEGIN}\n${END}\n`;
  const [before = '', rest = ''] = old.split(BEGIN);
  const [part = '', after = ''] = rest.split(END);
  const [oldFigures = '', oldEvents = ''] = part.split(EVENTS_HEAD[0] ?? '');
  const rows = (olds: string, make: (report: FaultReport) => string): string[] =>
    titles.flatMap((title) => {
      const report = reports.find(({ fault }) => fault.title === title);
      if (report !== undefined) return [make(report)];
      const kept = olds.split('\n').find((line) => line.startsWith(`| ${title} |`));
      return kept === undefined ? [] : [kept];
    });
  const model = cpus()[0]?.model ?? '';
  const text = [
    BEGIN,
    '',
    `Last run on ${new Date().toISOString().slice(0, 10)}: ${String(cpus().length)} cores (${model}), Node ${process.version}; ${String(load.rate)} calls a second without audio.`,
    'Calls in progress have SRTP and are listened to.',
    '',
    ...HEAD,
    ...rows(oldFigures, figuresRow),
    '',
    ...EVENTS_HEAD,
    ...rows(oldEvents, eventsRow),
    '',
    END,
  ].join('\n');
  writeFileSync(file, `${before}${text}${after === '' ? '\n' : after}`);
}
