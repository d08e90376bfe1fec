import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transformSync } from 'esbuild';
import type { FileCoverageData } from 'istanbul-lib-coverage';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addCounts } from '../../../scripts/covered/add-counts.js';
import { folderTable } from '../../../scripts/covered/folder-table.js';
import { readProcessCoverage } from '../../../scripts/covered/process-coverage.js';

// What `npm run coverage` makes of the counts of vitest and of the product's processes.

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'trunkline-covered-'));
  for (const folder of ['src/lib', 'dist/lib', 'processes']) mkdirSync(join(root, folder), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

const SOURCE = `export function size(n: number): string {
  return n > 10
    ? 'large'
    : 'small';
}
`;

/** A compiled file, and what a process wrote that called its function so many times, always with a small number. */
function processThatRan(calls: number, name: string): void {
  const file = join(root, 'dist/lib/size.js');
  const { code, map } = transformSync(SOURCE, { loader: 'ts', sourcemap: true, sourcefile: '../../src/lib/size.ts' });
  writeFileSync(file, code);
  writeFileSync(`${file}.map`, map);
  const ranges = [
    { startOffset: code.indexOf('function'), endOffset: code.indexOf('}') + 1, count: calls },
    { startOffset: code.indexOf('? ') + 2, endOffset: code.indexOf(' :'), count: 0 },
  ];
  const functions = [
    { functionName: '', isBlockCoverage: true, ranges: [{ startOffset: 0, endOffset: code.length, count: 1 }] },
    { functionName: 'size', isBlockCoverage: true, ranges },
  ];
  const script = { scriptId: '1', url: pathToFileURL(file).href, functions };
  const other = { ...script, url: pathToFileURL(join(root, 'node_modules/other.js')).href };
  writeFileSync(join(root, 'processes', name), JSON.stringify({ result: [other, script] }));
}

const counted = async (): Promise<FileCoverageData> => {
  const { scripts } = await readProcessCoverage(join(root, 'processes'), join(root, 'dist'));
  return scripts[0]?.[join(root, 'src/lib/size.ts')] as FileCoverageData;
};

describe('the coverage counts of processes', () => {
  it('are added up by place in the source, without a file that a killed process left unfinished', async () => {
    processThatRan(2, 'coverage-1.json');
    processThatRan(3, 'coverage-2.json');
    writeFileSync(join(root, 'processes/coverage-3.json'), '{"result":[{"scr');
    const { scripts, processes } = await readProcessCoverage(join(root, 'processes'), join(root, 'dist'));
    expect([processes, scripts.map((script) => Object.keys(script))]).toEqual([2, [[join(root, 'src/lib/size.ts')]]]);
    const { f, b } = await counted();
    expect([f, b]).toEqual([{ 0: 5 }, { 0: [0, 5] }]);
  });

  it('are added to those of another compiler’s program, whose columns differ', async () => {
    processThatRan(1, 'coverage-1.json');
    const [to, more] = [await counted(), await counted()];
    for (const { loc } of Object.values(to.branchMap)) loc.end.column = 1;
    addCounts(to, more);
    expect([to.f, to.b]).toEqual([{ 0: 2 }, { 0: [0, 2] }]);
  });

  it('are not added to those of another version', async () => {
    processThatRan(1, 'coverage-1.json');
    const [to, more] = [await counted(), await counted()];
    expect(() => addCounts(to, { ...more, b: {} })).toThrow('size.ts was compiled from two versions');
  });
});

it('the table has a row for each folder of src, and one for each room of the gateway', async () => {
  processThatRan(1, 'coverage-1.json');
  const data = await counted();
  const paths = ['lib/a.ts', 'lib/deep/b.ts', 'gateway/main.ts', 'gateway/call/deep/c.ts', '../web/src/d.ts'].map((path) =>
    join(root, 'src', path),
  );
  const text = folderTable(Object.fromEntries(paths.map((path) => [path, { ...data, path }])), join(root, 'src'));
  expect(text.split('\n').slice(2)).toEqual([
    '| `gateway` | 100.0 % of 1 | 50.0 % of 2 |',
    '| `gateway/call` | 100.0 % of 1 | 50.0 % of 2 |',
    '| `lib` | 100.0 % of 2 | 50.0 % of 4 |',
    '| all | 100.0 % of 4 | 50.0 % of 8 |',
  ]);
});
