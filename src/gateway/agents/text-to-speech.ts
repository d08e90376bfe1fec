import type { Clock } from '../../lib/clock.js';
import { decodeG711 } from '../../rtp/codec/g711.js';
import { deepgramVoiceOf, isoOf, type SpeechServices, type Voice } from '../model/speech-service.js';
import { GuardedClient, loadHttpClient, type Reach } from '../net/guarded-client.js';
import { resample } from './resample.js';
import { SPEECH_RATE_HZ } from './speech.js';
import type { WireFormat } from './stream/wire-format.js';
import { causeOf } from './provider/json-message.js';

// Text to speech at providers, by HTTP requests whose answer is audio that can be played while it comes.

/** A request for one text. */
export interface SpeechRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What the answer has. */
  readonly format: Extract<WireFormat, 'pcmu' | 'pcm16-24000'>;
}

export interface SpeechText {
  readonly text: string;
  /** A language tag, such as `en-US`; `multi`: not known. */
  readonly language: string;
  readonly voice: Voice;
}

const JSON_TYPE = { 'content-type': 'application/json' };
/** Longest wait for all the audio of one text, which is a sentence or a few. */
const TIMEOUT_MS = 30_000;
const MAX_AUDIO_BYTES = 16 * 1_024 * 1_024;

/** What is sent to the provider of a voice. Pure. */
export function speechRequest(services: SpeechServices, { text, language, voice: { provider, voice: named } }: SpeechText): SpeechRequest {
  const service = services[provider];
  const url = new URL(service.url);
  switch (provider) {
    case 'deepgram':
      url.searchParams.set('model', named ?? (isoOf(language) === 'en' ? undefined : deepgramVoiceOf(language)) ?? service.voice);
      url.searchParams.set('encoding', 'mulaw');
      url.searchParams.set('sample_rate', '8000');
      url.searchParams.set('container', 'none');
      url.searchParams.set('mip_opt_out', 'true');
      return {
        url,
        headers: { ...JSON_TYPE, authorization: `Token ${service.apiKey ?? ''}` },
        body: JSON.stringify({ text }),
        format: 'pcmu',
      };
    case 'elevenlabs': {
      const { id, model, settings } = elevenLabsVoice(named ?? service.voice);
      url.pathname = `${url.pathname.replace(/\/$/, '')}/${encodeURIComponent(id)}/stream`;
      url.searchParams.set('output_format', 'ulaw_8000');
      const body = { text, model_id: model ?? service.model, ...(settings === null ? {} : { voice_settings: settings }) };
      return { url, headers: { ...JSON_TYPE, 'xi-api-key': service.apiKey ?? '' }, body: JSON.stringify(body), format: 'pcmu' };
    }
    case 'openai': {
      // Servers that speak the same protocol may want no key.
      const headers = { ...JSON_TYPE, ...(service.apiKey === null ? {} : { authorization: `Bearer ${service.apiKey}` }) };
      const body = { model: service.model, input: text, voice: named ?? service.voice, response_format: 'pcm' };
      return { url, headers, body: JSON.stringify(body), format: 'pcm16-24000' };
    }
  }
}

/** A voice as Twilio writes it: `<id>-<model>-<speed>_<stability>_<similarity>`, the last two left out or not. */
function elevenLabsVoice(name: string) {
  const [id = '', ...parts] = name.split('-');
  const model = parts.find((part) => /[a-z]/i.test(part));
  const numbers = parts.find((part) => /^[\d.]+(?:_[\d.]+){0,2}$/.test(part));
  const [speed, stability, similarity] = (numbers ?? '').split('_').map(Number);
  const settings =
    numbers === undefined
      ? null
      : {
          speed,
          ...(stability === undefined ? {} : { stability }),
          ...(similarity === undefined ? {} : { similarity_boost: similarity }),
        };
  return { id, model: model === undefined ? null : `eleven_${model}`, settings };
}

/** Text to speech at providers. Both reject with a sentence for a person. */
export interface TextToSpeech {
  /** Gives the audio on while it comes, in pieces of any length. The bytes belong to the one who is called. */
  stream(
    services: SpeechServices,
    text: SpeechText,
    signal: AbortSignal,
    onAudio: (format: SpeechRequest['format'], bytes: Uint8Array) => void,
  ): Promise<void>;
  /** All of it as 16-bit linear samples at 8 kHz. */
  samples(services: SpeechServices, text: SpeechText, signal: AbortSignal): Promise<Int16Array>;
}

export class HttpTextToSpeech implements TextToSpeech {
  readonly #client: GuardedClient;

  constructor(options: Reach & { readonly clock: Clock }) {
    this.#client = new GuardedClient({ ...options, maxResponseBytes: MAX_AUDIO_BYTES });
  }

  /** Ahead of the first text, for which this thread would stand still meanwhile. */
  load(): Promise<void> {
    return loadHttpClient();
  }

  async stream(...[services, text, signal, onAudio]: Parameters<TextToSpeech['stream']>): Promise<void> {
    const { provider } = text.voice;
    if (services[provider].apiKey === null && provider !== 'openai') throw new Error(`there is no key for ${provider}`);
    const { url, headers, body, format } = speechRequest(services, text);
    const request = { method: 'POST', headers, body, signal, timeoutMs: TIMEOUT_MS } as const;
    const answer = await this.#client.stream(url, request, (bytes) => onAudio(format, bytes));
    if (!answer.ok) throw new Error(`${provider} ${answer.error.text}`);
    if (answer.value !== 200) throw new Error(`${provider} answered ${String(answer.value)}${causeOf(String(answer.value))}`);
  }

  async samples(services: SpeechServices, text: SpeechText, signal: AbortSignal): Promise<Int16Array> {
    const pieces: Uint8Array[] = [];
    const formats = new Set<SpeechRequest['format']>();
    await this.stream(services, text, signal, (given, bytes) => {
      formats.add(given);
      pieces.push(bytes);
    });
    const bytes = Buffer.concat(pieces);
    if (formats.has('pcmu')) {
      const samples = new Int16Array(bytes.length);
      decodeG711('PCMU', bytes, samples);
      return samples;
    }
    const samples = new Int16Array(bytes.length >> 1);
    new Uint8Array(samples.buffer).set(bytes.subarray(0, 2 * samples.length));
    return resample(samples, 24_000, SPEECH_RATE_HZ);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}
