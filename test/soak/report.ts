import { cpus } from 'node:os';
import type { Tally } from './mixed-calls.js';

export interface ProcessSample {
  readonly name: string;
  readonly memoryMb: number;
  readonly files: number;
}

/** How things stand at one moment of a soak. */
export interface Sample {
  readonly seconds: number;
  /** That have ended. */
  readonly calls: number;
  readonly processes: readonly ProcessSample[];
  readonly keys: number;
  readonly sessions: number;
}

interface Soak {
  readonly before: Sample;
  readonly after: Sample;
  readonly samples: readonly Sample[];
  readonly tally: Tally;
  readonly rate: number;
  readonly connections: number;
  readonly isExpected: (outcome: string) => boolean;
}

const LINES = 12;
/** Redis writes its append-only file anew now and then, and a question to the API is a connection. */
const FILES_AT_REST = 4;

/** In Markdown: what was done, how the calls ended, and whether anything grew. */
export function soakReport({ before, after, samples, tally, rate, connections, isExpected }: Soak): { text: string; isClean: boolean } {
  const wrong = Object.keys(tally).filter((outcome) => !isExpected(outcome));
  const leaks = after.processes.filter(
    ({ name, files }) => files > FILES_AT_REST + (before.processes.find((one) => one.name === name)?.files ?? 0),
  );
  const isClean = wrong.length === 0 && leaks.length === 0 && after.sessions === 0 && after.keys <= before.keys;
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
    isClean ? '**Every call ended as it should, and nothing was left over.**' : '**Something went wrong or was left over.**',
    '',
    '## How the calls ended',
    '',
    row(['', 'calls', 'outcome']),
    row(['---', '---', '---']),
    ...Object.entries(tally).map(([outcome, count]) => row([isExpected(outcome) ? 'as it should' : '**not**', count, outcome])),
    '',
    '## What the processes held',
    '',
    'Resident memory in MB, open files in brackets; keys of Redis but for the records of calls that ended; sessions of rtpengine. The first and',
    'the last line are without calls.',
    '',
    row(['seconds', 'calls', ...names, 'keys', 'sessions']),
    row(['---', '---', ...names.map(() => '---'), '---', '---']),
    ...shown.map(({ seconds, calls, processes, keys, sessions }) =>
      row([
        seconds,
        calls,
        ...names.map((name) => {
          const one = processes.find((candidate) => candidate.name === name);
          return one === undefined ? 'away' : `${one.memoryMb.toFixed(1)} (${String(one.files)})`;
        }),
        keys,
        sessions,
      ]),
    ),
    '',
  ].join('\n');
  return { text, isClean };
}
