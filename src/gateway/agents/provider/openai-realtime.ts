import type { ProviderSettings, Said } from '../../model/provider-settings.js';
import type { Played, ProviderAction, ProviderAdapter, WireMessage } from './adapter.js';
import { greetingOf, instructionsOf, isoLanguageOf } from './instructions.js';
import {
  base64Of,
  causeOf,
  closedText,
  fieldsOf,
  fieldsOfMessage,
  numberOf,
  parsedText,
  send,
  shownReason,
  textOf,
  tokensOf,
  type Fields,
} from './json-message.js';
import { ToolNames } from './tools.js';

// OpenAI's Realtime API in its generally available form (its reference: "Realtime", client and server events).

/** Errors after which no session with the same key and settings works. */
const FINAL_ERRORS: ReadonlySet<string> = new Set([
  'invalid_api_key',
  'insufficient_quota',
  'model_not_found',
  'beta_api_shape_disabled',
  'unsupported_country_region_territory',
]);
const SESSION_MS = 60 * 60_000;
/** The id of a voice of the customer's own; the provider's voices have names. */
const CUSTOM_VOICE = /^voice_/u;
/** Interrupted responses whose last audio may still be on its way. */
const MAX_DEAD = 50;
/** Marks responses in which the model says what is said while a tool runs. */
const PHRASE = 'phrase';

export class OpenAiRealtime implements ProviderAdapter {
  readonly target: ProviderAdapter['target'];
  readonly formats: ProviderAdapter['formats'];
  readonly sessionMs = SESSION_MS;
  readonly silentAfterMs = null;
  readonly resumption = null;
  readonly #tools: ToolNames;
  #conversation: readonly Said[] = [];
  #isAccepted = false;
  /** Responses under way; the items of each. */
  readonly #responses = new Map<string, Set<string>>();
  readonly #dead = new Set<string>();
  /** Items that are not part of the conversation. */
  readonly #asides = new Set<string>();
  /** Transcripts so far, by item. */
  readonly #texts = new Map<string, string>();
  /** Where the caller's items begin in the audio, in milliseconds. */
  readonly #starts = new Map<string, number>();
  readonly #names = new Map<string, string>();
  /** By call of a tool, what is to be said while it runs; '': nothing, or it was said. */
  readonly #calls = new Map<string, string>();
  #isResponseDue = false;
  #isRequested = false;
  #isCallerSpeaking = false;

  constructor(private readonly settings: ProviderSettings) {
    const url = new URL(settings.url);
    url.searchParams.set('model', settings.model);
    this.target = { url: url.href, headers: { Authorization: `Bearer ${settings.apiKey ?? ''}` } };
    const format = settings.audio === 'pcm-24000' ? 'pcm16-24000' : settings.codec === 'PCMA' ? 'pcma' : 'pcmu';
    this.formats = { input: format, output: format };
    this.#tools = new ToolNames(settings.tools, settings.mayTransfer);
  }

  get isResponding(): boolean {
    return this.#responses.size > 0 || this.#isRequested || this.#calls.size > 0;
  }

  open(conversation: readonly Said[]): readonly ProviderAction[] {
    this.#conversation = conversation;
    const { settings } = this;
    const format = this.formats.input === 'pcm16-24000' ? { type: 'audio/pcm', rate: 24_000 } : { type: `audio/${this.formats.input}` };
    const { voice } = settings;
    const { noise_reduction: noise = null, reasoning_effort: effort = null } = settings.tuning ?? {};
    const turnDetection = turnDetectionOf(settings);
    const session = {
      type: 'realtime',
      model: settings.model,
      instructions: instructionsOf(settings),
      output_modalities: ['audio'],
      audio: {
        input: {
          format,
          transcription: { model: settings.transcriptionModel, language: isoLanguageOf(settings.language) },
          ...(noise === null ? {} : { noise_reduction: { type: noise } }),
          ...(turnDetection === null ? {} : { turn_detection: turnDetection }),
        },
        output: { format, ...(voice === null ? {} : { voice: CUSTOM_VOICE.test(voice) ? { id: voice } : voice }) },
      },
      ...(effort === null ? {} : { reasoning: { effort } }),
      tools: this.#tools.functions.map((one) => ({ type: 'function', ...one })),
      tool_choice: 'auto',
      // Nothing of the conversation is kept in the traces of the provider's dashboard.
      tracing: null,
    };
    return [send({ type: 'session.update', session })];
  }

  audio(bytes: Uint8Array): WireMessage {
    return `{"type":"input_audio_buffer.append","audio":"${base64Of(bytes)}"}`;
  }

  begin(): readonly ProviderAction[] {
    return this.inform(greetingOf(this.settings));
  }

  spoke(text: string): readonly ProviderAction[] {
    return [sendItem('assistant', 'output_text', text)];
  }

  interrupted(played: readonly Played[]): readonly ProviderAction[] {
    return played
      .filter(({ utterance }) => !this.#asides.has(utterance))
      .map(({ utterance, playedMs }) =>
        send({ type: 'conversation.item.truncate', item_id: utterance, content_index: 0, audio_end_ms: playedMs }),
      );
  }

  toolResult(callId: string, output: unknown, continues: boolean): readonly ProviderAction[] {
    if (!this.#calls.delete(callId)) return [];
    this.#isResponseDue ||= continues;
    const item = { type: 'function_call_output', call_id: callId, output: JSON.stringify(output) };
    return [send({ type: 'conversation.item.create', item }), ...this.#respond()];
  }

  inform(text: string): readonly ProviderAction[] {
    this.#isResponseDue = true;
    return [sendItem('system', 'input_text', text), ...this.#respond()];
  }

  again(): readonly ProviderAction[] {
    this.#isResponseDue = true;
    return this.#respond();
  }

  closed(code: number, reason: string): { readonly message: string; readonly isFinal: boolean } {
    return { message: closedText(code, reason), isFinal: code === 1_008 || code >= 3_000 };
  }

  receive(message: WireMessage): readonly ProviderAction[] {
    const event = fieldsOfMessage(message);
    if (event === null) return [{ do: 'warn', message: 'a message that is not JSON' }];
    switch (event['type']) {
      case 'session.updated':
        return this.#onUpdated();
      case 'error':
        return this.#onError(fieldsOf(event['error']));
      case 'input_audio_buffer.speech_started':
        return this.#onSpeechStarted(event);
      case 'input_audio_buffer.speech_stopped':
        this.#isCallerSpeaking = false;
        return [{ do: 'caller-speech', isSpeaking: false }, ...this.#respond()];
      case 'conversation.item.input_audio_transcription.completed':
        return this.#onTranscribed(event);
      case 'conversation.item.input_audio_transcription.failed':
        return [{ do: 'not-heard', message: errorTextOf(fieldsOf(event['error'])) }];
      case 'response.created':
        return this.#onCreated(fieldsOf(event['response']));
      case 'response.done':
        return this.#onDone(fieldsOf(event['response']));
      default:
        return this.#onOutput(event);
    }
  }

  /** What is part of a response. */
  #onOutput(event: Fields): readonly ProviderAction[] {
    const responseId = textOf(event['response_id']);
    const utterance = textOf(event['item_id']);
    // The rest of what the caller interrupted.
    if (this.#dead.has(responseId)) return [];
    switch (event['type']) {
      case 'response.output_item.added': {
        const item = fieldsOf(event['item']);
        if (item['type'] === 'function_call') this.#names.set(textOf(item['call_id']), textOf(item['name']));
        return [];
      }
      case 'response.output_audio.delta':
        this.#itemOf(responseId, utterance);
        return [{ do: 'play', utterance, bytes: Buffer.from(textOf(event['delta']), 'base64') }];
      case 'response.output_audio.done':
        return [{ do: 'end-utterance', utterance }];
      case 'response.output_audio_transcript.delta': {
        this.#itemOf(responseId, utterance);
        const text = (this.#texts.get(utterance) ?? '') + textOf(event['delta']);
        this.#texts.set(utterance, text);
        return [{ do: 'said', utterance, text, isLast: false }];
      }
      case 'response.output_audio_transcript.done':
        this.#texts.set(utterance, textOf(event['transcript']));
        return [{ do: 'said', utterance, text: textOf(event['transcript']), isLast: true }];
      case 'response.function_call_arguments.done':
        return this.#onCall(event);
      default:
        return [];
    }
  }

  #itemOf(responseId: string, item: string): void {
    const items = this.#responses.get(responseId);
    if (items === undefined) return;
    items.add(item);
    if (items.has(PHRASE)) this.#asides.add(item);
  }

  #onUpdated(): readonly ProviderAction[] {
    if (this.#isAccepted) return [];
    this.#isAccepted = true;
    const items = this.#conversation.map(({ speaker, text }) =>
      speaker === 'agent' ? sendItem('assistant', 'output_text', text) : sendItem('user', 'input_text', text),
    );
    return [...items, { do: 'accepted' }];
  }

  #onError(error: Fields): readonly ProviderAction[] {
    const code = textOf(error['code']);
    const message = errorTextOf(error);
    const isFinal = FINAL_ERRORS.has(code);
    if (!this.#isAccepted || isFinal || code === 'session_expired') return [{ do: 'fail', message, isFinal }];
    const wasRequested = this.#isRequested;
    this.#isRequested = false;
    // Our request crossed a response that the caller's speech began: it is made again after that.
    if (code === 'conversation_already_has_active_response') {
      this.#isResponseDue = true;
      return [];
    }
    return [{ do: wasRequested ? 'unanswered' : 'warn', message }];
  }

  #onSpeechStarted(event: Fields): readonly ProviderAction[] {
    this.#isCallerSpeaking = true;
    this.#starts.set(textOf(event['item_id']), numberOf(event['audio_start_ms']) ?? 0);
    for (const id of this.#responses.keys()) this.#dead.add(id);
    for (const id of this.#dead) if (this.#dead.size > MAX_DEAD) this.#dead.delete(id);
    return [{ do: 'caller-speech', isSpeaking: true }, { do: 'interrupt' }];
  }

  #onTranscribed(event: Fields): readonly ProviderAction[] {
    const item = textOf(event['item_id']);
    const audioMs = this.#starts.get(item) ?? null;
    this.#starts.delete(item);
    const text = textOf(event['transcript']).trim();
    return text === '' ? [] : [{ do: 'heard', text, audioMs }];
  }

  #onCreated(response: Fields): readonly ProviderAction[] {
    const isPhrase = fieldsOf(response['metadata'])[PHRASE] !== undefined;
    // One of the provider's own has all results before it; what is due while one was asked for came after that.
    if (!isPhrase && !this.#isRequested && this.#calls.size === 0) this.#isResponseDue = false;
    this.#isRequested = false;
    this.#responses.set(textOf(response['id']), new Set(isPhrase ? [PHRASE] : []));
    return [];
  }

  #onDone(response: Fields): readonly ProviderAction[] {
    const id = textOf(response['id']);
    const all = this.#responses.get(id) ?? new Set();
    const items = [...all].filter((item) => item !== PHRASE);
    this.#responses.delete(id);
    // Nobody waits for what the caller interrupted, nor for what is said while a tool runs.
    const isAnswer = !this.#dead.has(id) && !all.has(PHRASE);
    const ended = items.flatMap((utterance): ProviderAction[] => {
      const text = this.#texts.get(utterance) ?? '';
      this.#texts.delete(utterance);
      if (this.#dead.has(id)) return [];
      return [
        { do: 'said', utterance, text, isLast: true },
        { do: 'end-utterance', utterance },
      ];
    });
    return [...ended, ...tokensOf(fieldsOf(response['usage'])['total_tokens']), ...failureOf(response, isAnswer), ...this.#respond()];
  }

  #onCall(event: Fields): readonly ProviderAction[] {
    const callId = textOf(event['call_id']);
    const name = textOf(event['name']) || (this.#names.get(callId) ?? '');
    this.#names.delete(callId);
    const tool = this.#tools.toolOf(name);
    this.#calls.set(callId, tool?.speech ?? '');
    const input = parsedText(textOf(event['arguments']));
    return [{ do: 'run-tool', callId, name: tool?.name ?? name, input }];
  }

  /** Asks for a response when one is due and none is under way: one after the last result, and before it what is said meanwhile. */
  #respond(): readonly ProviderAction[] {
    if (this.#responses.size > 0 || this.#isRequested || this.#isCallerSpeaking) return [];
    if (this.#calls.size === 0) {
      if (!this.#isResponseDue) return [];
      this.#isResponseDue = false;
      this.#isRequested = true;
      return [send({ type: 'response.create' })];
    }
    const silent = [...this.#calls].find(([, speech]) => speech !== '');
    if (silent === undefined) return [];
    const [callId, speech] = silent;
    const instructions = `Say exactly these words, and nothing else: "${speech}"`;
    this.#calls.set(callId, '');
    this.#isRequested = true;
    const response = { conversation: 'none', metadata: { [PHRASE]: 'true' }, instructions, input: [], tools: [], tool_choice: 'none' };
    return [send({ type: 'response.create', response })];
  }
}

/** `null`: the provider's own. */
function turnDetectionOf({ endOfSpeechMs, tuning }: ProviderSettings): object | null {
  // What was said decides, not how long nobody speaks.
  const eagerness = tuning?.semantic_vad ?? null;
  if (eagerness !== null) return { type: 'semantic_vad', eagerness };
  return endOfSpeechMs === null ? null : { type: 'server_vad', silence_duration_ms: endOfSpeechMs };
}

function failureOf(response: Fields, isAnswer: boolean): readonly ProviderAction[] {
  const status = response['status'];
  if (status !== 'failed' && status !== 'incomplete') return [];
  const details = fieldsOf(response['status_details']);
  const error = fieldsOf(details['error']);
  if (FINAL_ERRORS.has(textOf(error['code']))) return [{ do: 'fail', message: errorTextOf(error), isFinal: true }];
  if (status === 'incomplete' && !isAnswer) return [];
  const reason = textOf(details['reason']) || 'unknown';
  const message = status === 'failed' ? errorTextOf(error) : shownReason(`the provider broke an answer off: ${reason}`);
  return [isAnswer ? { do: 'unanswered', message } : { do: 'warn', message, isFailure: true }];
}

/** Code and type only: a message may repeat what was said, or a part of the key. */
function errorTextOf(error: Fields): string {
  const [type, code, param] = [textOf(error['type']), textOf(error['code']), textOf(error['param'])];
  const place = param === '' ? '' : ` at ${param}`;
  return shownReason(`the provider sent an error: ${code || type || 'unknown'}${place}${causeOf(code)}`);
}

function sendItem(role: 'system' | 'user' | 'assistant', type: 'input_text' | 'output_text', text: string): ProviderAction {
  return send({ type: 'conversation.item.create', item: { type: 'message', role, content: [{ type, text }] } });
}
