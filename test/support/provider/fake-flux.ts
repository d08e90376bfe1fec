import type { IncomingHttpHeaders } from 'node:http';
import type { listen as Sdk } from '@deepgram/sdk';
import { z } from 'zod';
import { Arrivals } from '../arrivals.js';
import type { FakeDeepgramEnd } from './fake-deepgram.js';

// Deepgram's Flux as far as its reference and its library describe it, strictly. No live service was reached.

const query = z.strictObject({
  model: z.enum(['flux-general-en', 'flux-general-multi']),
  encoding: z.enum(['mulaw', 'alaw', 'linear16', 'linear32']),
  sample_rate: z.string().regex(/^\d+$/),
  language_hint: z.string().min(2).exactOptional(),
  mip_opt_out: z.enum(['true', 'false']).exactOptional(),
  keyterm: z.string().min(1).exactOptional(),
});
const clientMessage = z.discriminatedUnion('type', [z.strictObject({ type: z.literal('CloseStream') })]);

/** One session. */
export class FakeFluxSession {
  readonly messages = new Arrivals<Sdk.ListenV2CloseStream>();
  readonly errors: string[] = [];
  readonly closed = new Arrivals<number>();
  readonly parameters: z.output<typeof query>;
  readonly keyterms: readonly string[];
  readonly #audio: Buffer[] = [];
  #sequence = 0;
  #turn = 0;

  constructor(
    private readonly end: FakeDeepgramEnd,
    { headers, url = '' }: { readonly headers: IncomingHttpHeaders; readonly url?: string | undefined },
  ) {
    const { pathname, searchParams } = new URL(url, 'ws://fake');
    if (pathname !== '/v2/listen') throw new Error(`no such path: ${pathname}`);
    if (!/^Token \S+$/.test(String(headers['authorization'] ?? headers['Authorization']))) throw new Error('no token');
    this.parameters = query.parse(Object.fromEntries(searchParams));
    this.keyterms = searchParams.getAll('keyterm');
    if (this.parameters.model === 'flux-general-en' && this.parameters.language_hint !== undefined)
      this.errors.push('a hint for one language');
    this.#send({ type: 'Connected', request_id: 'r-1', sequence_id: this.#next() });
  }

  /** The caller's. */
  get audio(): Buffer {
    return Buffer.concat(this.#audio);
  }

  receive(text: string): void {
    const parsed = clientMessage.safeParse(JSON.parse(text));
    if (parsed.success) this.messages.add(parsed.data);
    else this.errors.push(`${text.slice(0, 200)}: ${parsed.error.message}`);
  }

  receiveBytes(bytes: Buffer): void {
    if (this.parameters.encoding === 'mulaw' && bytes.length !== 640) this.errors.push(`a piece of ${String(bytes.length)} bytes`);
    this.#audio.push(bytes);
  }

  /** The caller begins to speak, goes on, or has finished. */
  turn(event: 'StartOfTurn' | 'Update' | 'EagerEndOfTurn' | 'TurnResumed' | 'EndOfTurn', transcript: string, languages?: string[]): void {
    const seconds = this.audio.length / 8_000;
    this.#send({
      type: 'TurnInfo',
      request_id: 'r-1',
      sequence_id: this.#next(),
      event,
      turn_index: this.#turn,
      audio_window_start: 0,
      audio_window_end: seconds,
      transcript,
      words: transcript.split(' ').map((word) => ({ word, confidence: 0.9 })),
      end_of_turn_confidence: event === 'EndOfTurn' ? 0.9 : 0.1,
      ...(event === 'EndOfTurn' ? { trigger: 'model' } : {}),
      ...(languages === undefined ? {} : { languages }),
    });
    if (event === 'EndOfTurn') this.#turn += 1;
  }

  fail(code: string): void {
    this.#send({ type: 'Error', sequence_id: this.#next(), code, description: 'refused' });
    this.end.close(1_011, code);
  }

  #next(): number {
    this.#sequence += 1;
    return this.#sequence - 1;
  }

  #send(message: Sdk.ListenV2Connected | Sdk.ListenV2TurnInfo | Sdk.ListenV2FatalError): void {
    this.end.send(JSON.stringify(message));
  }
}
