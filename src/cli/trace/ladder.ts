import type { Schemas } from '../../client/index.js';
import { toned, type Tone } from '../tone.js';

type Entry = Schemas['TraceEntry'];

export interface LadderOptions {
  readonly columns: number;
  readonly isColoured: boolean;
  /** With the messages below their arrows. */
  readonly isFull: boolean;
  /** Milliseconds of the epoch that times are relative to. */
  readonly fromMs: number;
}

const TIME_WIDTH = 11;
const MIN_COLUMNS = 72;
const MAX_COLUMNS = 160;
/** Lifelines, by the part of the width that is left of them. */
const PLACES = { carrier: 0, gateway: 0.45, rtpengine: 0.78, agent: 1 } as const;
const FARTHER = { sip: 'carrier', rtpengine: 'rtpengine', agent: 'agent' } as const;

/** The names of the lifelines. */
export function ladderHead({ columns }: Pick<LadderOptions, 'columns'>): string {
  const at = placesOf(columns);
  const line = Array.from(' '.repeat(at.agent + 1));
  for (const [name, place] of Object.entries(at)) {
    // The first begins at its line and the last ends there.
    const from = name === 'carrier' ? place : name === 'agent' ? place - name.length + 1 : place - Math.floor(name.length / 2);
    line.splice(from, name.length, ...Array.from(name));
  }
  return line.join('').trimEnd();
}

/** One thing that happened, as lines. */
export function ladderLines(entry: Entry, options: LadderOptions): string[] {
  const at = placesOf(options.columns);
  const time = `${((Date.parse(entry.at) - options.fromMs) / 1_000).toFixed(3).padStart(TIME_WIDTH - 2)}  `;
  const lifelines = Array.from(' '.repeat(at.agent + 1));
  for (const place of Object.values(at)) lifelines[place] = '│';
  const { source, direction } = entry;
  if (source === 'gateway' || direction === null) note(lifelines, at.gateway, entry.summary);
  else arrow(lifelines, at.gateway, at[FARTHER[source]], direction === 'out', labelOf(entry));
  const line = `${time}${lifelines.join('').slice(TIME_WIDTH)}`;
  const lines = [toned(line.trimEnd(), toneOf(entry), options.isColoured)];
  if (options.isFull && entry.text !== null) lines.push(...textLines(entry.text, options.isColoured));
  return lines;
}

/** `INVITE sdp`, `200 OK sdp`, `offer`. */
function labelOf({ source, direction, summary, text }: Entry): string {
  const line = oneLine(summary);
  // The flags are on the command's arrow; rtpengine's answer does not repeat them.
  if (source === 'rtpengine' && direction === 'in') return line.replace(/ \([^)]*\)/, '');
  if (source !== 'sip') return line;
  const hasSdp = text !== null && /^v=0\r?$/m.test(text) ? ' (SDP)' : '';
  const answer = /^SIP\/2\.0 (\d{3}.*)$/.exec(line);
  if (answer !== null) return `${answer[1] ?? ''}${hasSdp}`;
  return `${/^[A-Z]+(?= )/.exec(line)?.[0] ?? line}${hasSdp}`;
}

function placesOf(columns: number): { readonly [name in keyof typeof PLACES]: number } {
  const width = Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, columns)) - TIME_WIDTH - 1;
  const place = (share: number): number => TIME_WIDTH + Math.round(share * width);
  const { carrier, gateway, rtpengine, agent } = PLACES;
  return { carrier: place(carrier), gateway: place(gateway), rtpengine: place(rtpengine), agent: place(agent) };
}

/** Between two lifelines, the name on it; over those between. */
function arrow(line: string[], gateway: number, other: number, isFromGateway: boolean, label: string): void {
  const [left, right] = gateway < other ? [gateway, other] : [other, gateway];
  const isRightward = isFromGateway === gateway < other;
  const room = right - left - 1;
  const name = label.length > room - 5 ? `${label.slice(0, room - 6)}…` : label;
  const shaft = Array.from(`─ ${name} `.padEnd(room, '─'));
  if (isRightward) shaft[room - 1] = '▶';
  else {
    shaft.unshift('◀');
    shaft.pop();
  }
  line.splice(left + 1, room, ...shaft);
}

/** What happened within the gateway: to the right of its line, over the others. */
function note(line: string[], gateway: number, summary: string): void {
  const text = ` ${oneLine(summary)}`;
  const room = line.length - gateway - 2;
  const shown = text.length > room ? `${text.slice(0, room - 1)}…` : text;
  line.splice(gateway, 1 + shown.length, '●', ...Array.from(shown));
}

function toneOf({ source, summary }: Entry): Tone {
  const status = Number(/^SIP\/2\.0 (\d{3})/.exec(summary)?.[1] ?? 0);
  if (status >= 300 || / failed\b/.test(summary)) return 'bad';
  if (status >= 200) return 'good';
  return source === 'gateway' ? 'dim' : 'plain';
}

function textLines(text: string, isColoured: boolean): string[] {
  const lines = text.trimEnd().split(/\r?\n/);
  return lines.map((line) => toned(`${' '.repeat(TIME_WIDTH)}  ${line}`, 'dim', isColoured));
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
