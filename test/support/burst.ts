import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/**
 * Sends so many datagrams of one byte to each port, as fast as they go, from a stranger's address. rtpengine 10.5 reads a port no more after
 * some hundred. They go out in a thread of their own: who listens to the calls meanwhile is not kept waiting.
 */
export async function burst(ports: readonly { readonly address: string; readonly port: number }[], count: number): Promise<void> {
  await once(new Worker(new URL('send-datagrams.mjs', import.meta.url), { workerData: { ports, count } }), 'exit');
}
