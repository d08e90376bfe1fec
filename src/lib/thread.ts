import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.js';

const isBundled = import.meta.url.includes('/dist/bundle/');

// A thread that keeps the pace of audio must not stand still. With 32 MB, collecting its young objects takes 15 ms while 1,000 calls a
// second come and go, and V8 collects the old ones after nearly each time; with 8 MB it takes 5. The flag goes before a thread's resource
// limits, and holds for heaps to come.
const YOUNG_OBJECTS = '--max-semi-space-size=8';

/**
 * Starts a worker thread of the built program: a thread does not inherit the loader of a process that runs the sources.
 * @param module URL of its module beside the caller's, without its extension
 * @param maxMemoryMb of objects that last; a thread that needs more ends with an error
 */
export function startThread(module: URL, workerData: unknown, maxMemoryMb?: number): Worker {
  setFlagsFromString(YOUNG_OBJECTS);
  const limits = maxMemoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb } };
  const address = isBundled ? module.href.replace('/dist/', '/dist/bundle/') : module.href;
  return new Worker(new URL(`${address}.js`), { workerData, ...limits });
}

/** The part of a worker thread that a question needs. */
export interface AskedThread<Answer> {
  once(event: 'message', listener: (answer: Answer) => void): unknown;
  once(event: 'error', listener: () => void): unknown;
  postMessage(question: unknown, moved?: readonly ArrayBuffer[]): void;
  terminate(): Promise<number>;
}

/**
 * Asks a thread that answers once, and ends it. Nobody waits for its end: Node.js can lose a thread for good (nodejs/node#54918), and the next
 * question must not wait for that.
 * @param moved buffers of the question that are gone here afterwards
 * @returns `late`: no answer within the limit; `failed`: it broke, or needed too much memory
 */
export function askThread<Answer extends object>(
  thread: AskedThread<Answer>,
  question: unknown,
  {
    clock,
    limitMs,
    moved = [],
  }: { readonly clock: Pick<Clock, 'setTimer'>; readonly limitMs: number; readonly moved?: readonly ArrayBuffer[] },
): Promise<Answer | 'late' | 'failed'> {
  return new Promise((resolve) => {
    const end = (outcome: Answer | 'late' | 'failed'): void => {
      cancel();
      void thread.terminate();
      resolve(outcome);
    };
    const cancel = clock.setTimer(limitMs, () => end('late'));
    thread.once('message', end);
    thread.once('error', () => end('failed'));
    thread.postMessage(question, moved);
  });
}
