import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { exposition, upSnapshot, type Metrics, type MetricsSnapshot } from './registry.js';

// The processes of one `trunkline up` exchange metrics over Unix sockets in the data directory, which only their user can open: a
// connection gets the snapshot as JSON and is closed.

/** Timeout for another process: Prometheus waits 10 s for all of them. */
const PEER_LIMIT_MS = 500;
const MAX_SNAPSHOT_BYTES = 8 * 1_024 * 1_024;
/** sun_path of unix(7), without its last byte. */
const MAX_PATH_BYTES = 107;

export function metricsSocket(dataDir: string, process_: string): string {
  const absolute = join(resolve(dataDir), `metrics-${process_}.sock`);
  const fromHere = relative(process.cwd(), absolute);
  return Buffer.byteLength(absolute) > MAX_PATH_BYTES && fromHere.length < absolute.length ? fromHere : absolute;
}

/** Serves this process's metrics and returns a function that stops it. Logs a socket that cannot be opened: calls do not need it. */
export function serveMetrics(metrics: Metrics, dataDir: string, log: Log): () => void {
  const path = metricsSocket(dataDir, metrics.process);
  const failed = (reason: string): void => log.warn({ reason }, 'metrics.socket.not_opened');
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    failed(`its path would have more than ${String(MAX_PATH_BYTES)} bytes: choose a shorter data_dir`);
    return () => undefined;
  }
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.setTimeout(2 * PEER_LIMIT_MS, () => socket.destroy());
    metrics.snapshot().then(
      (snapshot) => socket.end(JSON.stringify(snapshot)),
      () => socket.destroy(),
    );
  });
  server.on('error', (error) => failed(errorText(error)));
  // Left by a killed process; the data directory is ours alone (supervisor.pid).
  rmSync(path, { force: true });
  server.listen(path);
  server.unref();
  return () => void server.close();
}

/** Prometheus text of this process and the others. A process that does not answer in time is down and delays nobody. */
export async function gatherMetrics(own: Metrics, dataDir: string, peers: readonly string[]): Promise<string> {
  const asked = peers.map((peer) => readPeer(metricsSocket(dataDir, peer)));
  const snapshots = [await own.snapshot()];
  const isUp = new Map([[own.process, true]]);
  for (const [index, answer] of (await Promise.allSettled(asked)).entries()) {
    isUp.set(peers[index] ?? '', answer.status === 'fulfilled');
    if (answer.status === 'fulfilled') snapshots.push(answer.value);
  }
  return exposition([...snapshots, upSnapshot(isUp)]);
}

function readPeer(path: string): Promise<MetricsSnapshot> {
  return new Promise((resolve_, reject) => {
    const socket = connect({ path });
    const fail = (reason: string): void => {
      clearTimeout(limit);
      socket.destroy();
      reject(new Error(reason));
    };
    const limit = setTimeout(() => fail('no answer in time'), PEER_LIMIT_MS);
    const chunks: Buffer[] = [];
    let bytes = 0;
    socket.on('error', (error) => fail(errorText(error)));
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_SNAPSHOT_BYTES) fail('too much');
      else chunks.push(chunk);
    });
    socket.on('end', () => {
      clearTimeout(limit);
      try {
        const snapshot: unknown = JSON.parse(Buffer.concat(chunks).toString());
        if (!Array.isArray(snapshot)) throw new Error('no list');
        resolve_(snapshot as MetricsSnapshot);
      } catch (error) {
        reject(error instanceof Error ? error : new Error('no JSON'));
      }
    });
  });
}
