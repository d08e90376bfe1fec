import { EventEmitter } from 'node:events';
import { boundToProcess } from './process.js';
import { outstanding } from './time.js';

/** What a thread's module gets in place of `parentPort` of node:worker_threads. */
export type ThreadPort = Pick<EventEmitter, 'on'> & { postMessage(message: unknown, moved?: readonly ArrayBuffer[]): void; close(): void };

/** What the modules of threads do, by their file's name without its extension: here they run in the process of the test. */
const THREADS: Readonly<Record<string, () => Promise<(port: ThreadPort, workerData: unknown) => void>>> = {
  worker: async () => {
    const { loadAgents, runMediaThread } = await import('../../../src/gateway/media-thread/media-thread.js');
    await loadAgents();
    return (port, workerData) => runMediaThread(port as never, workerData as never);
  },
  'result-paths-thread': async () => {
    const { pickResults } = await import('../../../src/gateway/agents/pick-results.js');
    return (port) => port.on('message', (order: unknown) => port.postMessage(pickResults(order as never)));
  },
  'audio-file-thread': async () => {
    const { decodedAudio } = await import('../../../src/gateway/agents/decode-audio-file.js');
    return (port) =>
      port.on('message', (bytes: unknown) => void outstanding(decodedAudio(bytes as never)).then((audio) => port.postMessage(audio)));
  },
  'batch-body-thread': async () => {
    const { readBatchText } = await import('../../../src/gateway/api/batch-body.js');
    return (port) => port.on('message', (body: unknown) => void readBatchText(body as never).then((text) => port.postMessage(text)));
  },
};

const loaded = new Map<string, (port: ThreadPort, workerData: unknown) => void>();

/** Ahead of the world: loading takes real time. */
export async function loadThreads(): Promise<void> {
  for (const [name, load] of Object.entries(THREADS)) if (!loaded.has(name)) loaded.set(name, await load());
}

/** In place of `Worker` of node:worker_threads: messages are copied, and come in a later turn. */
export class WorldThread extends EventEmitter {
  readonly #inside = new EventEmitter();
  #hasEnded = false;
  readonly threadId = 1;

  constructor(module: URL, options: { readonly workerData?: unknown } = {}) {
    super();
    const name = /([^/]+)\.js$/.exec(module.pathname)?.[1] ?? '';
    const run = loaded.get(name);
    if (run === undefined) throw new Error(`the world has no thread ${name}`);
    const port: ThreadPort = {
      on: (event: string | symbol, listener: (...given: unknown[]) => void) => this.#inside.on(event, listener),
      postMessage: (message) => this.#later(() => this.emit('message', structuredClone(message))),
      close: () => void this.terminate(),
    } as ThreadPort;
    this.#later(() => run(port, structuredClone(options.workerData)));
  }

  postMessage(message: unknown): void {
    const copy = structuredClone(message);
    this.#later(() => this.#inside.emit('message', copy));
  }

  terminate(): Promise<number> {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      setImmediate(boundToProcess(() => this.emit('exit', 0)));
    }
    return Promise.resolve(0);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  #later(work: () => void): void {
    const bound = boundToProcess(work);
    setImmediate(() => {
      if (!this.#hasEnded) bound();
    });
  }
}
