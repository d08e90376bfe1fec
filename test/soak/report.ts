import { cpus } from 'node:os';
import type { Tally } from './mixed-calls.js';
import { BOUNDS, whatGrew, type Series } from './verdict.js';

interface Soak extends Series {
  readonly tally: Tally;
  readonly rate: number;
  readonly connections: number;
  readonly isExpected: (outcome: string) => boolean;
}

const LINES = 12;

/** In Markdown: what was done, how the calls ended, and what grew beyond its bound. */
export function soakReport({ before, after, samples, tally, rate, connections, isExpected }: Soak): { text: string; isClean: boolean } {
  const wrong = Object.keys(tally).filter((outcome) => !isExpected(outcome));
  const grown = whatGrew({ before, samples, after });
  const isClean = wrong.length === 0 && grown.length === 0;
  const every = Math.max(1, Math.ceil(samples.length / LINES));
  const shown = [before, ...samples.filter((_one, at) => at % every === every - 1), after];
  const names = before.processes.map(({ name }) => name);
  const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  const text = [
    '# Soak',
    '',
    `\`npm run soak\` on ${new Date().toISOString().slice(0, 10)}: ${String(cpus().length)} cores (${cpus()[0]?.model ?? ''}), Node ${process.version}.`,
    `${String(after.calls)} calls at ${String(rate)}/s over ${String(connections)} TLS connections that come and go, for ${String(Math.round(after.seconds / 60))} minutes.`,
    '',
    wrong.length === 0 ? '**Every call ended as it should.**' : '**Not every call ended as it should.**',
    ...(grown.length === 0 ? ['**Nothing grew beyond its bound.**'] : grown.map((sentence) => `**${sentence}**`)).flatMap((line) => [
      '',
      line,
    ]),
    '',
    '## How the calls ended',
    '',
    row(['', 'calls', 'outcome']),
    row(['---', '---', '---']),
    ...Object.entries(tally).map(([outcome, count]) => row([isExpected(outcome) ? 'as it should' : '**not**', count, outcome])),
    '',
    '## What the processes held',
    '',
    'Resident memory in MB, open files in brackets; keys of Redis but for the records of calls that ended; what Redis has allocated, in MB;',
    'sessions of rtpengine. The first and the last line are without calls; before the first, calls came at the full rate for a minute.',
    '',
    row(['seconds', 'calls', ...names, 'keys', 'Redis MB', 'sessions']),
    row(['---', '---', ...names.map(() => '---'), '---', '---', '---']),
    ...shown.map(({ seconds, calls, processes, keys, redisMb, sessions }) =>
      row([
        seconds,
        calls,
        ...names.map((name) => {
          const one = processes.find((candidate) => candidate.name === name);
          return one === undefined ? 'away' : `${one.memoryMb.toFixed(1)} (${String(one.files)})`;
        }),
        keys,
        redisMb.toFixed(1),
        sessions,
      ]),
    ),
    '',
    '## Bounds',
    '',
    'What each may grow by, however long the soak: from the median of its second quarter to that of its last, and from the first line to the last.',
    '',
    row(['figure', 'under load', 'at rest']),
    row(['---', '---', '---']),
    ...Object.entries(BOUNDS.memoryMb).map(([name, bound]) => row([`resident memory of ${name}, MB`, bound.underLoad, bound.atRest])),
    row(['open files of each process', BOUNDS.files.underLoad, BOUNDS.files.atRest]),
    row(['keys of Redis', BOUNDS.keys.underLoad, BOUNDS.keys.atRest]),
    row(['what Redis has allocated, MB', BOUNDS.redisMb.underLoad, BOUNDS.redisMb.atRest]),
    row(['sessions of rtpengine', BOUNDS.sessions.underLoad, BOUNDS.sessions.atRest]),
    '',
  ].join('\n');
  return { text, isClean };
}
