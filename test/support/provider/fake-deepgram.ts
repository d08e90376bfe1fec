import type { agent as Sdk } from '@deepgram/sdk';
import { z } from 'zod';
import { Arrivals } from '../arrivals.js';

// Deepgram's Voice Agent as far as its reference and its library describe it, strictly. No live service was reached.

const encoding = z.union([
  z.strictObject({ encoding: z.enum(['mulaw', 'alaw']), sample_rate: z.literal(8_000) }),
  z.strictObject({ encoding: z.literal('linear16'), sample_rate: z.int() }),
]);
const functionCall = z.strictObject({
  id: z.string(),
  name: z.string(),
  client_side: z.boolean(),
  arguments: z.string(),
  response: z.string(),
  thought_signature: z.string().exactOptional(),
});
const settings = z.strictObject({
  type: z.literal('Settings'),
  mip_opt_out: z.boolean().exactOptional(),
  audio: z.strictObject({
    input: encoding,
    output: z.strictObject({
      encoding: z.enum(['mulaw', 'alaw', 'linear16']),
      sample_rate: z.int(),
      container: z.literal('none'),
    }),
  }),
  agent: z.strictObject({
    listen: z.strictObject({
      provider: z.union([
        z.strictObject({
          type: z.literal('deepgram'),
          version: z.literal('v1'),
          model: z.string().regex(/^(?!flux-)/),
          language: z.string(),
        }),
        z.strictObject({ type: z.literal('deepgram'), version: z.literal('v2'), model: z.literal('flux-general-en') }),
        z.strictObject({
          type: z.literal('deepgram'),
          version: z.literal('v2'),
          model: z.literal('flux-general-multi'),
          language_hints: z.array(z.string()).exactOptional(),
        }),
      ]),
    }),
    think: z.strictObject({
      provider: z.strictObject({ type: z.enum(['open_ai', 'anthropic', 'google']), model: z.string() }),
      prompt: z.string(),
      functions: z.array(
        z.strictObject({
          name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
          description: z.string(),
          parameters: z.record(z.string(), z.unknown()),
        }),
      ),
    }),
    speak: z.strictObject({
      provider: z.strictObject({ type: z.literal('deepgram'), version: z.literal('v2').exactOptional(), model: z.string() }),
    }),
    greeting: z.string().min(1).exactOptional(),
    context: z
      .strictObject({
        messages: z.array(
          z.union([
            z.strictObject({ type: z.literal('History'), role: z.enum(['user', 'assistant']), content: z.string() }),
            z.strictObject({ type: z.literal('History'), function_calls: z.array(functionCall).min(1) }),
          ]),
        ),
      })
      .exactOptional(),
  }),
});
const clientMessage = z.discriminatedUnion('type', [
  settings,
  z.strictObject({ type: z.literal('InjectUserMessage'), content: z.string().min(1) }),
  z.strictObject({
    type: z.literal('InjectAgentMessage'),
    message: z.string().min(1),
    behavior: z.enum(['default', 'queue', 'interrupt']).exactOptional(),
  }),
  z.strictObject({ type: z.literal('FunctionCallResponse'), id: z.string(), name: z.string(), content: z.string() }),
  z.strictObject({ type: z.literal('KeepAlive') }),
]);
type ClientMessage = z.output<typeof clientMessage>;
type ServerMessage =
  | Sdk.AgentV1Welcome
  | Sdk.AgentV1SettingsApplied
  | Sdk.AgentV1ConversationText
  | Sdk.AgentV1UserStartedSpeaking
  | Sdk.AgentV1AgentThinking
  | Sdk.AgentV1AgentAudioDone
  | Sdk.AgentV1FunctionCallRequest
  | Sdk.AgentV1FunctionCallCancelled
  | Sdk.AgentV1InjectionRefused
  | Sdk.AgentV1Error
  | Sdk.AgentV1Warning;

export interface FakeDeepgramEnd {
  send(message: string | Uint8Array): void;
  close(code: number, reason: string): void;
}

/** One session. */
export class FakeDeepgramSession {
  readonly messages = new Arrivals<ClientMessage>();
  readonly errors: string[] = [];
  readonly closed = new Arrivals<number>();
  readonly #audio: Buffer[] = [];
  config: z.output<typeof settings> | null = null;
  readonly #calls = new Map<string, string>();

  constructor(
    private readonly end: FakeDeepgramEnd,
    { headers }: { readonly headers: Readonly<Record<string, unknown>> },
    private readonly refusal: string | null = null,
  ) {
    if (!/^Token \S+$/.test(String(headers['authorization'] ?? headers['Authorization']))) throw new Error('no token');
    this.#send({ type: 'Welcome', request_id: 'r-1' });
  }

  /** The caller's. */
  get audio(): Buffer {
    return Buffer.concat(this.#audio);
  }

  receive(text: string): void {
    const parsed = clientMessage.safeParse(JSON.parse(text));
    if (!parsed.success) {
      this.errors.push(`${text.slice(0, 200)}: ${parsed.error.message}`);
      return this.fail('UNPARSABLE_CLIENT_MESSAGE');
    }
    const message: ClientMessage &
      (
        | Sdk.AgentV1Settings
        | Sdk.AgentV1InjectUserMessage
        | Sdk.AgentV1InjectAgentMessage
        | Sdk.AgentV1SendFunctionCallResponse
        | Sdk.AgentV1KeepAlive
      ) = parsed.data;
    if ((this.config === null) !== (message.type === 'Settings')) this.errors.push(`${message.type} out of turn`);
    if (message.type === 'Settings') {
      if (this.refusal !== null) return this.fail(this.refusal);
      this.config = message;
      this.#send({ type: 'SettingsApplied' });
    }
    if (message.type === 'FunctionCallResponse') {
      if (this.#calls.get(message.id) !== message.name) this.errors.push('a response without a request');
      this.#calls.delete(message.id);
    }
    this.messages.add(message);
  }

  receiveBytes(bytes: Buffer): void {
    if (this.config === null) this.errors.push('audio before the settings');
    this.#audio.push(bytes);
  }

  of<Type extends ClientMessage['type']>(type: Type): Extract<ClientMessage, { type: Type }>[] {
    return this.messages.all.filter((one): one is Extract<ClientMessage, { type: Type }> => one.type === type);
  }

  callerSpeaks(): void {
    this.#send({ type: 'UserStartedSpeaking' });
  }

  callerSaid(content: string): void {
    this.#send({ type: 'ConversationText', role: 'user', content });
    this.#send({ type: 'AgentThinking', content: '' });
  }

  text(content: string): void {
    this.#send({ type: 'ConversationText', role: 'assistant', content });
  }

  say(bytes: Uint8Array): void {
    this.end.send(bytes);
  }

  done(): void {
    this.#send({ type: 'AgentAudioDone' });
  }

  call(id: string, name: string, input: unknown): void {
    this.#calls.set(id, name);
    this.#send({ type: 'FunctionCallRequest', functions: [{ id, name, arguments: JSON.stringify(input), client_side: true }] });
  }

  cancelCall(id: string): void {
    const name = this.#calls.get(id) ?? '';
    this.#calls.delete(id);
    this.#send({ type: 'FunctionCallCancelled', functions: [{ id, name }] });
  }

  refuseInjection(): void {
    this.#send({ type: 'InjectionRefused', message: 'words of the call' });
  }

  surprise(): void {
    this.end.send(JSON.stringify({ type: 'LatencyReport', stages: [] }));
    this.end.send('not JSON');
    this.#send({ type: 'Warning', code: 'PROBLEM', description: 'words of the call' });
  }

  fail(code: string): void {
    this.#send({ type: 'Error', code, description: 'words of the call' });
    this.end.close(1_000, '');
  }

  close(code: number, reason = ''): void {
    this.end.close(code, reason);
  }

  #send(message: ServerMessage): void {
    this.end.send(JSON.stringify(message));
  }
}
