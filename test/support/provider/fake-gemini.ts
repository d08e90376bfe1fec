import type { LiveClientMessage, LiveServerContent, LiveServerMessage, TurnCompleteReason } from '@google/genai';
import { z } from 'zod';
import { Arrivals } from '../arrivals.js';
import type { OnTheWire } from './on-the-wire.js';

// Google's Gemini Live API as far as its reference and its library describe it, strictly. No live service was reached.

const part = z.strictObject({ text: z.string().min(1) });
const setup = z.strictObject({
  model: z.string().regex(/^models\/./),
  generationConfig: z.strictObject({
    responseModalities: z.tuple([z.literal('AUDIO')]),
    speechConfig: z
      .strictObject({ voiceConfig: z.strictObject({ prebuiltVoiceConfig: z.strictObject({ voiceName: z.string() }) }) })
      .exactOptional(),
  }),
  systemInstruction: z.strictObject({ parts: z.tuple([part]) }).exactOptional(),
  tools: z
    .array(
      z.strictObject({
        functionDeclarations: z.array(
          z.strictObject({
            name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/),
            description: z.string(),
            behavior: z.literal('NON_BLOCKING').exactOptional(),
            parameters: z
              .strictObject({
                type: z.literal('object'),
                properties: z
                  .record(z.string(), z.strictObject({ type: z.literal('string'), description: z.string().exactOptional() }))
                  .refine((properties) => Object.keys(properties).length > 0, 'should be non-empty for OBJECT type'),
                required: z.array(z.string()),
              })
              .exactOptional(),
          }),
        ),
      }),
    )
    .exactOptional(),
  realtimeInputConfig: z
    .strictObject({ automaticActivityDetection: z.strictObject({ silenceDurationMs: z.int().min(0) }) })
    .exactOptional(),
  inputAudioTranscription: z.strictObject({ languageCodes: z.array(z.string().min(2)).exactOptional() }).exactOptional(),
  outputAudioTranscription: z.strictObject({}).exactOptional(),
  sessionResumption: z.strictObject({ handle: z.string().exactOptional() }).exactOptional(),
  contextWindowCompression: z.strictObject({ slidingWindow: z.strictObject({}) }).exactOptional(),
  historyConfig: z.strictObject({ initialHistoryInClientContent: z.boolean() }).exactOptional(),
});
const functionResponse = z.strictObject({
  id: z.string(),
  name: z.string(),
  response: z.record(z.string(), z.unknown()),
  scheduling: z.enum(['SILENT', 'WHEN_IDLE']).exactOptional(),
});
const clientMessage = z.union([
  z.strictObject({ setup }),
  z.strictObject({
    realtimeInput: z.union([
      z.strictObject({ audio: z.strictObject({ data: z.base64(), mimeType: z.literal('audio/pcm;rate=16000') }) }),
      z.strictObject({ text: z.string().min(1) }),
    ]),
  }),
  z.strictObject({
    clientContent: z.strictObject({
      turns: z.array(z.strictObject({ role: z.enum(['user', 'model']), parts: z.tuple([part]) })),
      turnComplete: z.literal(true),
    }),
  }),
  z.strictObject({ toolResponse: z.strictObject({ functionResponses: z.array(functionResponse) }) }),
]);
type ClientMessage = z.output<typeof clientMessage>;
type ServerMessage = Partial<
  Pick<LiveServerMessage, 'setupComplete' | 'toolCall' | 'toolCallCancellation' | 'goAway' | 'sessionResumptionUpdate' | 'usageMetadata'>
> & {
  readonly serverContent?: LiveServerContent;
};

export interface FakeGeminiEnd {
  send(message: string | Uint8Array): void;
  close(code: number, reason: string): void;
}

/** One connection. */
export class FakeGeminiSession {
  /** Messages of the client but audio. */
  readonly messages = new Arrivals<ClientMessage>();
  readonly errors: string[] = [];
  readonly closed = new Arrivals<number>();
  /** 16-bit linear at 16 kHz. */
  readonly #audio: Buffer[] = [];
  setup: z.output<typeof setup> | null = null;
  readonly #calls = new Map<string, string>();

  constructor(
    private readonly end: FakeGeminiEnd,
    request: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> },
  ) {
    const key = request.headers['x-goog-api-key'] ?? new URL(request.url, 'wss://host').searchParams.get('key');
    if (typeof key !== 'string' || key === '') throw new Error('no key');
  }

  /** The caller's. */
  get audio(): Buffer {
    return Buffer.concat(this.#audio);
  }

  receive(text: string): void {
    const parsed = clientMessage.safeParse(JSON.parse(text));
    if (!parsed.success) {
      this.errors.push(`${text.slice(0, 200)}: ${parsed.error.message}`);
      return this.close(1_007, 'Request contains an invalid argument.');
    }
    const message = parsed.data satisfies OnTheWire<LiveClientMessage>;
    if ((this.setup === null) !== 'setup' in message) this.errors.push(`${text.slice(0, 60)} out of turn`);
    if ('realtimeInput' in message && 'audio' in message.realtimeInput) {
      this.#audio.push(Buffer.from(message.realtimeInput.audio.data, 'base64'));
      return;
    }
    if ('setup' in message) {
      this.setup = message.setup;
      this.#send({ setupComplete: {} });
    }
    if ('toolResponse' in message)
      for (const { id, name } of message.toolResponse.functionResponses) {
        if (this.#calls.get(id) !== name) this.errors.push('a response without a call');
        this.#calls.delete(id);
      }
    this.messages.add(message);
  }

  get texts(): string[] {
    return this.messages.all.flatMap((one) => ('realtimeInput' in one && 'text' in one.realtimeInput ? [one.realtimeInput.text] : []));
  }

  get responses(): z.output<typeof functionResponse>[][] {
    return this.messages.all.flatMap((one) => ('toolResponse' in one ? [one.toolResponse.functionResponses] : []));
  }

  get history(): string[] {
    return this.messages.all.flatMap((one) =>
      'clientContent' in one ? one.clientContent.turns.map(({ role, parts }) => `${role}: ${parts[0].text}`) : [],
    );
  }

  /** 16-bit linear at 24 kHz. */
  say(audio: Uint8Array, text = ''): void {
    const data = Buffer.from(audio).toString('base64');
    this.#content({ modelTurn: { role: 'model', parts: [{ inlineData: { data, mimeType: 'audio/pcm;rate=24000' } }] } });
    if (text !== '') this.text(text);
  }

  text(text: string): void {
    this.#content({ outputTranscription: { text } });
  }

  hear(text: string): void {
    this.#content({ inputTranscription: { text } });
  }

  generated(): void {
    this.#content({ generationComplete: true });
  }

  turnComplete(reason?: `${TurnCompleteReason}`): void {
    if (reason === undefined) return this.#content({ turnComplete: true });
    this.end.send(Buffer.from(JSON.stringify({ serverContent: { turnComplete: true, turnCompleteReason: reason } })));
  }

  interrupt(): void {
    this.#content({ interrupted: true });
  }

  call(...calls: readonly { readonly id: string; readonly name: string; readonly args: Record<string, unknown> }[]): void {
    for (const { id, name } of calls) this.#calls.set(id, name);
    this.#send({ toolCall: { functionCalls: [...calls] } });
  }

  cancelCall(...ids: string[]): void {
    for (const id of ids) this.#calls.delete(id);
    this.#send({ toolCallCancellation: { ids } });
  }

  resumable(newHandle: string | null): void {
    this.#send({ sessionResumptionUpdate: newHandle === null ? { resumable: false } : { newHandle, resumable: true } });
  }

  goAway(seconds: number): void {
    this.#send({ goAway: { timeLeft: `${String(seconds)}s` } });
  }

  surprise(): void {
    this.end.send(JSON.stringify({ voiceActivity: { voiceActivityType: 'X' }, somethingNew: { a: 1 } }));
    this.end.send('not JSON');
  }

  usage(totalTokenCount: number): void {
    this.#send({ usageMetadata: { totalTokenCount } });
  }

  close(code: number, reason = ''): void {
    this.end.close(code, reason);
  }

  #content(serverContent: LiveServerContent): void {
    this.#send({ serverContent });
  }

  /** As the service does: JSON in binary messages. */
  #send(message: ServerMessage): void {
    this.end.send(Buffer.from(JSON.stringify(message)));
  }
}
