// Which rows of a long list are in the document.

/** Rows above and below the visible ones, so that scrolling does not show gaps. */
const SPARE = 12;

export interface Window {
  readonly first: number;
  /** Behind the last one. */
  readonly end: number;
}

export function windowOf(scrollTop: number, height: number, rowHeight: number, rows: number): Window {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - SPARE);
  return { first: Math.min(first, rows), end: Math.min(rows, Math.ceil((scrollTop + height) / rowHeight) + SPARE) };
}

/** Whether somebody is about to see the end. */
export function isNearEnd(scrollTop: number, height: number, rowHeight: number, rows: number): boolean {
  return scrollTop + 3 * height > rows * rowHeight;
}

/** Where a key press leads in a list; `null`: nowhere. */
export function movedTo(key: string, at: number, rows: number, rowsOnScreen: number): number | null {
  if (rows === 0) return null;
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + rowsOnScreen,
    PageUp: at - rowsOnScreen,
    Home: 0,
    End: rows - 1,
  };
  const to = steps[key];
  return to === undefined ? null : Math.max(0, Math.min(rows - 1, to));
}
