import { webcrypto } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.js';
import { FairTurns } from '../../lib/fair-turns.js';
import { startThread } from '../../lib/thread.js';

const LIMIT_MS = 10_000;
const MAX_MEMORY_MB = 128;
const CACHE_BYTES = 32 * 1_024 * 1_024;
const THREADS = 4;
const MAX_BYTES_OF_AN_ACCOUNT = 64 * 1_024 * 1_024;

/** WAV or MP3 to 16-bit linear samples at 8 kHz. */
export interface AudioDecoder {
  /** Rejects with a sentence for a person. The samples are shared: they are not to be changed. The bytes are gone afterwards. */
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
      const decoded = this.#turns.run(accountSid, bytes.byteLength, () => decodeIn(this.start(), bytes, this.clock));
      if (decoded === null) throw new Error('too many audio files of the organization wait to be decoded');
      return decoded;
    },
  });

  constructor(
    private readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>,
    private readonly start: () => DecoderThread = startDecoder,
  ) {
    this.#turns = new FairTurns({ atOnce: THREADS, maxSize: MAX_BYTES_OF_AN_ACCOUNT, rest: 0 }, clock);
  }

  async decode(accountSid: string, bytes: Uint8Array): Promise<Int16Array> {
    // In another thread: 8 MiB take as long as a frame.
    const hash = Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex');
    // Of its own account: a file does not wait behind another account's.
    const key = `${accountSid} ${hash}`;
    return this.#cache.forceFetch(key, { context: { accountSid, bytes } });
  }
}

/** What the thread answers. */
export type DecodedAudio = { readonly samples: Int16Array } | { readonly problem: string };

/** The part of a worker thread that is used. */
export interface DecoderThread {
  once(event: 'message', listener: (decoded: DecodedAudio) => void): unknown;
  once(event: 'error', listener: () => void): unknown;
  postMessage(bytes: Uint8Array, moved: readonly ArrayBuffer[]): void;
  terminate(): Promise<number>;
}

function startDecoder(): DecoderThread {
  return startThread(new URL('./audio-file-thread', import.meta.url), null, MAX_MEMORY_MB);
}

/** Nobody waits for the thread's end: Node.js can lose a thread for good (nodejs/node#54918), and the next file must not wait for that. */
function decodeIn(thread: DecoderThread, bytes: Uint8Array, clock: Pick<Clock, 'setTimer'>): Promise<Int16Array> {
  return new Promise((resolve, reject) => {
    const end = (decoded: DecodedAudio): void => {
      cancel();
      void thread.terminate();
      if ('samples' in decoded) resolve(decoded.samples);
      else reject(new Error(decoded.problem));
    };
    const cancel = clock.setTimer(LIMIT_MS, () => end({ problem: `the audio was not decoded within ${String(LIMIT_MS)} ms` }));
    thread.once('message', end);
    thread.once('error', () => end({ problem: 'the audio could not be decoded' }));
    thread.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
  });
}
