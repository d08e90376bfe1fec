import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CoverageMapData } from 'istanbul-lib-coverage';
import { ROOT } from '../docs/generate.js';
import { addCounts } from './add-counts.js';
import { folderTable } from './folder-table.js';
import { readProcessCoverage } from './process-coverage.js';

// The last step of `npm run coverage`: adds up what vitest counted in its workers, by project, and what the processes counted that tests
// started, and prints the table.

const [, , directory = ''] = process.argv;
const files: CoverageMapData = {};

function add(more: CoverageMapData): void {
  for (const [path, data] of Object.entries(more)) {
    const known = files[path];
    if (known === undefined) files[path] = data;
    else addCounts(known, data);
  }
}

for (const project of readdirSync(directory)) {
  const report = join(directory, project, 'coverage-final.json');
  if (existsSync(report)) add(JSON.parse(readFileSync(report, 'utf8')) as CoverageMapData);
}
const { scripts, processes } = await readProcessCoverage(join(directory, 'processes'), `${ROOT}dist`);
for (const script of scripts) add(script);
console.log(`${folderTable(files, `${ROOT}src`)}\n\nWith what ${String(processes)} processes and threads ran.`);
