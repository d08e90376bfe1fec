import type * as Sdk from '@elevenlabs/elevenlabs-js/api/resources/conversationalAi/conversation/events.js';
import type { ConversationConfigClientOverrideInput } from '@elevenlabs/elevenlabs-js/serialization/types/ConversationConfigClientOverrideInput.js';
import { z } from 'zod';
import { Arrivals } from '../arrivals.js';
import type { OnTheWire } from './on-the-wire.js';

// ElevenLabs Agents as far as its reference and its library describe it, strictly. No live service was reached.

const initiation = z.strictObject({
  type: z.literal('conversation_initiation_client_data'),
  conversation_config_override: z
    .strictObject({
      agent: z
        .strictObject({
          prompt: z.strictObject({ prompt: z.string().min(1) }).exactOptional(),
          first_message: z.string().exactOptional(),
          language: z.string().length(2).exactOptional(),
        })
        .exactOptional(),
      tts: z.strictObject({ voice_id: z.string().min(1) }).exactOptional(),
    })
    .exactOptional(),
  custom_llm_extra_body: z.record(z.string(), z.unknown()).exactOptional(),
  dynamic_variables: z.record(z.string(), z.unknown()).exactOptional(),
});
const clientMessage = z.union([
  initiation,
  z.strictObject({ user_audio_chunk: z.base64() }),
  z.strictObject({ type: z.literal('pong'), event_id: z.union([z.int(), z.string()]) }),
  z.strictObject({ type: z.literal('client_tool_result'), tool_call_id: z.string(), result: z.string(), is_error: z.boolean() }),
  z.strictObject({ type: z.literal('user_message'), text: z.string().min(1) }),
  z.strictObject({ type: z.literal('contextual_update'), text: z.string().min(1) }),
]);
/** The library's own types, which say nothing of the override, and have the ids of pings as texts alone. */
type SdkMessage = OnTheWire<
  | Exclude<Sdk.ClientToOrchestratorEventUnion, Sdk.ConversationInitiationClientDataEvent | Sdk.PongEvent>
  | (Omit<Sdk.ConversationInitiationClientDataEvent, 'conversation_config_override'> & {
      conversation_config_override?: ConversationConfigClientOverrideInput.Raw;
    })
  | (Omit<Sdk.PongEvent, 'event_id'> & { event_id: number | string })
  | Sdk.UserAudioChunkEvent
>;
type Typed = Extract<z.output<typeof clientMessage>, { type: string }>;

export interface FakeElevenLabsOptions {
  readonly input?: string;
  readonly output?: string;
  /** Closes in place of accepting. */
  readonly refusal?: { readonly code: number; readonly reason: string };
}

/** One conversation. */
export class FakeElevenLabsSession {
  readonly messages = new Arrivals<Typed>();
  readonly errors: string[] = [];
  readonly closed = new Arrivals<number>();
  readonly #audio: Buffer[] = [];
  config: z.output<typeof initiation> | null = null;
  readonly #calls = new Set<string>();
  #eventId = 0;

  constructor(
    private readonly end: { send(text: string): void; close(code: number, reason: string): void },
    { url, headers }: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> },
    private readonly options: FakeElevenLabsOptions = {},
    needsKey = true,
  ) {
    if (new URL(url, 'wss://host').searchParams.get('agent_id') === null) throw new Error('no agent');
    if (needsKey && !/^(?!undefined$)\S+$/.test(String(headers['xi-api-key']))) throw new Error('no key');
  }

  /** The caller's. */
  get audio(): Buffer {
    return Buffer.concat(this.#audio);
  }

  receive(text: string): void {
    const parsed = clientMessage.safeParse(JSON.parse(text));
    if (!parsed.success) return void this.errors.push(`${text.slice(0, 200)}: ${parsed.error.message}`);
    const message = parsed.data satisfies SdkMessage;
    const isFirst = this.config === null;
    if ('user_audio_chunk' in message) {
      if (isFirst) this.errors.push('audio before the initiation');
      this.#audio.push(Buffer.from(message.user_audio_chunk, 'base64'));
      return;
    }
    if (isFirst !== (message.type === 'conversation_initiation_client_data')) this.errors.push(`${message.type} out of turn`);
    if (message.type === 'conversation_initiation_client_data') this.#accept(message);
    if (message.type === 'client_tool_result' && !this.#calls.delete(message.tool_call_id)) this.errors.push('a result without a call');
    this.messages.add(message);
  }

  of<Type extends Typed['type']>(type: Type): Extract<Typed, { type: Type }>[] {
    return this.messages.all.filter((one): one is Extract<Typed, { type: Type }> => one.type === type);
  }

  /** @returns the id of its event */
  say(bytes: Uint8Array): number {
    this.#eventId += 1;
    this.late(bytes, this.#eventId);
    return this.#eventId;
  }

  late(bytes: Uint8Array, eventId = this.#eventId): void {
    this.#send({ type: 'audio', audio_event: { audio_base_64: Buffer.from(bytes).toString('base64'), event_id: eventId } });
  }

  text(text: string): void {
    this.#send({ type: 'agent_response', agent_response_event: { agent_response: text } });
  }

  callerSaid(text: string): void {
    this.#send({ type: 'user_transcript', user_transcription_event: { user_transcript: text } });
  }

  interrupt(eventId = this.#eventId): void {
    this.#send({ type: 'interruption', interruption_event: { event_id: eventId } });
  }

  correct(original: string, corrected: string): void {
    const event = { original_agent_response: original, corrected_agent_response: corrected };
    this.#send({ type: 'agent_response_correction', agent_response_correction_event: event });
  }

  ping(eventId: number): void {
    this.#send({ type: 'ping', ping_event: { event_id: eventId, ping_ms: 20 } });
  }

  call(id: string, name: string, parameters: object): void {
    this.#calls.add(id);
    this.#send({ type: 'client_tool_call', client_tool_call: { tool_name: name, tool_call_id: id, parameters } });
  }

  fail(): void {
    this.#send({ type: 'client_error', client_error: { code: 1_000, reason: 'words of the call' } });
  }

  surprise(): void {
    this.#send({ type: 'vad_score', vad_score_event: { vad_score: 0.5 } });
    this.#send({ type: 'internal_tentative_agent_response', tentative_agent_response_internal_event: {} });
    this.end.send('not JSON');
  }

  close(code: number, reason = ''): void {
    this.end.close(code, reason);
  }

  #accept(message: z.output<typeof initiation>): void {
    const { refusal, input = 'ulaw_8000', output = 'ulaw_8000' } = this.options;
    if (refusal !== undefined) return this.end.close(refusal.code, refusal.reason);
    this.config = message;
    const event = { conversation_id: 'conv_1', agent_output_audio_format: output, user_input_audio_format: input };
    this.#send({ type: 'conversation_initiation_metadata', conversation_initiation_metadata_event: event });
  }

  #send(message: object): void {
    this.end.send(JSON.stringify(message));
  }
}
