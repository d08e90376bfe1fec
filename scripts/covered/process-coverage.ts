import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { mergeProcessCovs, type ProcessCov } from '@bcoe/v8-coverage';
import { convert, type Options } from 'ast-v8-to-istanbul';
import type { CoverageMapData } from 'istanbul-lib-coverage';
import { parseSync } from 'vite';

/** How often the places of src ran in processes and threads that ran dist. */
export interface ProcessCoverage {
  /** By script of dist. */
  readonly scripts: readonly CoverageMapData[];
  readonly processes: number;
}

/**
 * Reads what processes and threads with NODE_V8_COVERAGE wrote, one after the other: together they can be gigabytes.
 * @param directory of NODE_V8_COVERAGE
 * @param dist with source maps beside its files
 */
export async function readProcessCoverage(directory: string, dist: string): Promise<ProcessCoverage> {
  const ours = pathToFileURL(dist).href;
  // What loads the bundle in spite of NODE_V8_COVERAGE has no map that leads to src.
  const isOurs = (url: string): boolean => url.startsWith(`${ours}/`) && !url.startsWith(`${ours}/bundle/`);
  let sum: ProcessCov = { result: [] };
  let processes = 0;
  for (const name of readdirSync(directory)) {
    const read = parsed(readFileSync(join(directory, name), 'utf8'));
    const result = read?.result.filter(({ url }) => isOurs(url)) ?? [];
    if (result.length === 0) continue;
    processes += 1;
    sum = mergeProcessCovs([sum, { result }]);
  }
  return { scripts: await Promise.all(sum.result.map(ofSources)), processes };
}

/** `undefined`: it was killed while it wrote. */
function parsed(text: string): ProcessCov | undefined {
  try {
    return JSON.parse(text) as ProcessCov;
  } catch {
    return undefined;
  }
}

function ofSources(script: ProcessCov['result'][number]): Promise<CoverageMapData> {
  const file = fileURLToPath(script.url);
  const code = readFileSync(file, 'utf8');
  const sourceMap = JSON.parse(readFileSync(`${file}.map`, 'utf8')) as NonNullable<Options['sourceMap']>;
  return convert({ code, ast: parseSync(file, code).program, coverage: script, sourceMap });
}
