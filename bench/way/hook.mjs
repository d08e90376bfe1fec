// Loaded by NODE_OPTIONS into each process and thread of `npm run way`: counts which functions run, from a mark to the next.
// A mark is a file in WAY_DIR; each thread answers it with a file of its own, `<mark>.<pid>.<thread>.json`.
import { mkdirSync, watch, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename, join } from 'node:path';
import { URL } from 'node:url';
import { threadId } from 'node:worker_threads';

const directory = process.env.WAY_DIR;
/** What the build made of src: a package has a folder of this name too. */
const DIST = new URL('../../dist/', import.meta.url).href;

if (directory !== undefined) {
  mkdirSync(join(directory, 'marks'), { recursive: true });
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const name = threadId === 0 ? processName() : 'media thread';
  const watcher = watch(join(directory, 'marks'), (_event, mark) => {
    if (mark === null) return;
    // Counts begin anew with each reading.
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      const files = error === null ? coverage.result.flatMap(({ url, functions }) => ran(url, functions)) : [];
      writeFileSync(join(directory, `${mark}.${String(process.pid)}.${String(threadId)}.json`), JSON.stringify({ name, files }));
    });
  });
  watcher.unref();
}

function processName() {
  return process.argv.slice(2).find((word) => !word.startsWith('-')) ?? basename(process.argv[1] ?? 'node');
}

/** @returns the file and the names of its functions that ran, without the module's own code */
function ran(url, functions) {
  if (!url.startsWith(DIST) || !url.endsWith('.js')) return [];
  const names = functions
    .filter(({ functionName, ranges }) => functionName !== '' && ranges[0].count > 0)
    .map(({ functionName }) => functionName);
  return names.length === 0 ? [] : [{ file: `${url.slice(DIST.length, -'.js'.length)}.ts`, functions: names }];
}
