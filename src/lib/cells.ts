/** What tags and branches of a cell begin with. The first has none: a second cell leaves the calls of the first where they are. */
export function cellPrefix(cell: number): string {
  return cell === 1 ? '' : `${String(cell)}.`;
}

/** The cell, of `count`, that takes over what a cell with this number left. */
export function cellAmong(cell: number, count: number): number {
  return ((cell - 1) % count) + 1;
}
