import type { TopView } from './view.js';

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly isColoured: boolean;
}

type Tone = 'plain' | 'dim' | 'bold' | 'good' | 'bad';
/** A line in pieces, so that it is cut by what is seen and not by its escape sequences. */
type Line = readonly (readonly [tone: Tone, text: string])[];

const CODES: Readonly<Record<Exclude<Tone, 'plain'>, string>> = { dim: '2', bold: '1', good: '32', bad: '31;1' };
const RELAYS = 4;
const PROCESSES = 6;

/** The screen as lines, none wider and not more of them than there is room for. */
export function renderTop(view: TopView, screen: Screen, title: string): string[] {
  const head: Line[] = [
    [
      ['bold', 'trunkline top'],
      ['dim', `  ${title}`],
    ],
    statusLine(view),
    [],
    ...callLines(view),
    [],
    ...mediaLines(view),
    [],
    ...relayLines(view),
    [],
    ...processLines(view),
    [],
  ];
  // What is left of the screen is for reasons and failures, side by side.
  const left = Math.max(2, screen.rows - head.length);
  return [...head, ...outcomeLines(view, left, Math.floor(screen.columns / 2))].slice(0, screen.rows).map((line) => coloured(line, screen));
}

function statusLine({ isTakingCalls, isRedisUp, processes, webhooksWaiting }: TopView): Line {
  const down = processes.filter(({ isUp }) => !isUp).map(({ name }) => name);
  return [
    isTakingCalls ? ['good', 'taking calls'] : ['bad', 'TAKES NO CALLS'],
    ['plain', '   '],
    isRedisUp ? ['good', 'Redis up'] : ['bad', 'REDIS AWAY'],
    ['plain', '   '],
    down.length === 0 ? ['good', `${String(processes.length)} processes up`] : ['bad', `DOWN: ${down.join(', ')}`],
    ['plain', `   webhooks waiting ${String(webhooksWaiting)}`],
  ];
}

function callLines({ calls, answer, agents }: TopView): Line[] {
  return [
    [
      ['plain', field('calls', String(calls.live), 7)],
      ['plain', field('begun/s', calls.begunPerS.toFixed(1), 7)],
      ['plain', field('room', String(calls.room), 7)],
      ['plain', field('begun', String(calls.begun), 10)],
    ],
    [
      ['plain', field('answer p50', ms(answer.p50Ms), 9)],
      ['plain', field('p99', ms(answer.p99Ms), 9)],
      ['plain', field('agents', String(agents.connected), 8)],
      [agents.failed > 0 ? 'bad' : 'plain', field('failed', String(agents.failed), 5)],
      ['plain', field('reconnects', String(agents.reconnects), 4)],
    ],
  ];
}

function mediaLines({ media, agents }: TopView): Line[] {
  return [
    [
      ['plain', field('media legs', String(media.legs), 6)],
      ['plain', field('in/s', media.inPerS.toFixed(0), 7)],
      ['plain', field('out/s', media.outPerS.toFixed(0), 7)],
      [media.lossPercent >= 1 ? 'bad' : 'plain', field('lost', `${media.lossPercent.toFixed(2)} %`, 8)],
      ['plain', field('late', String(media.late), 7)],
    ],
    [
      [media.srtpFailures > 0 ? 'bad' : 'plain', field('SRTP failures', String(media.srtpFailures), 7)],
      [media.kernelDrops > 0 ? 'bad' : 'plain', field('kernel drops', String(media.kernelDrops), 7)],
      ['plain', field('delay', ms(media.delayMs), 8)],
      ['plain', field('speech dropped', `${agents.droppedS.toFixed(1)} s`, 9)],
    ],
  ];
}

function relayLines({ relays }: TopView): Line[] {
  const shown = relays
    .slice(0, RELAYS)
    .map(({ node, isUp, sessions, p99Ms }): Line => [
      ['plain', cut(node, 28)],
      isUp ? ['good', 'up    '] : ['bad', 'DOWN  '],
      ['plain', `${String(sessions).padStart(8)}  ${ms(p99Ms).padStart(9)}`],
    ]);
  return [[['dim', `${cut('rtpengine', 28)}state  sessions  command p99`]], ...shown, ...more(relays.length - RELAYS)];
}

function processLines({ processes }: TopView): Line[] {
  const shown = processes
    .slice(0, PROCESSES)
    .map(({ name, isUp, cpuPercent, memoryMb, loopP99Ms, files }): Line => [
      [isUp ? 'plain' : 'bad', cut(name, 14)],
      isUp
        ? [
            'plain',
            `${cpuPercent.toFixed(0).padStart(5)} %  ${memoryMb.toFixed(0).padStart(6)} MB  ${loopP99Ms.toFixed(1).padStart(7)} ms  ${String(files).padStart(6)}`,
          ]
        : ['bad', '  does not answer'],
    ]);
  return [[['dim', `${cut('process', 14)}    CPU     memory   loop p99   files`]], ...shown, ...more(processes.length - PROCESSES)];
}

function outcomeLines({ reasons, newest }: TopView, rows: number, width: number): Line[] {
  const lines: Line[] = [[['dim', `${cut('calls by reason', width)}newest failures`]]];
  for (let index = 0; index < rows - 1; index += 1) {
    const [outcome, failure] = [reasons[index], newest[index]];
    if (outcome === undefined && failure === undefined) break;
    const left = outcome === undefined ? '' : `${String(outcome.count).padStart(8)}  ${outcome.reason}`;
    const tone: Tone = outcome !== undefined && (outcome.fault === 'gateway' || outcome.fault === 'agent') ? 'bad' : 'plain';
    const right = failure === undefined ? '' : `${new Date(failure.atMs).toISOString().slice(11, 19)}  ${failure.text}`;
    lines.push([
      [tone, cut(left, width)],
      ['plain', right],
    ]);
  }
  return lines;
}

function more(count: number): Line[] {
  return count > 0 ? [[['dim', `and ${String(count)} more`]]] : [];
}

function field(name: string, value: string, width: number): string {
  return `${name} ${value.padEnd(width)}`;
}

/** To exactly this width. */
function cut(text: string, width: number): string {
  return text.length < width ? text.padEnd(width) : `${text.slice(0, Math.max(0, width - 2))}… `;
}

function ms(value: number | null): string {
  if (value === null) return '-';
  return value < 10 ? `${value.toFixed(1)} ms` : `${value.toFixed(0)} ms`;
}

function coloured(line: Line, { columns, isColoured }: Screen): string {
  let room = columns;
  let text = '';
  for (const [tone, piece] of line) {
    const shown = piece.slice(0, room);
    room -= shown.length;
    text += isColoured && tone !== 'plain' && shown !== '' ? `\u001b[${CODES[tone]}m${shown}\u001b[0m` : shown;
  }
  return isColoured ? text : text.trimEnd();
}
