import { type AudioCodec, BYTES_PER_MS, encodeG711, isQuietG711, silenceByte, transcodeG711 } from '../../../rtp/codec/g711.js';
import { RateHalver } from '../../../rtp/codec/rate-doubler.js';
import { RateThird } from '../../../rtp/codec/rate-tripler.js';
import { SpeechQueue } from './speech-queue.js';
import type { WireFormat } from './wire-format.js';

/** An agent's speech on its way to the caller: from the agent's format to the leg's codec, queued and paced. */
export class Downlink {
  readonly #codec: AudioCodec;
  readonly queue: SpeechQueue;
  #halver: RateHalver | undefined;
  #third: RateThird | undefined;

  constructor(
    private readonly format: WireFormat,
    legCodec: AudioCodec,
    maxQueuedMs: number,
  ) {
    this.#codec = legCodec;
    this.queue = new SpeechQueue(maxQueuedMs, silenceByte(legCodec), (byte) => isQuietG711(legCodec, byte));
  }

  /** Audio of a raw format, the agent's if it is left out; of `twilio` it is ignored. The bytes are changed. Returns the milliseconds that there was no room for. */
  sendBinary(bytes: Uint8Array, format: WireFormat = this.format): number {
    switch (format) {
      case 'twilio':
        return 0;
      case 'pcmu':
        return this.#push('PCMU', bytes);
      case 'pcma':
        return this.#push('PCMA', bytes);
      case 'pcm16-8000':
        return this.#pushSamples(samplesOf(bytes));
      case 'pcm16-16000':
        return this.#pushSamples(this.#halve(samplesOf(bytes)));
      case 'pcm16-24000':
        this.#third ??= new RateThird();
        return this.#pushSamples(this.#third.process(samplesOf(bytes)));
    }
  }

  #push(codec: AudioCodec, bytes: Uint8Array): number {
    if (codec !== this.#codec) transcodeG711(codec, bytes, bytes);
    return this.queue.push(bytes) / BYTES_PER_MS;
  }

  #halve(samples: Int16Array): Int16Array {
    this.#halver ??= new RateHalver();
    const halved = new Int16Array(samples.length / 2 + 1);
    return halved.subarray(0, this.#halver.process(samples, halved));
  }

  #pushSamples(samples: Int16Array): number {
    const bytes = new Uint8Array(samples.length);
    encodeG711(this.#codec, samples, bytes);
    return this.queue.push(bytes) / BYTES_PER_MS;
  }
}

/** Little-endian 16-bit samples at any offset; an odd last byte is left out. */
function samplesOf(bytes: Uint8Array): Int16Array {
  const samples = new Int16Array(bytes.length >> 1);
  new Uint8Array(samples.buffer).set(bytes.subarray(0, 2 * samples.length));
  return samples;
}
