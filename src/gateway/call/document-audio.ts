import pLimit from 'p-limit';
import { err, type Result } from '../../lib/result.js';

const MIB = 1_024 * 1_024;
const MAX_MIB = 16;
const AT_ONCE = 4;

type AudioFile = Result<Uint8Array, string>;

/** The audio files of one TwiML document. Each URL is fetched once, a few at the same time, and all together have a limit. */
export class DocumentAudio {
  readonly #files = new Map<string, Promise<AudioFile>>();
  readonly #turn = pLimit(AT_ONCE);
  #bytes = 0;

  constructor(private readonly fetch: (url: string) => Promise<AudioFile>) {}

  /** The error is a sentence for a person. */
  file(url: string): Promise<AudioFile> {
    const file = this.#files.get(url) ?? this.#turn(() => this.#fetched(url));
    this.#files.set(url, file);
    return file;
  }

  async #fetched(url: string): Promise<AudioFile> {
    const tooMuch = err(
      `The audio files of the document have more than ${String(MAX_MIB)} MiB together; the call goes on without this one.`,
    );
    if (this.#bytes > MAX_MIB * MIB) return tooMuch;
    const audio = await this.fetch(url);
    if (audio.ok) this.#bytes += audio.value.byteLength;
    return this.#bytes > MAX_MIB * MIB ? tooMuch : audio;
  }
}
