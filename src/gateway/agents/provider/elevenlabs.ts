import type { ProviderSettings, Said } from '../../model/provider-settings.js';
import type { WireFormat } from '../stream/wire-format.js';
import type { ProviderAction, ProviderAdapter, WireMessage } from './adapter.js';
import { instructionsOf, isoLanguageOf } from './instructions.js';
import { base64Of, closedText, fieldsOf, fieldsOfMessage, numberOf, send, shownReason, textOf, type Fields } from './json-message.js';

// ElevenLabs Agents (its reference: "Agents WebSocket"). The agent, its tools and its audio formats are set up there; what is sent here
// overrides what the agent's security settings allow. It tells no end of an utterance: the next one, or the caller's words, end it.

/** The agent's own setting, which is not told: a session that it ends is begun anew. */
const SESSION_MS = 24 * 60 * 60_000;
const FORMATS: Readonly<Record<string, WireFormat>> = {
  ulaw_8000: 'pcmu',
  pcm_8000: 'pcm16-8000',
  pcm_16000: 'pcm16-16000',
  pcm_24000: 'pcm16-24000',
};

export class ElevenLabsAgent implements ProviderAdapter {
  readonly target: ProviderAdapter['target'];
  readonly sessionMs = SESSION_MS;
  /** It sends pings of its own, at intervals that it does not state. */
  readonly silentAfterMs = 60_000;
  readonly resumption = null;
  #formats: ProviderAdapter['formats'] = { input: 'pcmu', output: 'pcmu' };
  readonly #calls = new Set<string>();
  #history: readonly Said[] = [];
  #isAccepted = false;
  #utterances = 0;
  #isOpen = false;
  #hasText = false;
  /** Audio up to this event was interrupted. */
  #interruptedId = -Infinity;

  constructor(private readonly settings: ProviderSettings) {
    const url = new URL(settings.url);
    url.searchParams.set('agent_id', settings.model);
    this.target = { url: url.href, headers: { 'xi-api-key': settings.apiKey ?? '' } };
  }

  get formats(): ProviderAdapter['formats'] {
    return this.#formats;
  }

  get isResponding(): boolean {
    return this.#calls.size > 0;
  }

  open(conversation: readonly Said[]): readonly ProviderAction[] {
    this.#history = conversation;
    const { settings } = this;
    const { prompt, firstSentence, waitsForGreeting, voice, language } = settings;
    // Without a text of ours the agent begins with its own.
    const firstMessage = conversation.length > 0 || waitsForGreeting ? '' : firstSentence;
    const agent = {
      ...(prompt === '' ? {} : { prompt: { prompt: instructionsOf(settings) } }),
      ...(firstMessage === null ? {} : { first_message: firstMessage }),
      language: isoLanguageOf(language),
    };
    const override = { agent, ...(voice === null ? {} : { tts: { voice_id: voice } }) };
    const { user_id: userId, ...variables } = valuesOf(settings.metadata);
    return [
      send({
        type: 'conversation_initiation_client_data',
        conversation_config_override: override,
        ...(Object.keys(variables).length === 0 ? {} : { dynamic_variables: variables }),
        ...(userId === undefined ? {} : { user_id: String(userId) }),
      }),
    ];
  }

  audio(bytes: Uint8Array): WireMessage {
    return `{"user_audio_chunk":"${base64Of(bytes)}"}`;
  }

  begin(): readonly ProviderAction[] {
    return [];
  }

  /** The provider keeps count by itself, and tells what was heard. */
  interrupted(): readonly ProviderAction[] {
    return [];
  }

  toolResult(callId: string, output: unknown): readonly ProviderAction[] {
    if (!this.#calls.delete(callId)) return [];
    const isError = Object.hasOwn(fieldsOf(output), 'error');
    return [send({ type: 'client_tool_result', tool_call_id: callId, result: JSON.stringify(output), is_error: isError })];
  }

  inform(text: string): readonly ProviderAction[] {
    return [send({ type: 'user_message', text })];
  }

  /** An agent that ends the call closes in the usual way. */
  closed(code: number, reason: string): ReturnType<ProviderAdapter['closed']> {
    const isFinal = code === 1_002 || code === 1_008 || code >= 3_000;
    return { message: closedText(code, reason), isFinal, isHangUp: code === 1_000 };
  }

  receive(message: WireMessage): readonly ProviderAction[] {
    const event = fieldsOfMessage(message);
    if (event === null) return [{ do: 'warn', message: 'a message that is not JSON' }];
    switch (event['type']) {
      case 'conversation_initiation_metadata':
        return this.#onMetadata(fieldsOf(event['conversation_initiation_metadata_event']));
      case 'audio':
        return this.#onAudio(fieldsOf(event['audio_event']));
      case 'interruption':
        return this.#onInterruption(fieldsOf(event['interruption_event']));
      case 'agent_response':
        return this.#onResponse(textOf(fieldsOf(event['agent_response_event'])['agent_response']).trim());
      case 'agent_response_correction':
        return this.#onCorrection(textOf(fieldsOf(event['agent_response_correction_event'])['corrected_agent_response']).trim());
      case 'user_transcript':
        return this.#onHeard(textOf(fieldsOf(event['user_transcription_event'])['user_transcript']).trim());
      case 'ping':
        return [send({ type: 'pong', event_id: fieldsOf(event['ping_event'])['event_id'] })];
      case 'client_tool_call':
        return this.#onCall(fieldsOf(event['client_tool_call']));
      case 'client_error':
        return this.#onError();
      default:
        return [];
    }
  }

  get #utterance(): string {
    return `utterance-${String(this.#utterances)}`;
  }

  #onMetadata(metadata: Fields): readonly ProviderAction[] {
    if (this.#isAccepted) return [];
    const [input, output] = [textOf(metadata['user_input_audio_format']), textOf(metadata['agent_output_audio_format'])];
    const formats = { input: FORMATS[input], output: FORMATS[output] };
    if (formats.input === undefined || formats.output === undefined) {
      const message = shownReason(`the agent's audio formats are not supported (${input}, ${output}): set ulaw_8000`);
      return [{ do: 'fail', message, isFinal: true }];
    }
    this.#formats = { input: formats.input, output: formats.output };
    this.#isAccepted = true;
    const said = this.#history.map(({ speaker, text }) => `${speaker === 'agent' ? 'You' : 'Caller'}: ${text}`);
    const context = { type: 'contextual_update', text: `The connection was interrupted. The conversation so far:\n${said.join('\n')}` };
    return [...(said.length === 0 ? [] : [send(context)]), { do: 'accepted' }];
  }

  #onAudio(event: Fields): readonly ProviderAction[] {
    const data = textOf(event['audio_base_64']);
    if (data === '' || eventIdOf(event) <= this.#interruptedId) return [];
    this.#isOpen = true;
    return [{ do: 'play', utterance: this.#utterance, bytes: Buffer.from(data, 'base64') }];
  }

  #onInterruption(event: Fields): readonly ProviderAction[] {
    const id = eventIdOf(event);
    if (id > this.#interruptedId) this.#interruptedId = id;
    this.#next();
    return [{ do: 'interrupt' }];
  }

  /** The whole text comes with the first audio, or before it. */
  #onResponse(text: string): readonly ProviderAction[] {
    const ended = this.#hasText ? this.#end() : [];
    this.#hasText = true;
    return [...ended, { do: 'said', utterance: this.#utterance, text, isLast: true }];
  }

  #onCorrection(text: string): readonly ProviderAction[] {
    return [{ do: 'corrected', text }];
  }

  #onHeard(text: string): readonly ProviderAction[] {
    const ended = this.#end();
    return text === '' ? ended : [...ended, { do: 'heard', text, audioMs: null }];
  }

  #end(): readonly ProviderAction[] {
    if (!this.#isOpen) return [];
    const utterance = this.#utterance;
    this.#next();
    return [{ do: 'end-utterance', utterance }];
  }

  #next(): void {
    this.#utterances += 1;
    this.#isOpen = false;
    this.#hasText = false;
  }

  #onCall(call: Fields): readonly ProviderAction[] {
    const callId = textOf(call['tool_call_id']);
    this.#calls.add(callId);
    const name = textOf(call['tool_name']);
    const speech = this.settings.tools.find((tool) => tool.name === name)?.speech ?? '';
    return [{ do: 'run-tool', callId, name, input: call['parameters'] ?? {}, speech }];
  }

  /** Its text may repeat what was said. */
  #onError(): readonly ProviderAction[] {
    const message = 'the provider sent an error';
    return this.#isAccepted ? [{ do: 'warn', message, isFailure: true }] : [{ do: 'fail', message, isFinal: true }];
  }
}

/** A number, or a text of one; `NaN`: neither. */
function eventIdOf(event: Fields): number {
  return numberOf(event['event_id']) ?? Number(textOf(event['event_id']) || Number.NaN);
}

/** What stands for `{{name}}` in the agent's texts: it takes texts, numbers and truth values, and no lists or objects. */
function valuesOf(metadata: ProviderSettings['metadata']): Record<string, string | number | boolean> {
  const isValue = (one: unknown): one is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof one);
  return Object.fromEntries(
    Object.entries(metadata ?? {}).filter((entry): entry is [string, string | number | boolean] => isValue(entry[1])),
  );
}
