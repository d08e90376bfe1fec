import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { Arrivals } from '../arrivals.js';

// Text to speech of Deepgram, ElevenLabs and OpenAI as far as their references and libraries describe it, strictly: whatever is not
// described is answered with 400. No live service was reached.

const deepgram = {
  query: z.strictObject({
    model: z.string().regex(/^aura-2-[a-z]+-[a-z]{2}$/),
    encoding: z.literal('mulaw'),
    sample_rate: z.literal('8000'),
    container: z.literal('none'),
    mip_opt_out: z.enum(['true', 'false']).exactOptional(),
  }),
  body: z.strictObject({ text: z.string().min(1).max(2_000) }),
};
const elevenlabs = {
  query: z.strictObject({ output_format: z.literal('ulaw_8000') }),
  body: z.strictObject({
    text: z.string().min(1),
    model_id: z.string().regex(/^eleven_\w+$/),
    voice_settings: z
      .strictObject({
        speed: z.number().min(0.7).max(1.2),
        stability: z.number().min(0).max(1).exactOptional(),
        similarity_boost: z.number().min(0).max(1).exactOptional(),
      })
      .exactOptional(),
  }),
};
const openai = {
  query: z.strictObject({}),
  body: z.strictObject({
    model: z.string().min(1),
    input: z.string().min(1).max(4_096),
    voice: z.string().min(1),
    response_format: z.literal('pcm'),
  }),
};

export interface SpeechAsked {
  readonly provider: 'deepgram' | 'elevenlabs' | 'openai';
  readonly text: string;
  readonly voice: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The HTTP servers of three providers in one: what is asked for, and the audio that each text becomes. */
export class FakeSpeech {
  readonly asked = new Arrivals<SpeechAsked>();
  readonly errors: string[] = [];
  /** HTTP status in place of audio. */
  refusal: number | null = null;
  /** Audio is held back from here on. */
  isStalled = false;
  readonly #stalled: (() => void)[] = [];

  private constructor(
    private readonly server: Server,
    /** Of a text in the format of its provider. */
    private readonly audioOf: (asked: SpeechAsked) => Buffer,
  ) {}

  static async start(audioOf: (asked: SpeechAsked) => Buffer): Promise<FakeSpeech> {
    const server = createServer();
    const fake = new FakeSpeech(server, audioOf);
    server.on('request', (request, response) => void fake.#answer(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  resume(): void {
    this.isStalled = false;
    for (const go of this.#stalled.splice(0)) go();
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    try {
      const asked = read(request, Buffer.concat(chunks).toString());
      this.asked.add(asked);
      if (this.refusal !== null) return void response.writeHead(this.refusal).end('{}');
      response.writeHead(200, { 'content-type': 'audio/basic' });
      response.flushHeaders();
      if (this.isStalled) await new Promise<void>((go) => this.#stalled.push(go));
      const audio = this.audioOf(asked);
      // Pieces that end within a sample, too.
      for (let at = 0; at < audio.length && !response.destroyed; at += 1_001) {
        response.write(audio.subarray(at, at + 1_001));
        await turn();
      }
      response.end();
    } catch (error) {
      this.errors.push(String(error));
      response.writeHead(400).end('{}');
    }
  }
}

function read({ method, url = '', headers }: IncomingMessage, text: string): SpeechAsked {
  const { pathname, searchParams } = new URL(url, 'http://fake');
  if (method !== 'POST' || headers['content-type']?.startsWith('application/json') !== true) throw new Error('no POST of JSON');
  const parameters = Object.fromEntries(searchParams);
  const json: unknown = JSON.parse(text);
  if (pathname === '/v1/speak') {
    if (!/^Token \S+$/i.test(headers.authorization ?? '')) throw new Error('no token');
    const { model } = deepgram.query.parse(parameters);
    const body = deepgram.body.parse(json);
    return { provider: 'deepgram', text: body.text, voice: model, body };
  }
  const voice = /^\/v1\/text-to-speech\/([^/]+)\/stream$/.exec(pathname)?.[1];
  if (voice !== undefined) {
    if (!/^\S+$/.test(String(headers['xi-api-key'] ?? ''))) throw new Error('no key');
    elevenlabs.query.parse(parameters);
    const body = elevenlabs.body.parse(json);
    return { provider: 'elevenlabs', text: body.text, voice: decodeURIComponent(voice), body };
  }
  if (pathname !== '/v1/audio/speech') throw new Error(`no such path: ${pathname}`);
  openai.query.parse(parameters);
  const body = openai.body.parse(json);
  return { provider: 'openai', text: body.input, voice: body.voice, body };
}
