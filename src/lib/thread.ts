import { Worker } from 'node:worker_threads';

/** Only tests run the sources; a thread does not inherit its parent's loader. */
const isSource = import.meta.url.endsWith('.ts');
const isBundled = import.meta.url.includes('/dist/bundle/');

/**
 * Starts a worker thread.
 * @param module URL of its module beside the caller's, without its extension
 */
export function startThread(module: URL, workerData: unknown): Worker {
  const address = isBundled ? module.href.replace('/dist/', '/dist/bundle/') : module.href;
  return new Worker(new URL(`${address}${isSource ? '.ts' : '.js'}`), { workerData, execArgv: execArgv() });
}

function execArgv(): string[] {
  if (!isSource) return [];
  const hook = `import{register}from${JSON.stringify(import.meta.resolve('tsx/esm/api'))};register()`;
  return ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
}
