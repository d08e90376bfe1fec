import { webcrypto } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.js';
import { FairTurns } from '../../lib/fair-turns.js';
import { askThread, startThread, type AskedThread } from '../../lib/thread.js';

const LIMIT_MS = 10_000;
const MAX_MEMORY_MB = 128;
const CACHE_BYTES = 32 * 1_024 * 1_024;
const THREADS = 4;
const MAX_BYTES_OF_AN_ACCOUNT = 64 * 1_024 * 1_024;

/** WAV or MP3 to 16-bit linear samples at 8 kHz. */
export interface AudioDecoder {
  /**
   * Rejects with a sentence for a person. The samples are shared: they are not to be changed. The bytes have a buffer of their own, and are gone
   * afterwards.
   */
  decode(accountSid: string, bytes: Uint8Array): Promise<Int16Array>;
}

interface AccountFile {
  readonly accountSid: string;
  readonly bytes: Uint8Array;
}

/** Decodes each file in a thread of its own, an account's one after the other: a long file must delay neither calls nor other accounts. */
export class ThreadedAudioDecoder implements AudioDecoder {
  readonly #turns: FairTurns;
  readonly #cache = new LRUCache<string, Int16Array, AccountFile>({
    max: 512,
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ byteLength }) => Math.max(1, byteLength),
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context: { accountSid, bytes } }) => {
      const decoded = this.#turns.run(accountSid, bytes.byteLength, () => this.#decodeNow(bytes));
      if (decoded === null) throw new Error('too many audio files of the organization wait to be decoded');
      return decoded;
    },
  });

  constructor(
    private readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>,
    private readonly start: () => AskedThread<DecodedAudio> = startDecoder,
  ) {
    this.#turns = new FairTurns({ atOnce: THREADS, atOnceOfOne: 1, maxSize: MAX_BYTES_OF_AN_ACCOUNT, rest: 0 }, clock);
  }

  async decode(accountSid: string, bytes: Uint8Array): Promise<Int16Array> {
    // In another thread: 8 MiB take as long as a frame.
    const hash = Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex');
    // Of its own account: a file does not wait behind another account's.
    const key = `${accountSid} ${hash}`;
    return this.#cache.forceFetch(key, { context: { accountSid, bytes } });
  }

  async #decodeNow(bytes: Uint8Array): Promise<Int16Array> {
    const moved = [bytes.buffer as ArrayBuffer];
    const decoded = await askThread(this.start(), bytes, { clock: this.clock, limitMs: LIMIT_MS, moved });
    if (decoded === 'late') throw new Error(`the audio was not decoded within ${String(LIMIT_MS)} ms`);
    if (decoded === 'failed') throw new Error('the audio could not be decoded');
    if ('samples' in decoded) return decoded.samples;
    throw new Error(decoded.problem);
  }
}

/** What the thread answers. */
export type DecodedAudio = { readonly samples: Int16Array } | { readonly problem: string };

function startDecoder(): AskedThread<DecodedAudio> {
  return startThread(new URL('./audio-file-thread', import.meta.url), null, MAX_MEMORY_MB);
}
