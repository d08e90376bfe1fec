import { relative, sep } from 'node:path';
import coverage, { type CoverageMapData, type CoverageSummary, type Totals } from 'istanbul-lib-coverage';
import { table } from '../docs/table.js';

/** Its rooms are as large as other folders of src. */
const DIVIDED = 'gateway';

/** Lines and branches of each folder of src that ran, as a table. */
export function folderTable(files: CoverageMapData, src: string): string {
  const folders = new Map<string, CoverageSummary>();
  const all = coverage.createCoverageSummary();
  for (const [path, data] of Object.entries(files)) {
    const parts = relative(src, path).split(sep);
    // Vitest takes any folder of this name for it: web has one.
    if (parts[0] === '..') continue;
    const summary = coverage.createFileCoverage(data).toSummary();
    const folder = folderOf(parts);
    const sum = folders.get(folder) ?? coverage.createCoverageSummary();
    folders.set(folder, sum.merge(summary));
    all.merge(summary);
  }
  const rows = [...folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([folder, summary]) => row(`\`${folder}\``, summary));
  return table(['folder', 'lines', 'branches'], [...rows, row('all', all)]);
}

function folderOf([first = '', second = '', ...rest]: readonly string[]): string {
  return first === DIVIDED && rest.length > 0 ? `${first}/${second}` : first;
}

function row(name: string, { lines, branches }: CoverageSummary): string[] {
  return [name, share(lines), share(branches)];
}

function share({ covered, total }: Totals): string {
  return total === 0 ? '—' : `${((100 * covered) / total).toFixed(1)} % of ${String(total)}`;
}
