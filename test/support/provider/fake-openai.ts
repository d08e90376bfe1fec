import type {
  RealtimeClientEvent,
  RealtimeResponseCreateParams,
  RealtimeServerEvent,
  RealtimeSessionCreateRequest,
} from 'openai/resources/realtime/realtime';
import { z } from 'zod';
import { Arrivals } from '../arrivals.js';

// OpenAI's Realtime API as far as its reference and its library describe it, strictly: what it does not know is an error. No live
// service was reached: where reference and service differ, this is the reference.

const format = z.union([
  z.strictObject({ type: z.literal('audio/pcm'), rate: z.literal(24_000) }),
  z.strictObject({ type: z.literal('audio/pcmu') }),
  z.strictObject({ type: z.literal('audio/pcma') }),
]);
const tool = z.strictObject({
  type: z.literal('function'),
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  description: z.string().exactOptional(),
  parameters: z.strictObject({
    type: z.literal('object'),
    properties: z.record(z.string(), z.strictObject({ type: z.literal('string'), description: z.string().exactOptional() })),
    required: z.array(z.string()),
  }),
});
const voice = z.union([z.string().regex(/^(?!voice_)/), z.strictObject({ id: z.string().regex(/^voice_/) })]);
const session = z.strictObject({
  type: z.literal('realtime'),
  model: z.string().exactOptional(),
  instructions: z.string().exactOptional(),
  output_modalities: z.tuple([z.enum(['audio', 'text'])]).exactOptional(),
  audio: z
    .strictObject({
      input: z
        .strictObject({
          format: format.exactOptional(),
          transcription: z.strictObject({ model: z.string(), language: z.string().length(2).exactOptional() }).exactOptional(),
          noise_reduction: z.strictObject({ type: z.enum(['near_field', 'far_field']) }).exactOptional(),
          turn_detection: z
            .discriminatedUnion('type', [
              z.strictObject({ type: z.literal('server_vad'), silence_duration_ms: z.int().min(1).exactOptional() }),
              z.strictObject({ type: z.literal('semantic_vad'), eagerness: z.enum(['low', 'medium', 'high', 'auto']).exactOptional() }),
            ])
            .exactOptional(),
        })
        .exactOptional(),
      output: z.strictObject({ format: format.exactOptional(), voice: voice.exactOptional() }).exactOptional(),
    })
    .exactOptional(),
  reasoning: z.strictObject({ effort: z.enum(['minimal', 'low', 'medium', 'high', 'xhigh']).exactOptional() }).exactOptional(),
  tools: z.array(tool).exactOptional(),
  tool_choice: z.enum(['auto', 'none', 'required']).exactOptional(),
  tracing: z.null().exactOptional(),
});
const message = z.discriminatedUnion('role', [
  z.strictObject({
    type: z.literal('message'),
    role: z.enum(['system', 'user']),
    content: z.tuple([z.strictObject({ type: z.literal('input_text'), text: z.string().min(1) })]),
  }),
  z.strictObject({
    type: z.literal('message'),
    role: z.literal('assistant'),
    content: z.tuple([z.strictObject({ type: z.literal('output_text'), text: z.string().min(1) })]),
  }),
]);
const output = z.strictObject({ type: z.literal('function_call_output'), call_id: z.string(), output: z.string() });
const clientEvent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('session.update'), event_id: z.string().exactOptional(), session }),
  z.strictObject({ type: z.literal('input_audio_buffer.append'), audio: z.base64() }),
  z.strictObject({ type: z.literal('conversation.item.create'), item: z.union([output, message]) }),
  z.strictObject({
    type: z.literal('conversation.item.truncate'),
    item_id: z.string(),
    content_index: z.literal(0),
    audio_end_ms: z.int().min(0),
  }),
  z.strictObject({
    type: z.literal('response.create'),
    response: z
      .strictObject({
        conversation: z.enum(['auto', 'none']).exactOptional(),
        metadata: z.record(z.string().max(64), z.string().max(512)).exactOptional(),
        instructions: z.string().exactOptional(),
        input: z.array(z.never()).exactOptional(),
        tools: z.array(z.never()).exactOptional(),
        tool_choice: z.enum(['auto', 'none']).exactOptional(),
      })
      .exactOptional(),
  }),
]);
type ClientEvent = z.output<typeof clientEvent>;
type Unsent<Event> = Event extends { event_id: string } ? Omit<Event, 'event_id'> : never;

const BYTES_PER_MS = { 'audio/pcm': 48, 'audio/pcmu': 8, 'audio/pcma': 8 } as const;
const NO_USAGE = { status: 'completed' as const };

export interface FakeEnd {
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** One session. */
export class FakeOpenAiSession {
  /** Messages of the client but audio; those that were refused too. */
  readonly messages = new Arrivals<ClientEvent>();
  readonly errors: string[] = [];
  readonly closed = new Arrivals<number>();
  readonly #audio: Buffer[] = [];
  /** The code of the error that answers the next `response.create`. */
  refusesNext: string | null = null;
  config: RealtimeSessionCreateRequest | null = null;
  #serial = 0;
  /** The response in the conversation, and another one beside it. */
  readonly #active = new Map<string, { readonly isAside: boolean; readonly items: Set<string> }>();
  /** Milliseconds of audio that were sent of each item. */
  readonly #sentMs = new Map<string, number>();
  readonly #calls = new Set<string>();
  readonly #waiting: { readonly id: string; readonly params: RealtimeResponseCreateParams }[] = [];
  /** What is asked for as soon as it is asked for; without it `nextResponse` waits. */
  readonly responses = new Arrivals<{ readonly id: string; readonly params: RealtimeResponseCreateParams }>();
  acceptsSession = true;

  constructor(
    private readonly end: FakeEnd,
    upgrade: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> },
  ) {
    const { headers, url } = upgrade;
    if (headers['openai-beta'] !== undefined) {
      this.error('beta_api_shape_disabled', 'invalid_request_error');
      this.end.close(4_000, 'beta');
    }
    if (!/^Bearer \S+$/.test(String(headers['authorization'] ?? headers['Authorization']))) throw new Error('no bearer token');
    if (new URL(url, 'wss://host').searchParams.get('model') === null) throw new Error('no model');
    this.#send({ type: 'session.created', session: { type: 'realtime' } });
  }

  /** The caller's. */
  get audio(): Buffer {
    return Buffer.concat(this.#audio);
  }

  receive(text: string): void {
    const parsed = clientEvent.safeParse(JSON.parse(text));
    if (!parsed.success) {
      this.errors.push(`${text.slice(0, 200)}: ${parsed.error.message}`);
      return this.error('unknown_parameter', 'invalid_request_error');
    }
    // What the fake takes is what the library may send.
    const event: ClientEvent & RealtimeClientEvent = parsed.data;
    if (this.config === null && event.type !== 'session.update') this.errors.push(`${event.type} before the session was configured`);
    this.#take(event);
    if (event.type !== 'input_audio_buffer.append') this.messages.add(event);
  }

  /** The client's messages of one type. */
  of<Type extends ClientEvent['type']>(type: Type): Extract<ClientEvent, { type: Type }>[] {
    return this.messages.all.filter((one): one is Extract<ClientEvent, { type: Type }> => one.type === type);
  }

  message<Type extends ClientEvent['type']>(type: Type, index = 0): Promise<Extract<ClientEvent, { type: Type }>> {
    return this.messages.until(() => this.of(type)[index]);
  }

  error(code: string, type = 'invalid_request_error'): void {
    this.#send({ type: 'error', error: { type, code, message: 'A message with secrets', param: null } });
  }

  /** Whatever a later version of the API may send. */
  surprise(): void {
    this.end.send(JSON.stringify({ type: 'conversation.surprise', event_id: 'x', surprise: { text: 1 } }));
    this.end.send(JSON.stringify({ type: 'rate_limits.updated', event_id: 'x', rate_limits: [] }));
  }

  close(code: number, reason = ''): void {
    this.end.close(code, reason);
  }

  /** The caller speaks, as the provider's detector finds; the response under way is cancelled. */
  callerSpeaks(audioStartMs = 0): string {
    const item_id = this.#id('item');
    this.#send({ type: 'input_audio_buffer.speech_started', audio_start_ms: audioStartMs, item_id });
    return item_id;
  }

  /** Cancels what the caller interrupted. */
  cancel(): void {
    for (const id of [...this.#active.keys()]) this.done(id, 'cancelled');
  }

  callerStops(item: string, transcript: string | null): void {
    this.#send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 0, item_id: item });
    this.#send({ type: 'input_audio_buffer.committed', item_id: item, previous_item_id: null });
    if (transcript !== null) this.transcribed(item, transcript);
  }

  transcribed(item: string, transcript: string): void {
    this.#send({
      type: 'conversation.item.input_audio_transcription.completed',
      item_id: item,
      content_index: 0,
      transcript,
      usage: { type: 'duration', seconds: 1 },
    });
  }

  notTranscribed(item: string): void {
    this.#send({
      type: 'conversation.item.input_audio_transcription.failed',
      item_id: item,
      content_index: 0,
      error: { code: 'audio_unintelligible', message: 'words of the caller' },
    });
  }

  /** A response begins by itself: the caller has finished. */
  begin(): string {
    const id = this.#id('resp');
    this.#start(id, false, undefined);
    return id;
  }

  /** @returns the item's id */
  item(response: string): string {
    const id = this.#id('item');
    this.#active.get(response)?.items.add(id);
    this.#sentMs.set(id, 0);
    this.#send({
      type: 'response.output_item.added',
      response_id: response,
      output_index: 0,
      item: { id, type: 'message', role: 'assistant', content: [] },
    });
    return id;
  }

  say(response: string, item: string, audio: Uint8Array, text: string): void {
    const part = { response_id: response, item_id: item, output_index: 0, content_index: 0 };
    if (text !== '') this.#send({ type: 'response.output_audio_transcript.delta', ...part, delta: text });
    if (audio.length === 0) return;
    const type = this.config?.audio?.output?.format?.type ?? 'audio/pcm';
    this.#sentMs.set(item, (this.#sentMs.get(item) ?? 0) + audio.length / BYTES_PER_MS[type]);
    this.#send({ type: 'response.output_audio.delta', ...part, delta: Buffer.from(audio).toString('base64') });
  }

  finish(response: string, item: string, transcript: string): void {
    const part = { response_id: response, item_id: item, output_index: 0, content_index: 0 };
    this.#send({ type: 'response.output_audio.done', ...part });
    this.#send({ type: 'response.output_audio_transcript.done', ...part, transcript });
  }

  /** A whole utterance at once. */
  utter(response: string, audio: Uint8Array, text: string): string {
    const item = this.item(response);
    this.say(response, item, audio, text);
    this.finish(response, item, text);
    this.done(response);
    return item;
  }

  /** @returns its call_id */
  call(response: string, name: string, input: unknown): string {
    const [callId, item] = [this.#id('call'), this.#id('item')];
    this.#calls.add(callId);
    const arguments_ = typeof input === 'string' ? input : JSON.stringify(input);
    const added = { id: item, type: 'function_call' as const, name, call_id: callId, arguments: '' };
    this.#send({ type: 'response.output_item.added', response_id: response, output_index: 0, item: added });
    const part = { response_id: response, item_id: item, output_index: 0, call_id: callId };
    this.#send({ type: 'response.function_call_arguments.done', ...part, name, arguments: arguments_ });
    return callId;
  }

  done(response: string, status: 'completed' | 'cancelled' | 'failed' = 'completed', code = 'rate_limit_exceeded', tokens = 0): void {
    this.#active.delete(response);
    const details =
      status === 'failed' ? { type: 'failed' as const, error: { type: 'x', code } } : status === 'completed' ? NO_USAGE : { type: status };
    const status_details = status === 'completed' ? {} : details;
    this.#send({ type: 'response.done', response: { id: response, status, status_details, usage: { total_tokens: tokens } } });
    const next = this.#waiting.shift();
    if (next !== undefined) this.#start(next.id, next.params.conversation === 'none', next.params);
  }

  /** The provider stops within its answer, or before it. */
  breakOff(response: string, reason: 'content_filter' | 'max_output_tokens'): void {
    this.#active.delete(response);
    const done = { id: response, status: 'incomplete' as const, status_details: { type: 'incomplete' as const, reason }, usage: {} };
    this.#send({ type: 'response.done', response: done });
  }

  #take(event: ClientEvent): void {
    switch (event.type) {
      case 'session.update':
        if (!this.acceptsSession) return;
        this.config = event.session;
        return this.#send({ type: 'session.updated', session: { ...event.session, type: 'realtime' } as never });
      case 'input_audio_buffer.append':
        this.#audio.push(Buffer.from(event.audio, 'base64'));
        return;
      case 'conversation.item.create':
        if (event.item.type === 'function_call_output' && !this.#calls.delete(event.item.call_id)) {
          this.errors.push('an output without a call');
          this.error('invalid_tool_call_id');
        }
        return;
      case 'conversation.item.truncate': {
        const sentMs = this.#sentMs.get(event.item_id);
        if (sentMs === undefined || event.audio_end_ms > sentMs) {
          this.errors.push(`truncated at ${String(event.audio_end_ms)} of ${String(sentMs)} ms`);
          return this.error('invalid_value');
        }
        return this.#send({ ...event, type: 'conversation.item.truncated' });
      }
      case 'response.create': {
        const params = event.response ?? {};
        const refusal = this.refusesNext;
        this.refusesNext = null;
        if (refusal !== null) return this.error(refusal, 'server_error');
        if (params.conversation !== 'none' && [...this.#active.values()].some(({ isAside }) => !isAside)) {
          this.errors.push('a second response');
          return this.error('conversation_already_has_active_response');
        }
        return this.#start(this.#id('resp'), params.conversation === 'none', params);
      }
    }
  }

  #start(id: string, isAside: boolean, params: RealtimeResponseCreateParams | undefined): void {
    this.#active.set(id, { isAside, items: new Set() });
    const response = { id, status: 'in_progress', metadata: params?.metadata ?? null };
    this.#send({ type: 'response.created', response: response as never });
    if (params !== undefined) this.responses.add({ id, params });
  }

  #id(kind: string): string {
    this.#serial += 1;
    return `${kind}_${String(this.#serial)}`;
  }

  #send(event: Unsent<RealtimeServerEvent>): void {
    this.end.send(JSON.stringify({ event_id: this.#id('event'), ...event }));
  }
}
