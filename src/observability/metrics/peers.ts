import { askProcess } from '../../config/process-socket.js';
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
    isUp.set(names[index] ?? '', true);
    snapshots.push(answer.value);
  }
  for (const places of peers) if (!places.some((name) => isUp.has(name))) isUp.set(places[0] ?? '', false);
  return exposition([...snapshots, upSnapshot(isUp)]);
}

async function readPeer(dataDir: string, peer: string): Promise<MetricsSnapshot> {
  const snapshot = await askProcess(dataDir, peer, METRICS_QUESTION, PEER_LIMIT_MS);
  if (!Array.isArray(snapshot)) throw new Error('no list');
  return snapshot as MetricsSnapshot;
}
