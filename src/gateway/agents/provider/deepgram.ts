import type { ProviderSettings, Said } from '../../model/provider-settings.js';
import type { ProviderAction, ProviderAdapter, WireMessage } from './adapter.js';
import { instructionsOf, isoLanguageOf } from './instructions.js';
import { causeOf, closedText, fieldsOfMessage, listOf, parsedText, send, shownReason, textOf, type Fields } from './json-message.js';
import { ToolNames } from './tools.js';

// Deepgram's Voice Agent (its reference: "Voice Agent", version 1). Audio is binary in both directions, and has no name: an utterance
// is what comes between two ends of audio.

const SESSION_MS = 2 * 60 * 60_000;
const FINAL_ERRORS: ReadonlySet<string> = new Set([
  'INVALID_AUTH',
  'INVALID_SETTINGS',
  'UNPARSABLE_CLIENT_MESSAGE',
  'INSUFFICIENT_CREDITS',
]);
/** Texts that the provider has not confirmed, or has refused: keys, mostly. */
const MAX_INJECTED = 20;
/** The maker of a model, by its name's beginning; any other is OpenAI's. */
const MAKERS = {
  claude: 'anthropic',
  gemini: 'google',
  'nvidia/': 'nvidia',
  'think-fast': 'deepgram',
  'phonellm-': 'deepgram',
} as const;
/** The most function calls in the history of a later session, and the most characters of their JSON. */
const MAX_KNOWN_CALLS = 20;
const MAX_KNOWN_CHARACTERS = 65_536;

/** A function that was called, as the history has it. */
interface KnownCall {
  /** The caller's words before it. */
  readonly after: string;
  readonly call: {
    readonly id: string;
    readonly name: string;
    readonly client_side: true;
    readonly arguments: string;
    readonly response: string;
    /** Some models of Gemini refuse a call in the history without theirs. */
    readonly thought_signature?: string;
  };
}

export class DeepgramAgent implements ProviderAdapter {
  readonly target: ProviderAdapter['target'];
  readonly formats: ProviderAdapter['formats'];
  readonly sessionMs = SESSION_MS;
  readonly silentAfterMs = null;
  readonly keepAlive = JSON.stringify({ type: 'KeepAlive' });
  readonly #tools: ToolNames;
  /** Functions that run, by id. */
  readonly #calls = new Map<string, KnownCall>();
  #known: KnownCall[] = [];
  #heard = '';
  #isAccepted = false;
  /** Sent, and neither confirmed nor refused. */
  #injected: string[] = [];
  #refused: string[] = [];
  #utterances = 0;
  #text = '';
  #isSpeaking = false;
  /** The rest of what the caller interrupted is on its way. */
  #isCutOff = false;

  constructor(private readonly settings: ProviderSettings) {
    this.target = { url: settings.url, headers: { Authorization: `Token ${settings.apiKey ?? ''}` } };
    const format = settings.audio === 'pcm-24000' ? 'pcm16-24000' : settings.codec === 'PCMA' ? 'pcma' : 'pcmu';
    this.formats = { input: format, output: format };
    this.#tools = new ToolNames(settings.tools, settings.mayTransfer);
  }

  get isResponding(): boolean {
    return this.#isSpeaking || this.#calls.size > 0;
  }

  get resumption(): string | null {
    return this.#known.length === 0 ? null : JSON.stringify(this.#known);
  }

  open(conversation: readonly Said[], resumption: string | null): readonly ProviderAction[] {
    if (resumption !== null) this.#known = JSON.parse(resumption) as KnownCall[];
    const { settings } = this;
    const { firstSentence, waitsForGreeting, voice } = settings;
    const audio = this.formats.input === 'pcm16-24000' ? { encoding: 'linear16', sample_rate: 24_000 } : this.#law();
    const isFirst = conversation.length === 0;
    const agent = {
      listen: {
        provider: { type: 'deepgram', ...listenerOf(settings) },
      },
      think: {
        provider: { type: makerOf(settings.model), model: settings.model },
        prompt: instructionsOf(settings),
        functions: this.#tools.functions,
      },
      speak: { provider: { type: 'deepgram', ...(isFlux(voice ?? '') ? { version: 'v2' } : {}), model: voice } },
      ...(isFirst && firstSentence !== null && !waitsForGreeting ? { greeting: firstSentence } : {}),
      ...(isFirst ? {} : { context: { messages: this.#history(conversation) } }),
    };
    // Nothing of the call is used to train the provider's models.
    return [send({ type: 'Settings', mip_opt_out: true, audio: { input: audio, output: { ...audio, container: 'none' } }, agent })];
  }

  audio(bytes: Uint8Array): WireMessage {
    return bytes;
  }

  /** A first sentence is the greeting, which the provider says by itself. */
  begin(): readonly ProviderAction[] {
    return this.settings.firstSentence === null ? this.inform('The call was answered. Greet me.') : [];
  }

  say(text: string): readonly ProviderAction[] {
    return [send({ type: 'InjectAgentMessage', message: text, behavior: 'queue' })];
  }

  /** The provider does not take how much was heard. */
  interrupted(): readonly ProviderAction[] {
    return [];
  }

  toolResult(callId: string, output: unknown): readonly ProviderAction[] {
    const known = this.#calls.get(callId);
    if (known === undefined) return [];
    this.#calls.delete(callId);
    const content = JSON.stringify(output);
    this.#remember({ ...known, call: { ...known.call, response: content } });
    return [send({ type: 'FunctionCallResponse', id: callId, name: known.call.name, content })];
  }

  inform(text: string): readonly ProviderAction[] {
    this.#injected = [...this.#injected, text].slice(-MAX_INJECTED);
    return [send({ type: 'InjectUserMessage', content: text })];
  }

  again(): readonly ProviderAction[] {
    return this.#isSpeaking || this.#isCutOff ? [] : this.#refused.splice(0).flatMap((text) => this.inform(text));
  }

  closed(code: number, reason: string): { readonly message: string; readonly isFinal: boolean } {
    return { message: closedText(code, reason), isFinal: code === 1_008 };
  }

  receive(message: WireMessage): readonly ProviderAction[] {
    if (typeof message !== 'string') return this.#onAudio(message);
    const event = fieldsOfMessage(message);
    if (event === null) return [{ do: 'warn', message: 'a message that is not JSON' }];
    switch (event['type']) {
      case 'SettingsApplied':
        if (this.#isAccepted) return [];
        this.#isAccepted = true;
        return [{ do: 'accepted' }];
      case 'UserStartedSpeaking':
        return this.#onInterruption();
      case 'ConversationText':
        return event['role'] === 'user' ? this.#onHeard(textOf(event['content'])) : this.#onSaid(textOf(event['content']));
      case 'AgentThinking':
      case 'AgentStartedSpeaking':
        this.#isCutOff = false;
        return [];
      case 'AgentAudioDone':
        return this.#onAudioDone();
      case 'FunctionCallRequest':
        return listOf(event['functions']).flatMap((call) => this.#onCall(call));
      case 'FunctionCallCancelled':
        return this.#onCancelled(listOf(event['functions']).map(({ id }) => textOf(id)));
      case 'InjectionRefused':
        return this.#onRefused();
      case 'Error':
        return this.#onError(textOf(event['code']));
      case 'Warning':
        return [{ do: 'warn', message: shownReason(`the provider warns: ${textOf(event['code'])}`) }];
      default:
        return [];
    }
  }

  #law(): { readonly encoding: string; readonly sample_rate: number } {
    return { encoding: this.formats.input === 'pcma' ? 'alaw' : 'mulaw', sample_rate: 8_000 };
  }

  get #utterance(): string {
    return `utterance-${String(this.#utterances)}`;
  }

  #onAudio(bytes: Uint8Array): readonly ProviderAction[] {
    if (this.#isCutOff) return [];
    this.#isSpeaking = true;
    return [{ do: 'play', utterance: this.#utterance, bytes }];
  }

  #onInterruption(): readonly ProviderAction[] {
    this.#isCutOff = true;
    this.#next();
    return [{ do: 'caller-speech', isSpeaking: true }, { do: 'interrupt' }];
  }

  /** Somebody spoke: the texts go out again when nobody does. */
  #onRefused(): readonly ProviderAction[] {
    const text = this.#injected.shift();
    if (text !== undefined) this.#refused = [...this.#refused, text].slice(-MAX_INJECTED);
    return [{ do: 'refused', message: 'the provider refused a text, because somebody spoke: it is sent again' }];
  }

  #onHeard(text: string): readonly ProviderAction[] {
    this.#isCutOff = false;
    this.#heard = text.trim();
    // The provider repeats what it was told.
    this.#injected = this.#injected.filter((injected) => injected !== text);
    const done: ProviderAction = { do: 'caller-speech', isSpeaking: false };
    return text.trim() === '' ? [done] : [done, { do: 'heard', text: text.trim(), audioMs: null }];
  }

  #onSaid(text: string): readonly ProviderAction[] {
    if (this.#isCutOff) return [];
    this.#isSpeaking = true;
    this.#text = this.#text === '' ? text : `${this.#text} ${text}`;
    return [{ do: 'said', utterance: this.#utterance, text: this.#text, isLast: false }];
  }

  #onAudioDone(): readonly ProviderAction[] {
    if (this.#isCutOff) return [];
    const utterance = this.#utterance;
    const text = this.#text;
    this.#next();
    return [{ do: 'said', utterance, text, isLast: true }, { do: 'end-utterance', utterance }, ...this.again()];
  }

  #next(): void {
    this.#utterances += 1;
    this.#text = '';
    this.#isSpeaking = false;
  }

  #onCall(call: Fields): readonly ProviderAction[] {
    // The others are called by the provider itself.
    if (call['client_side'] === false) return [];
    const callId = textOf(call['id']);
    const name = textOf(call['name']);
    const tool = this.#tools.toolOf(name);
    const [given, signature] = [textOf(call['arguments']), textOf(call['thought_signature'])];
    this.#calls.set(callId, {
      after: this.#heard,
      call: {
        id: callId,
        name,
        client_side: true,
        arguments: given,
        response: '',
        ...(signature === '' ? {} : { thought_signature: signature }),
      },
    });
    const input = parsedText(given);
    return [{ do: 'run-tool', callId, name: tool?.name ?? name, input, speech: tool?.speech ?? '' }];
  }

  #remember(known: KnownCall): void {
    this.#known = [...this.#known, known].slice(-MAX_KNOWN_CALLS);
    while (JSON.stringify(this.#known).length > MAX_KNOWN_CHARACTERS) this.#known.shift();
  }

  /** Each call stands behind the words that it followed; one whose words are not known is left out. */
  #history(conversation: readonly Said[]): object[] {
    const lastOf = new Map(conversation.map(({ speaker, text }, index) => [speaker === 'caller' ? text : '', index]));
    return conversation.flatMap((said, index) => {
      const calls = this.#known.filter(({ after }) => after !== '' && lastOf.get(after) === index).map(({ call }) => call);
      return [messageOf(said), ...(calls.length === 0 ? [] : [{ type: 'History', function_calls: calls }])];
    });
  }

  #onCancelled(callIds: readonly string[]): readonly ProviderAction[] {
    for (const callId of callIds) this.#calls.delete(callId);
    return [{ do: 'drop-tools', callIds }];
  }

  #onError(code: string): readonly ProviderAction[] {
    return [{ do: 'fail', message: shownReason(`the provider sent an error: ${code}${causeOf(code)}`), isFinal: FINAL_ERRORS.has(code) }];
  }
}

/** Flux knows the caller's turns, and is of another version; its model of many languages takes a hint. */
function listenerOf({ transcriptionModel: model, language }: ProviderSettings): object {
  const code = isoLanguageOf(language);
  if (!isFlux(model)) return { version: 'v1', model, language: code };
  return { version: 'v2', model, ...(model === 'flux-general-multi' ? { language_hints: [code] } : {}) };
}

function isFlux(model: string): boolean {
  return model.startsWith('flux-');
}

function makerOf(model: string): string {
  return Object.entries(MAKERS).find(([beginning]) => model.startsWith(beginning))?.[1] ?? 'open_ai';
}

function messageOf({ speaker, text }: Said): object {
  return { type: 'History', role: speaker === 'agent' ? 'assistant' : 'user', content: text };
}
