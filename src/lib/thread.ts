import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';

/** Only tests run the sources; a thread does not inherit its parent's loader. */
const isSource = import.meta.url.endsWith('.ts');
const isBundled = import.meta.url.includes('/dist/bundle/');

// A thread that keeps the pace of audio must not stand still. With 32 MB, collecting its young objects takes 15 ms while 1,000 calls a
// second come and go, and V8 collects the old ones after nearly each time; with 8 MB it takes 5. The flag goes before a thread's resource
// limits, and holds for heaps to come.
const YOUNG_OBJECTS = '--max-semi-space-size=8';

/**
 * Starts a worker thread.
 * @param module URL of its module beside the caller's, without its extension
 */
export function startThread(module: URL, workerData: unknown): Worker {
  setFlagsFromString(YOUNG_OBJECTS);
  const address = isBundled ? module.href.replace('/dist/', '/dist/bundle/') : module.href;
  return new Worker(new URL(`${address}${isSource ? '.ts' : '.js'}`), { workerData, execArgv: execArgv() });
}

function execArgv(): string[] {
  if (!isSource) return [];
  const hook = `import{register}from${JSON.stringify(import.meta.resolve('tsx/esm/api'))};register()`;
  return ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
}
