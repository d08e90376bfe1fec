import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { Clock } from '../../lib/clock.js';
import { startThread } from '../../lib/thread.js';

const LIMIT_MS = 10_000;
const MAX_MEMORY_MB = 128;
const CACHE_BYTES = 32 * 1_024 * 1_024;

/** Audio files that customers name: WAV or MP3 to 16-bit linear samples at 8 kHz. */
export interface AudioFiles {
  /** Rejects with a sentence for a person. The samples are shared: they are not to be changed. */
  decode(bytes: Uint8Array): Promise<Int16Array>;
}

/** Decodes in a thread of its own, one file at a time: a long file must not delay the frames of calls. */
export class ThreadedAudioFiles implements AudioFiles {
  readonly #turn = pLimit(1);
  readonly #cache = new LRUCache<string, Int16Array, Uint8Array>({
    max: 512,
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ byteLength }) => Math.max(1, byteLength),
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context }) => this.#turn(() => decodeInThread(context, this.clock)),
  });

  constructor(private readonly clock: Pick<Clock, 'setTimer'>) {}

  decode(bytes: Uint8Array): Promise<Int16Array> {
    return this.#cache.forceFetch(createHash('sha256').update(bytes).digest('hex'), { context: bytes });
  }
}

/** What the thread answers. */
export type DecodedAudio = { readonly samples: Int16Array } | { readonly problem: string };

/** Nobody waits for the thread's end: Node.js can lose a thread for good (nodejs/node#54918), and the next file must not wait for that. */
function decodeInThread(bytes: Uint8Array, clock: Pick<Clock, 'setTimer'>): Promise<Int16Array> {
  return new Promise((resolve, reject) => {
    const thread = startThread(new URL('./audio-file-thread', import.meta.url), null, MAX_MEMORY_MB);
    const end = (decoded: DecodedAudio): void => {
      cancel();
      void thread.terminate();
      if ('samples' in decoded) resolve(decoded.samples);
      else reject(new Error(decoded.problem));
    };
    const cancel = clock.setTimer(LIMIT_MS, () => end({ problem: `the audio was not decoded within ${String(LIMIT_MS)} ms` }));
    thread.once('message', end);
    thread.once('error', () => end({ problem: 'the audio could not be decoded' }));
    thread.postMessage(bytes);
  });
}
