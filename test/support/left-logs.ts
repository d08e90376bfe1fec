import { cp, mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { beforeEach, type RunnerTask, type RunnerTestCase } from 'vitest';

const DIRECTORY = 'test-results/failed';

let current: RunnerTestCase | null = null;

/** For a file of vitest's `setupFiles`: `keepLogs` knows which file runs. */
export function watchTests(): void {
  beforeEach(({ task }) => {
    current = task;
  });
}

/**
 * Copies what a product has logged, before its directory is removed, to `test-results/failed/<test file>/`, if a test of that file has failed. Says where.
 * @param dataDir of the product
 * @param more texts that stand beside the logs, by file name
 */
export async function keepLogs(dataDir: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
  if (current === null || !hasFailed(current.file)) return;
  const kept = join(DIRECTORY, current.file.name.replaceAll('/', '-'), basename(join(dataDir, '..')));
  await mkdir(kept, { recursive: true });
  await cp(join(dataDir, 'logs'), kept, { recursive: true }).catch(() => undefined);
  for (const [name, text] of Object.entries(more)) await writeFile(join(kept, name), text);
  console.log(`A test has failed: what was logged is in ${kept}`);
}

/** Whether a test of the file that runs has failed. */
export function isFailing(): boolean {
  return current !== null && hasFailed(current.file);
}

function hasFailed(task: RunnerTask): boolean {
  return task.result?.state === 'fail' || ('tasks' in task && task.tasks.some(hasFailed));
}
