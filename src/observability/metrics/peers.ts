import { askProcess } from '../../config/process-socket.js';
import { leftCounts } from './left-counts.js';
import { exposition, upSnapshot, type Metrics, type MetricsSnapshot } from './registry.js';

/** What a process asks another for its metrics (`config/process-socket.ts`). */
export const METRICS_QUESTION = 'metrics';
/** Timeout for another process: Prometheus waits 10 s for all of them. */
const PEER_LIMIT_MS = 500;

/**
 * Prometheus text of this process and the others. A process that does not answer in time is down and delays nobody.
 * @param peers for each process the names that it may have; during a reload there may be one under each
 * @param others processes that need not be there
 */
export async function gatherMetrics(
  own: Metrics,
  dataDir: string,
  peers: readonly (readonly string[])[],
  others: readonly string[] = [],
): Promise<string> {
  const names = [...peers.flat(), ...others].filter((name) => name !== own.process);
  // Settled from the start: one that is away answers before our own figures are there.
  const asked = Promise.allSettled(names.map((name) => readPeer(dataDir, name)));
  const snapshots = [await own.snapshot()];
  const isUp = new Map([[own.process, true]]);
  for (const [index, answer] of (await asked).entries()) {
    if (answer.status === 'rejected') continue;
    const { snapshot, isHere } = answer.value;
    if (isHere) isUp.set(names[index] ?? '', true);
    snapshots.push(snapshot);
  }
  for (const places of peers) if (!places.some((name) => isUp.has(name))) isUp.set(places[0] ?? '', false);
  return exposition([...snapshots, upSnapshot(isUp)]);
}

/** What it answers; of one that is not here, what it left. */
async function readPeer(dataDir: string, peer: string): Promise<{ readonly snapshot: MetricsSnapshot; readonly isHere: boolean }> {
  const snapshot = await askProcess(dataDir, peer, METRICS_QUESTION, PEER_LIMIT_MS).catch(() => null);
  if (Array.isArray(snapshot)) return { snapshot: snapshot as MetricsSnapshot, isHere: true };
  return { snapshot: await leftCounts(dataDir, peer), isHere: false };
}
