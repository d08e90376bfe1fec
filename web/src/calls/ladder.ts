import type { Schemas } from '../../../src/client/index.js';

// The ladder diagram of a call: where each entry of its trace stands. Pure: the picture is drawn by ladder-view.tsx.

export type TraceEntry = Schemas['TraceEntry'];

export const LIFELINES = ['Carrier', 'Gateway', 'rtpengine', 'Agent'] as const;

/** `request`, and answers by their class; the rest by who is on the other side. */
export type Tone = 'request' | 'provisional' | 'success' | 'failure' | 'rtpengine' | 'agent' | 'note';

export interface LadderRow {
  readonly index: number;
  readonly y: number;
  /** Milliseconds since the first entry. */
  readonly atMs: number;
  /** `null`: within the gateway. */
  readonly arrow: { readonly fromX: number; readonly toX: number } | null;
  readonly labelX: number;
  readonly labelWidth: number;
  readonly label: string;
  readonly tone: Tone;
  readonly entry: TraceEntry;
}

export interface Ladder {
  readonly width: number;
  readonly height: number;
  readonly lifelines: readonly { readonly name: string; readonly x: number }[];
  readonly rows: readonly LadderRow[];
}

const HEAD = 40;
const STEP = 34;
const FOOT = 14;
/** Left of the first lifeline: the times. */
const TIMES = 74;
const TIMES_ON_PHONE = 52;
const NARROW = 560;
const EDGE = 34;
const GATEWAY = 1;

export function ladderOf(trace: readonly TraceEntry[], width: number): Ladder {
  const left = (width < NARROW ? TIMES_ON_PHONE : TIMES) + EDGE;
  const gap = (width - left - EDGE) / (LIFELINES.length - 1);
  const lifelines = LIFELINES.map((name, index) => ({ name, x: Math.round(left + index * gap) }));
  const beganMs = Date.parse(trace[0]?.at ?? '');
  const rows = trace.map((entry, index) =>
    rowOf(
      entry,
      index,
      Date.parse(entry.at) - beganMs,
      lifelines.map(({ x }) => x),
      width,
    ),
  );
  return { width, height: HEAD + trace.length * STEP + FOOT, lifelines, rows };
}

function rowOf(entry: TraceEntry, index: number, atMs: number, xs: readonly number[], width: number): LadderRow {
  const gateway = xs[GATEWAY] ?? 0;
  const other = xs[peerOf(entry)] ?? 0;
  const isArrow = entry.direction !== null && other !== gateway;
  const arrow = !isArrow ? null : entry.direction === 'in' ? { fromX: other, toX: gateway } : { fromX: gateway, toX: other };
  // A note begins at the gateway's line; what an arrow says begins at its left end.
  const labelX = (arrow === null ? gateway : Math.min(arrow.fromX, arrow.toX)) + 8;
  return {
    index,
    y: HEAD + index * STEP + 22,
    atMs,
    arrow,
    labelX,
    labelWidth: width - labelX - 4,
    label: labelOf(entry),
    tone: toneOf(entry),
    entry,
  };
}

function peerOf({ source }: TraceEntry): number {
  if (source === 'sip') return 0;
  if (source === 'rtpengine') return 2;
  return source === 'agent' ? 3 : GATEWAY;
}

/** `INVITE`, `200 OK (INVITE)`: without what every message has. */
function labelOf({ source, summary, text }: TraceEntry): string {
  if (source !== 'sip') return summary;
  const answer = /^SIP\/2\.0 (\d{3} ?.*)$/.exec(summary)?.[1];
  if (answer === undefined) return summary.replace(/ SIP\/2\.0$/, '').replace(/^([A-Z]+) .*$/, '$1');
  const method = /^CSeq\s*:\s*\d+\s+([A-Z]+)/im.exec(text ?? '')?.[1];
  return method === undefined ? answer : `${answer} (${method})`;
}

function toneOf({ source, summary }: TraceEntry): Tone {
  if (source === 'gateway') return 'note';
  if (source !== 'sip') return /failed|refused|closed|lost/.test(summary) ? 'failure' : source;
  const status = Number(/^SIP\/2\.0 (\d)/.exec(summary)?.[1] ?? 0);
  return status === 0 ? 'request' : status === 1 ? 'provisional' : status === 2 ? 'success' : 'failure';
}
