import type { Schemas } from '../../../src/client/index.js';

// Figures in the log of a batch, as lines over time.

export type LogEntry = Schemas['BatchLogEntry'];

export interface Series {
  /** Seconds since the epoch. */
  readonly x: readonly number[];
  readonly lines: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
}

/** @param entries oldest first; those whose payload has none of the fields are left out */
export function seriesOf(entries: readonly LogEntry[], type: string, fields: readonly string[]): Series {
  const rows = entries.filter(({ event_type: one, payload }) => one === type && fields.some((field) => typeof payload[field] === 'number'));
  const named = fields.filter((field) => rows.some(({ payload }) => typeof payload[field] === 'number'));
  return {
    x: rows.map(({ timestamp }) => Date.parse(timestamp) / 1_000),
    lines: named.map((name) => ({ name, values: rows.map(({ payload }) => numberIn(payload[name])) })),
  };
}

/** Names of figures in entries that no plot of ours knows. */
export function otherFigures(
  entries: readonly LogEntry[],
  known: readonly string[],
): readonly { readonly type: string; readonly fields: readonly string[] }[] {
  const byType = new Map<string, Set<string>>();
  for (const { event_type: type, payload } of entries) {
    if (known.includes(type)) continue;
    const fields = byType.get(type) ?? new Set();
    for (const [name, value] of Object.entries(payload)) if (typeof value === 'number') fields.add(name);
    byType.set(type, fields);
  }
  return [...byType].filter(([, fields]) => fields.size > 0).map(([type, fields]) => ({ type, fields: [...fields].slice(0, 4) }));
}

/** What a `complete` entry says. */
export function totalsOf(
  entries: readonly LogEntry[],
): { readonly total: number; readonly failed: number; readonly successful: number } | null {
  const last = entries.findLast(({ event_type: type }) => type === 'complete');
  if (last === undefined) return null;
  const figure = (name: string): number => numberIn(last.payload[name]) ?? 0;
  return { total: figure('calls_total'), failed: figure('calls_failed'), successful: figure('calls_successful') };
}

function numberIn(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
