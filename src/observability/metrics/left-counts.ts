import { readFileSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.js';
import { errorText } from '../../lib/result.js';
import type { Metrics, MetricsSnapshot } from './registry.js';

// A process that ends in order, as at a reload, leaves what it counted in a file of the data directory. The next process of its name goes on
// from there; until then the gateway that gathers the metrics reads it. A process that is killed leaves no file: its successor counts from 0.

const COUNTS: ReadonlySet<string> = new Set(['counter', 'histogram']);

const fileOf = (dataDir: string, process: string): string => join(dataDir, `${process}.counts.json`);

/** Counters and histograms of a process that ends now; without them it ends in order, too. */
export async function leaveCounts(dataDir: string, metrics: Metrics, log: Log): Promise<void> {
  const counts = (await metrics.snapshot()).filter(({ type }) => COUNTS.has(String(type)));
  await writeFile(fileOf(dataDir, metrics.process), JSON.stringify(counts), { mode: 0o600 }).catch((error: unknown) =>
    log.warn({ error: errorText(error) }, 'metrics.counts.not_left'),
  );
}

/** What an earlier process of this name left, which is this one's from now on; nothing, where there is none that can be read. */
export function takeCounts(dataDir: string, process: string): MetricsSnapshot {
  const file = fileOf(dataDir, process);
  try {
    return countsIn(readFileSync(file, 'utf8'));
  } catch {
    return [];
  } finally {
    rmSync(file, { force: true });
  }
}

/** What a process left that no other one of its name has taken. Rejects where there is none. */
export async function leftCounts(dataDir: string, process: string): Promise<MetricsSnapshot> {
  return countsIn(await readFile(fileOf(dataDir, process), 'utf8'));
}

function countsIn(text: string): MetricsSnapshot {
  const counts: unknown = JSON.parse(text);
  if (!Array.isArray(counts)) throw new Error('no list');
  return counts as MetricsSnapshot;
}
