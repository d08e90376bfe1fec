// Loaded by `--import` with --expose-gc: `gc()` of the main thread collects the garbage of all threads, which else collect it when they like,
// so that one run has the remains of its start in its memory and the next one has not.
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

const channel = new BroadcastChannel('collect');
channel.unref();
const collect = globalThis.gc;
if (isMainThread) {
  globalThis.gc = () => {
    channel.postMessage(null);
    collect();
  };
} else channel.onmessage = () => collect();
