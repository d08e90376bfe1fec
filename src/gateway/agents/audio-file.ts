import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { startThread } from '../../lib/thread.js';

const TIMEOUT_MS = 10_000;
const CACHE_BYTES = 32 * 1_024 * 1_024;

/** Audio files that customers name: WAV or MP3 to 16-bit linear samples at 8 kHz. */
export interface AudioFiles {
  /** Rejects with a sentence for a person. The samples are shared: they are not to be changed. */
  decode(bytes: Uint8Array): Promise<Int16Array>;
}

/** Decodes in a thread of its own, one file at a time: a long file must not delay the frames of calls. */
export class ThreadedAudioFiles implements AudioFiles {
  readonly #limit = pLimit(1);
  readonly #cache = new LRUCache<string, Int16Array, Uint8Array>({
    max: 512,
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ byteLength }) => Math.max(1, byteLength),
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context }) => this.#limit(() => decodeInThread(context)),
  });

  decode(bytes: Uint8Array): Promise<Int16Array> {
    return this.#cache.forceFetch(createHash('sha256').update(bytes).digest('hex'), { context: bytes });
  }
}

/** What the thread answers. */
export type DecodedAudio = { readonly samples: Int16Array } | { readonly problem: string };

function decodeInThread(bytes: Uint8Array): Promise<Int16Array> {
  return new Promise((resolve, reject) => {
    const thread = startThread(new URL('./audio-file-thread', import.meta.url), bytes);
    const limit = setTimeout(() => void thread.terminate(), TIMEOUT_MS);
    thread.once('message', (decoded: DecodedAudio) => {
      if ('samples' in decoded) resolve(decoded.samples);
      else reject(new Error(decoded.problem));
    });
    thread.once('error', () => reject(new Error('the audio could not be decoded')));
    thread.once('exit', () => {
      clearTimeout(limit);
      reject(new Error(`the audio was not decoded within ${String(TIMEOUT_MS)} ms`));
    });
  });
}
