import { askProcess } from '../../config/process-socket.js';
import { exposition, upSnapshot, type Metrics, type MetricsSnapshot } from './registry.js';

/** What a process asks another for its metrics (`config/process-socket.ts`). */
export const METRICS_QUESTION = 'metrics';
/** Timeout for another process: Prometheus waits 10 s for all of them. */
const PEER_LIMIT_MS = 500;

/** Prometheus text of this process and the others. A process that does not answer in time is down and delays nobody. */
export async function gatherMetrics(own: Metrics, dataDir: string, peers: readonly string[]): Promise<string> {
  const asked = peers.map((peer) => readPeer(dataDir, peer));
  const snapshots = [await own.snapshot()];
  const isUp = new Map([[own.process, true]]);
  for (const [index, answer] of (await Promise.allSettled(asked)).entries()) {
    isUp.set(peers[index] ?? '', answer.status === 'fulfilled');
    if (answer.status === 'fulfilled') snapshots.push(answer.value);
  }
  return exposition([...snapshots, upSnapshot(isUp)]);
}

async function readPeer(dataDir: string, peer: string): Promise<MetricsSnapshot> {
  const snapshot = await askProcess(dataDir, peer, METRICS_QUESTION, PEER_LIMIT_MS);
  if (!Array.isArray(snapshot)) throw new Error('no list');
  return snapshot as MetricsSnapshot;
}
