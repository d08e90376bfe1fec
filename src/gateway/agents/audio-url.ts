import type { Reach } from '../net/guarded-client.js';
import type { Clock } from '../../lib/clock.js';
import { HttpAudioServer } from '../twilio/voice-client.js';
import type { AudioDecoder } from './audio-file.js';

/** Longest wait for a file. */
const TIMEOUT_MS = 10_000;

/** Audio files that customers name. */
export interface AudioUrls {
  /** 16-bit linear samples at 8 kHz. Rejects with a sentence for a person. The samples are shared: they are not to be changed. */
  samplesAt(accountSid: string, url: string, ended: AbortSignal): Promise<Int16Array>;
}

/** Fetches and decodes them: by a media thread and its decoders, for the main thread would be held by the bytes alone. */
export class FetchedAudio implements AudioUrls {
  readonly #server: HttpAudioServer;

  constructor(
    options: Reach & { readonly clock: Clock },
    private readonly decoder: AudioDecoder,
  ) {
    this.#server = new HttpAudioServer({ ...options, timeoutMs: TIMEOUT_MS });
  }

  async samplesAt(accountSid: string, url: string, ended: AbortSignal): Promise<Int16Array> {
    const file = await this.#server.audio(url, ended);
    if (!file.ok) throw new Error(file.error);
    return this.decoder.decode(accountSid, file.value);
  }
}
