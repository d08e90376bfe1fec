// Figures and times as people read them.

const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');

/** `14:05:09`, with the date when it is another day than `now`'s. In the reader's own zone. */
export function clockTime(iso: string, now: Date): string {
  const at = new Date(iso);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  return at.toDateString() === now.toDateString() ? time : `${dayOf(at)} ${time}`;
}

/** `2026-01-31 14:05:09`. */
export function fullTime(iso: string): string {
  const at = new Date(iso);
  return `${dayOf(at)} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

function dayOf(at: Date): string {
  return `${pad(at.getFullYear(), 4)}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

/** `4.2 s`, `3:07`, `1:02:45`. */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${String(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${String(minutes)}:${pad(seconds % 60)}`;
  return `${String(Math.floor(minutes / 60))}:${pad(minutes % 60)}:${pad(seconds % 60)}`;
}

/** `+12.345 s`: since the beginning of a call. */
export function sinceBegin(ms: number): string {
  return `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1_000).toFixed(3)} s`;
}

export function milliseconds(value: number | null): string {
  return value === null ? '–' : `${value < 10 ? value.toFixed(1) : String(Math.round(value))} ms`;
}

/** `10,000`. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Cuts with an ellipsis. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`;
}

/** What stands in a field of `datetime-local`, as the API takes it; '' for what is no time. */
export function isoOfLocal(text: string): string {
  const at = new Date(text);
  return text === '' || Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

/** The other way. */
export function localOfIso(iso: string): string {
  const at = new Date(iso);
  return iso === '' || Number.isNaN(at.getTime()) ? '' : `${dayOf(at)}T${pad(at.getHours())}:${pad(at.getMinutes())}`;
}
