import type { ProviderSettings, Said } from '../../model/provider-settings.js';
import type { ProviderAction, ProviderAdapter, WireMessage } from './adapter.js';
import { greetingOf, instructionsOf, isoLanguageOf } from './instructions.js';
import {
  base64Of,
  closedText,
  fieldsOf,
  fieldsOfMessage,
  listOf,
  send,
  shownReason,
  textOf,
  tokensOf,
  type Fields,
} from './json-message.js';
import { ToolNames, type ModelFunction } from './tools.js';

// Google's Gemini Live API (its reference: "Live API", BidiGenerateContent). A message has one field of several, so all are looked at.

/** Mostly the provider tells when a connection ends (`goAway`); 3.8 ends some at 58 minutes without a word. */
const SESSION_MS = 58 * 60_000;
/** Where a `goAway` does not say. */
const DEFAULT_TIME_LEFT_MS = 10_000;
/** A wrong argument, and a key or a policy. */
const FINAL_CODES: ReadonlySet<number> = new Set([1_007, 1_008]);

/** Reasons for the end of a turn that are no refusal. */
const GOOD_ENDS: ReadonlySet<string> = new Set(['', 'TURN_COMPLETE_REASON_UNSPECIFIED', 'NEED_MORE_INPUT']);
const ANSWER_AGAIN = 'Your last answer did not come through. Answer again, in other words.';

interface FunctionResult {
  readonly id: string;
  readonly name: string;
  readonly response: unknown;
  readonly scheduling?: 'SILENT' | 'WHEN_IDLE';
}

/** Models that wait for the results of all functions, and know no other behaviour. */
const WAITING_MODELS = /^gemini-3\.1-/u;

export class GeminiLive implements ProviderAdapter {
  readonly target: ProviderAdapter['target'];
  readonly formats = { input: 'pcm16-16000', output: 'pcm16-24000' } as const;
  readonly sessionMs = SESSION_MS;
  /** Its pongs take up to half a minute. */
  readonly silentAfterMs = 60_000;
  readonly #tools: ToolNames;
  /** The model goes on while functions run, and takes each result when it is there. */
  readonly #goesOn: boolean;
  /** Names of the functions that run, by id. */
  readonly #calls = new Map<string, string>();
  #results: FunctionResult[] = [];
  #history: readonly Said[] = [];
  #isAccepted = false;
  #resumption: string | null = null;
  #utterances = 0;
  #text = '';
  #heard = '';
  #isSpeaking = false;
  /** The caller interrupted this turn. */
  #isCutOff = false;

  constructor(private readonly settings: ProviderSettings) {
    this.target = { url: settings.url, headers: { 'x-goog-api-key': settings.apiKey ?? '' } };
    this.#tools = new ToolNames(settings.tools, settings.mayTransfer);
    this.#goesOn = !WAITING_MODELS.test(settings.model);
  }

  get resumption(): string | null {
    return this.#resumption;
  }

  get isResponding(): boolean {
    return this.#isSpeaking || this.#calls.size > 0;
  }

  open(conversation: readonly Said[], resumption: string | null): readonly ProviderAction[] {
    const { model, voice, endOfSpeechMs } = this.settings;
    this.#history = resumption === null ? conversation : [];
    const setup = {
      model: `models/${model}`,
      generationConfig: {
        responseModalities: ['AUDIO'],
        ...(voice === null ? {} : { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } } }),
      },
      systemInstruction: { parts: [{ text: instructionsOf(this.settings) }] },
      tools: [{ functionDeclarations: this.#tools.functions.map((declared) => declarationOf(declared, this.#goesOn)) }],
      ...(endOfSpeechMs === null ? {} : { realtimeInputConfig: { automaticActivityDetection: { silenceDurationMs: endOfSpeechMs } } }),
      // What the agent says is in the language of the instructions.
      inputAudioTranscription: { languageCodes: [isoLanguageOf(this.settings.language)] },
      outputAudioTranscription: {},
      sessionResumption: resumption === null ? {} : { handle: resumption },
      contextWindowCompression: { slidingWindow: {} },
      ...(this.#history.length === 0 ? {} : { historyConfig: { initialHistoryInClientContent: true } }),
    };
    return [send({ setup })];
  }

  audio(bytes: Uint8Array): WireMessage {
    return `{"realtimeInput":{"audio":{"data":"${base64Of(bytes)}","mimeType":"audio/pcm;rate=16000"}}}`;
  }

  begin(): readonly ProviderAction[] {
    return this.inform(greetingOf(this.settings));
  }

  /** The provider keeps count by itself. */
  interrupted(): readonly ProviderAction[] {
    return [];
  }

  toolResult(callId: string, output: unknown, continues: boolean): readonly ProviderAction[] {
    const name = this.#calls.get(callId);
    if (name === undefined) return [];
    this.#calls.delete(callId);
    const result = { id: callId, name, response: output };
    if (this.#goesOn) return [sendResults([{ ...result, scheduling: continues ? 'WHEN_IDLE' : 'SILENT' }])];
    this.#results.push({ ...result, ...(continues ? {} : { scheduling: 'SILENT' }) });
    return this.#sendResults();
  }

  inform(text: string): readonly ProviderAction[] {
    return [send({ realtimeInput: { text } })];
  }

  again(): readonly ProviderAction[] {
    return this.inform(ANSWER_AGAIN);
  }

  closed(code: number, reason: string): { readonly message: string; readonly isFinal: boolean } {
    return { message: closedText(code, reason), isFinal: FINAL_CODES.has(code) };
  }

  receive(message: WireMessage): readonly ProviderAction[] {
    const event = fieldsOfMessage(message);
    if (event === null) return [{ do: 'warn', message: 'a message that is not JSON' }];
    return [
      ...(event['setupComplete'] === undefined ? [] : this.#onSetUp()),
      ...this.#onContent(fieldsOf(event['serverContent'])),
      ...listOf(fieldsOf(event['toolCall'])['functionCalls']).flatMap((call) => this.#onCall(call)),
      ...this.#onCancelled(fieldsOf(event['toolCallCancellation'])['ids']),
      ...this.#onResumption(fieldsOf(event['sessionResumptionUpdate'])),
      ...tokensOf(fieldsOf(event['usageMetadata'])['totalTokenCount']),
      ...(event['goAway'] === undefined ? [] : [renewal(fieldsOf(event['goAway']))]),
    ];
  }

  get #utterance(): string {
    return `utterance-${String(this.#utterances)}`;
  }

  #onSetUp(): readonly ProviderAction[] {
    if (this.#isAccepted) return [];
    this.#isAccepted = true;
    const turns = this.#history.map(({ speaker, text }) => ({ role: speaker === 'agent' ? 'model' : 'user', parts: [{ text }] }));
    return [...(turns.length === 0 ? [] : [send({ clientContent: { turns, turnComplete: true } })]), { do: 'accepted' }];
  }

  #onContent(content: Fields): readonly ProviderAction[] {
    const heard = fieldsOf(content['inputTranscription']);
    const said = textOf(fieldsOf(content['outputTranscription'])['text']);
    this.#heard += textOf(heard['text']);
    const isInterrupted = content['interrupted'] === true;
    const parts = this.#isCutOff || isInterrupted ? [] : listOf(fieldsOf(content['modelTurn'])['parts']);
    const audio = parts.map(({ inlineData }) => textOf(fieldsOf(inlineData)['data'])).filter((data) => data !== '');
    if (audio.length > 0) this.#isSpeaking = true;
    if (!this.#isCutOff) this.#text += said;
    const utterance = this.#utterance;
    const isDone = content['turnComplete'] === true;
    const isHeard = heard['finished'] === true || audio.length > 0 || isInterrupted || isDone;
    return [
      ...(isHeard ? this.#takeHeard() : []),
      ...(said === '' || this.#isCutOff ? [] : [{ do: 'said', utterance, text: this.#text.trim(), isLast: false } as const]),
      ...audio.map((data) => ({ do: 'play', utterance, bytes: Buffer.from(data, 'base64') }) as const),
      ...(isInterrupted ? this.#onInterrupted() : []),
      ...(content['generationComplete'] === true ? [{ do: 'end-utterance', utterance } as const] : []),
      ...(isDone ? this.#onTurnComplete(textOf(content['turnCompleteReason'])) : []),
    ];
  }

  #takeHeard(): readonly ProviderAction[] {
    const text = this.#heard.trim();
    this.#heard = '';
    return text === '' ? [] : [{ do: 'heard', text, audioMs: null }];
  }

  #onInterrupted(): readonly ProviderAction[] {
    this.#isCutOff = true;
    this.#next();
    return [{ do: 'interrupt' }];
  }

  #onTurnComplete(reason: string): readonly ProviderAction[] {
    const wasCutOff = this.#isCutOff;
    this.#isCutOff = false;
    const utterance = this.#utterance;
    const text = this.#text.trim();
    this.#next();
    if (wasCutOff) return [];
    return [
      { do: 'said', utterance, text, isLast: true },
      { do: 'end-utterance', utterance },
      ...(GOOD_ENDS.has(reason) ? [] : [{ do: 'unanswered', message: shownReason(`the provider refused an answer: ${reason}`) } as const]),
    ];
  }

  #next(): void {
    this.#utterances += 1;
    this.#text = '';
    this.#isSpeaking = false;
  }

  #onCall(call: Fields): readonly ProviderAction[] {
    const callId = textOf(call['id']);
    const name = textOf(call['name']);
    this.#calls.set(callId, name);
    const tool = this.#tools.toolOf(name);
    return [{ do: 'run-tool', callId, name: tool?.name ?? name, input: call['args'] ?? {}, speech: tool?.speech ?? '' }];
  }

  #onCancelled(ids: unknown): readonly ProviderAction[] {
    if (!Array.isArray(ids)) return [];
    const callIds = ids.map(textOf);
    for (const callId of callIds) this.#calls.delete(callId);
    return [{ do: 'drop-tools', callIds }, ...this.#sendResults()];
  }

  /** Those of all functions that were called, after the last. */
  #sendResults(): readonly ProviderAction[] {
    if (this.#calls.size > 0 || this.#results.length === 0) return [];
    const functionResponses = this.#results;
    this.#results = [];
    return [sendResults(functionResponses)];
  }

  /** Only the latest state can be resumed, and not while a tool runs. */
  #onResumption(update: Fields): readonly ProviderAction[] {
    if (update['resumable'] === true) this.#resumption = textOf(update['newHandle']) || null;
    else if (Object.hasOwn(update, 'resumable')) this.#resumption = null;
    return [];
  }
}

/** The provider refuses an object without properties. */
function declarationOf({ parameters, ...declared }: ModelFunction, goesOn: boolean): object {
  return {
    ...declared,
    ...(Object.keys(parameters.properties).length === 0 ? {} : { parameters }),
    ...(goesOn ? { behavior: 'NON_BLOCKING' } : {}),
  };
}

function sendResults(functionResponses: readonly FunctionResult[]): ProviderAction {
  return send({ toolResponse: { functionResponses } });
}

/** `timeLeft` is seconds with an `s` (protobuf's JSON form of a duration). */
function renewal(goAway: Fields): ProviderAction {
  const seconds = Number.parseFloat(textOf(goAway['timeLeft']));
  return { do: 'renew', withinMs: Number.isFinite(seconds) ? Math.max(0, 1_000 * seconds) : DEFAULT_TIME_LEFT_MS };
}
