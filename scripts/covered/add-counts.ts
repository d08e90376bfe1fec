import type { FileCoverageData } from 'istanbul-lib-coverage';

/**
 * Adds how often the places of a file ran. Statements, functions and branches have the same numbers in both: they are counted in the order of
 * the source. Their columns differ where another compiler made the program, so istanbul-lib-coverage would take them for others.
 */
export function addCounts(to: FileCoverageData, more: FileCoverageData): void {
  if (shapeOf(to) !== shapeOf(more)) throw new Error(`${to.path} was compiled from two versions`);
  for (const [id, count] of Object.entries(more.s)) to.s[id] = (to.s[id] ?? 0) + count;
  for (const [id, count] of Object.entries(more.f)) to.f[id] = (to.f[id] ?? 0) + count;
  for (const [id, counts] of Object.entries(more.b)) to.b[id] = counts.map((count, arm) => (to.b[id]?.[arm] ?? 0) + count);
}

function shapeOf({ s, f, b }: FileCoverageData): string {
  return JSON.stringify([Object.keys(s), Object.keys(f), Object.entries(b).map(([id, arms]) => [id, arms.length])]);
}
