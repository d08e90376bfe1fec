/** The name closest to `wanted` in edit distance; `null` if all differ in more than a third of its characters (at least 2). */
export function nearestName(wanted: string, names: Iterable<string>): string | null {
  let nearest: string | null = null;
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(wanted, name);
    if (distance < least) [nearest, least] = [name, distance];
  }
  return nearest;
}

/** Levenshtein distance: characters to insert, delete or replace. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1)
      next.push(Math.min((row[j] ?? 0) + (one[i] === other[j] ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    row = next;
  }
  return row[other.length] ?? 0;
}
