import type { AudioPacket } from '../../../rtp/audio-packet.js';
import type { AgentConnectionLimits, ConversationSettings, TranscriptEntry } from '../../model/agent.js';
import type { CallerInput } from '../../model/conversation.js';
import { isoOf, type Voice } from '../../model/speech-service.js';
import { type AudioCodec, FRAME_MS } from '../../../rtp/codec/g711.js';
import { digitOfEvent, eventOfDigit } from '../../../rtp/dtmf/telephone-event.js';
import type { Clock } from '../../../lib/clock.js';
import type { Log } from '../../../lib/log.js';
import { assertNever, errorText } from '../../../lib/result.js';
import { AgentUnavailableError } from '../../ports/ports.js';
import type { AgentCounters, AgentHost, LegAgent, Speech } from '../../media/leg-agent.js';
import { MAX_END_OF_SPEECH_MS, VoiceActivity, type VoiceDetector } from '../../media/voice-activity.js';
import type { AudioUrls } from '../audio-url.js';
import { APPLICATION_LIMITS, MessageBudget } from '../message-budget.js';
import { Utterances, type HeardUtterance } from '../provider/utterances.js';
import { isoLanguageOf } from '../provider/instructions.js';
import { shownReason } from '../provider/json-message.js';
import { Downlink } from '../stream/downlink.js';
import { EarlyAudio } from '../stream/early-audio.js';
import { DONE_CODES } from '../stream/frames.js';
import { beginsAsJson } from '../stream/messages.js';
import type { AgentSocket, DialAgent, DialSocket } from '../stream/socket.js';
import { Uplink } from '../stream/uplink.js';
import { WholeSamples } from '../stream/whole-samples.js';
import { silenceOf, type WireFormat } from '../stream/wire-format.js';
import type { TextToSpeech } from '../text-to-speech.js';
import type { FluxEvent } from './flux.js';
import { readMessage, setupMessage, type FromApplication, type ToApplication } from './messages.js';
import { Recognizer } from './recognizer.js';
import { Sentences } from './sentences.js';
import { Speaker, type SpeechItem } from './speaker.js';

export interface ConversationDependencies {
  readonly clock: Clock;
  readonly dial: DialAgent;
  /** To the provider. */
  readonly dialProvider: DialSocket;
  readonly limits: AgentConnectionLimits;
  readonly openVoiceDetector: () => VoiceDetector;
  readonly textToSpeech: TextToSpeech;
  /** Audio files that the application names. */
  readonly audio: AudioUrls;
  /** Counted up. */
  readonly counters: AgentCounters;
}

/** How long a voice must last before it interrupts, in milliseconds. */
const INTERRUPTION_MS: Readonly<Record<ConversationSettings['rules']['sensitivity'], number>> = { high: 100, medium: 200, low: 400 };
/** What is still in buffers on the way is heard too before the end takes effect. */
const FAREWELL_FRAMES = 10;
const DIGIT_MS = 160;
const MAX_EARLY_DIGITS = 64;
const MAX_UNSENT_BYTES = 1_024 * 1_024;
/** Warnings and error messages a call. */
const MAX_WARNINGS = 20;
/** Position in the queue at which the last part of a frame is not waited for. */
const END = 'end';
const ISO_MULTI = 'multi';

/** One call's application that exchanges text with it: what the caller says becomes text here, and its text becomes speech. */
export class ConversationAgent implements LegAgent {
  readonly #recognizer: Recognizer;
  readonly #speaker: Speaker;
  readonly #voice: VoiceActivity;
  readonly #utterances = new Utterances(true);
  readonly #sentences = new Sentences();
  readonly #earlyAudio = new EarlyAudio();
  readonly #earlyDigits: string[] = [];
  #app: AgentSocket | null = null;
  #stopDialling: () => void = () => undefined;
  #cancelLimit: () => void = () => undefined;
  #settle: { readonly resolve: () => void; readonly reject: (error: Error) => void } | null = null;
  #listens = false;
  #uplink: Uplink | null = null;
  #downlink: Downlink | null = null;
  #startedMs: number | null = null;
  /** What is given on and not heard to its end: the first is what is heard. */
  #audible: { readonly item: SpeechItem; until: number }[] = [];
  readonly #samples = new WholeSamples();
  #cycle = 0;
  #items = 0;
  /** Texts of the cycle that is interrupted are on their way. */
  #isCut = false;
  /** The last text was not the last of its cycle. */
  #isCycleOpen = false;
  /** The cycle that is heard. */
  #heard: { readonly cycle: number; readonly texts: string[]; readonly startedMs: number } | null = null;
  #ttsLanguage: string;
  #transcriptionLanguage: string;
  #turn = { isIgnored: false, startedMs: 0, text: '' };
  #ending: { readonly handoffData: string | null } | null = null;
  #farewellFrames = FAREWELL_FRAMES;
  #silentFrames = 0;
  #framesSincePing = 0;
  #isPinged = false;
  readonly #budget = new MessageBudget(APPLICATION_LIMITS, () => this.#warn('the application sends too many messages: some are ignored'));
  #warnings = 0;
  #isOver = false;

  constructor(
    private readonly settings: ConversationSettings,
    private readonly host: AgentHost,
    private readonly dependencies: ConversationDependencies,
    private readonly log: Log,
  ) {
    const { rules, listen } = settings;
    const { clock, dialProvider, openVoiceDetector } = dependencies;
    this.#ttsLanguage = tagOf(rules.ttsLanguage);
    this.#transcriptionLanguage = tagOf(rules.transcriptionLanguage);
    this.#voice = new VoiceActivity(openVoiceDetector(), MAX_END_OF_SPEECH_MS / 20, INTERRUPTION_MS[rules.sensitivity]);
    this.#recognizer = new Recognizer(listen, rules.hints, dialProvider, clock, {
      onReady: () => this.#safely(() => this.#onListens()),
      onEvent: (event) => this.#safely(() => this.#onTurn(event)),
      onTrouble: (message) => this.#safely(() => this.#warn(`speech to text: ${message}`)),
      onFailed: (message) => this.#safely(() => this.#fail(`speech to text: ${message}`)),
    });
    const queuedMs = (): number => this.#downlink?.queue.queuedMs ?? 0;
    this.#speaker = new Speaker({
      get queuedMs(): number {
        return queuedMs();
      },
      request: (item, signal, onAudio) => this.#synthesize(item, signal, onAudio),
      play: (item, format, bytes) => this.#play(item, format, bytes),
      end: (item) => this.#endItem(item),
      failed: (_item, message) => this.#warn(`text to speech: ${message}`),
    });
  }

  get bufferedMs(): number {
    return this.#uplink?.bufferedMs ?? 0;
  }

  get latePackets(): number {
    return this.#uplink?.latePackets ?? 0;
  }

  connect(): Promise<void> {
    const { listen } = this.settings;
    const { clock, dial, limits } = this.dependencies;
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      if (listen.apiKey === null) return this.#fail('speech to text: there is no key for deepgram');
      const limit = `no answer within ${String(limits.connectTimeoutMs)} ms`;
      this.#cancelLimit = clock.setTimer(limits.connectTimeoutMs, () =>
        this.#safely(() => this.#fail(this.#app === null ? limit : `speech to text: ${limit}`)),
      );
      this.#stopDialling = dial(this.settings, {
        onOpen: (socket) => this.#safely(() => this.#onOpen(socket)),
        onFailed: (message) => this.#safely(() => this.#fail(message)),
        onText: (text) => this.#safely(() => this.#onText(text)),
        onBinary: (bytes) => this.#safely(() => this.#onBinary(bytes)),
        onPong: () => (this.#isPinged = false),
        onClosed: (code) => this.#safely(() => this.#onClosed(code)),
      });
      this.#recognizer.listen(this.#transcriptionLanguage);
    });
  }

  start(codec: AudioCodec, nowMs: number): void {
    const { limits, counters } = this.dependencies;
    const { rules } = this.settings;
    this.#startedMs = nowMs;
    const uplink = new Uplink('pcmu', codec, limits.maxUnsentAudioMs, {
      onSamples: (samples) => this.#listen(samples),
      onDropped: (milliseconds) => (counters.droppedInboundMs += milliseconds),
    });
    uplink.wantsSamples = true;
    this.#uplink = uplink;
    this.#downlink = new Downlink('pcmu', codec, limits.maxQueuedSpeechMs);
    uplink.start(nowMs);
    const socket = { unsentBytes: 0, sendUtf8: () => undefined, sendBinary: (bytes: Uint8Array) => this.#recognizer.audio(bytes) };
    uplink.connect({ socket, writer: null });
    this.#app?.sendText(setupMessage(this.settings));
    if (rules.greeting !== null) this.#say({ text: rules.greeting.text, interruptible: rules.greeting.interruptible, isLast: true });
    this.#earlyAudio.giveTo(uplink, nowMs);
    for (const digit of this.#earlyDigits.splice(0)) this.#onDigit(digit);
  }

  digit(event: number): void {
    const digit = digitOfEvent(event);
    if (digit === undefined || this.#isOver) return;
    if (this.#startedMs !== null) this.#onDigit(digit);
    else if (this.#earlyDigits.length < MAX_EARLY_DIGITS) this.#earlyDigits.push(digit);
  }

  hear(packet: AudioPacket): void {
    (this.#uplink ?? this.#earlyAudio).hear(packet);
  }

  get speech(): Speech {
    return this.#downlink?.queue.speech ?? 'none';
  }

  fill(payload: Uint8Array, nowMs: number): void {
    const queue = this.#downlink?.queue;
    if (queue === undefined) return;
    queue.pull(payload);
    queue.takePlayedMarks();
    this.#noteHeard(this.#utterances.played(queue.playedBytes, this.#elapsedMs));
    this.#audible = this.#audible.filter(({ until }) => until > queue.playedBytes);
    this.#beginCycle();
    this.#speaker.advance();
    this.#silentFrames = 0;
    this.#tick(nowMs, 1);
    if (this.#ending !== null && !this.#isSpeaking) this.#takeLeave(1);
  }

  pass(nowMs: number, frames: number): void {
    this.#tick(nowMs, frames);
    if (this.#ending !== null) this.#takeLeave(frames);
    // Without audio the provider would close.
    this.#silentFrames += frames;
    const silence = silenceOf('pcmu');
    for (; this.#silentFrames > 0; this.#silentFrames -= 1) this.#recognizer.audio(silence);
  }

  /** It asks for nothing. */
  notify(): void {
    return;
  }

  close(): void {
    const queue = this.#downlink?.queue;
    if (queue !== undefined) this.#noteHeard(this.#utterances.cut(queue.playedBytes, this.#elapsedMs).heard);
    this.#settle?.reject(new AgentUnavailableError('the call ended'));
    this.#release();
    this.#voice.close();
  }

  get #elapsedMs(): number {
    return this.#startedMs === null ? 0 : this.dependencies.clock.nowMs() - this.#startedMs;
  }

  get #isSpeaking(): boolean {
    return !this.#speaker.isIdle || this.#downlink?.queue.isEmpty === false;
  }

  /** What is heard, or is the next to be. */
  get #current(): SpeechItem | undefined {
    return this.#audible[0]?.item ?? this.#speaker.items[0];
  }

  #tick(nowMs: number, frames: number): void {
    this.#uplink?.tick(nowMs);
    // The recognizer takes what it gets.
    this.#uplink?.acknowledge(this.#uplink.sentFrames);
    this.#budget.refill(frames);
    if (this.#app === null || this.#isOver) return;
    this.#framesSincePing += frames;
    const { pingIntervalMs } = this.dependencies.limits;
    if (this.#framesSincePing * FRAME_MS < pingIntervalMs) return;
    this.#framesSincePing = 0;
    if (this.#isPinged) return this.#fail(`the application answered no ping for ${String(pingIntervalMs)} ms`);
    this.#isPinged = true;
    this.#app.ping(0);
  }

  #takeLeave(frames: number): void {
    this.#farewellFrames -= frames;
    if (this.#farewellFrames < 0) this.#end(this.#ending?.handoffData ?? null, null);
  }

  #onOpen(socket: AgentSocket): void {
    this.#app = socket;
    this.#onConnected();
  }

  #onListens(): void {
    this.#listens = true;
    this.#onConnected();
  }

  #onConnected(): void {
    if (this.#app === null || !this.#listens || this.#settle === null) return;
    this.#cancelLimit();
    this.#note(`connected to ${shownUrl(this.settings.url)}`);
    this.#settle.resolve();
    this.#settle = null;
  }

  #onClosed(code: number): void {
    this.#app = null;
    // What it said before it closed is not heard out: it has given the call up.
    if (DONE_CODES.has(code)) return this.#end(this.#ending?.handoffData ?? null, null);
    this.#fail(`the connection was closed with ${String(code)}`);
  }

  /** Some libraries send JSON in binary messages. */
  #onBinary(bytes: Uint8Array): void {
    if (beginsAsJson(bytes)) this.#onText(Buffer.from(bytes).toString());
    else if (this.#budget.take()) this.#refuse('The message is binary, and no JSON.');
  }

  #onText(text: string): void {
    if (!this.#budget.take(text.length)) return;
    const message = readMessage(text);
    if (message.type === 'invalid') return this.#refuse(message.problem);
    if (this.#ending === null) this.#take(message);
  }

  #take(message: FromApplication): void {
    const { rules } = this.settings;
    switch (message.type) {
      case 'text': {
        const { interruptible = rules.interruptible, preemptible = rules.preemptible, token, last: isLast, lang } = message;
        return this.#say({ text: token, interruptible, preemptible, isLast, ...(lang === undefined ? {} : { language: lang }) });
      }
      case 'play': {
        const { interruptible = rules.interruptible, preemptible = rules.preemptible, source, loop } = message;
        this.#nextCycle();
        return this.#add({ kind: 'file', url: source, loop }, interruptible, preemptible);
      }
      case 'sendDigits':
        return this.#sendDigits(message.digits);
      case 'language':
        this.#ttsLanguage = message.ttsLanguage ?? this.#ttsLanguage;
        this.#transcriptionLanguage = message.transcriptionLanguage ?? this.#transcriptionLanguage;
        return this.#recognizer.listen(this.#transcriptionLanguage);
      case 'end':
        this.#ending = { handoffData: message.handoffData ?? null };
        this.#endCycle();
        return;
      default:
        assertNever(message);
    }
  }

  #say(said: {
    readonly text: string;
    readonly isLast: boolean;
    readonly interruptible: CallerInput;
    readonly preemptible?: boolean;
    readonly language?: string;
  }): void {
    const { text, isLast, interruptible, preemptible = false, language = this.#ttsLanguage } = said;
    if (!this.#isCycleOpen) this.#nextCycle();
    this.#isCycleOpen = !isLast;
    const pieces = [...this.#sentences.push(text), ...(isLast ? this.#sentences.flush() : [])];
    if (this.#isCut) this.#isCut = !isLast;
    else for (const piece of pieces) this.#add({ kind: 'text', text: piece, language }, interruptible, preemptible);
  }

  #add(content: SpeechItem['content'], interruptible: CallerInput, preemptible: boolean): void {
    this.#items += 1;
    const item = { id: String(this.#items), cycle: this.#cycle, content, interruptible, preemptible };
    if (content.kind === 'text') this.#utterances.said(item.id, content.text, true);
    if (!this.#speaker.add(item)) this.#refuse('Too much waits to be heard: this is not said.');
  }

  /** What the cycle before still has to say is given up when it may be. */
  #nextCycle(): void {
    this.#endCycle();
    this.#cycle += 1;
    this.#isCut = false;
    if (this.#current?.preemptible === true) this.#cut();
  }

  #endCycle(): void {
    this.#isCycleOpen = false;
    const rest = this.#sentences.flush();
    const { interruptible, preemptible } = this.settings.rules;
    if (!this.#isCut) for (const text of rest) this.#add({ kind: 'text', text, language: this.#ttsLanguage }, interruptible, preemptible);
  }

  #synthesize(
    { content }: SpeechItem,
    signal: AbortSignal,
    onAudio: (piece: { format: WireFormat; bytes: Uint8Array }) => void,
  ): Promise<void> {
    const { textToSpeech } = this.dependencies;
    const { speech } = this.settings;
    if (content.kind === 'file') return this.#readFile(content.url, signal, onAudio);
    const { text, language } = content;
    return textToSpeech.stream(speech, { text, language, voice: this.#voiceOf(language) }, signal, (format, bytes) =>
      this.#safely(() => onAudio({ format, bytes })),
    );
  }

  async #readFile(url: string, signal: AbortSignal, onAudio: (piece: { format: WireFormat; bytes: Uint8Array }) => void): Promise<void> {
    const samples = await this.dependencies.audio.samplesAt(this.settings.accountSid, url, signal);
    const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength).slice();
    this.#safely(() => onAudio({ format: 'pcm16-8000', bytes }));
  }

  /** `<Language>` of the same tag, or of the same language, or the one of all. */
  #voiceOf(language: string): Voice {
    const { languages, voice, ttsLanguage } = this.settings.rules;
    const exact = languages[language] ?? Object.entries(languages).find(([tag]) => isoOf(tag) === isoOf(language))?.[1];
    if (exact !== undefined) return exact;
    // A voice of one language is no voice of another.
    const isOwn = voice !== null && (isoOf(tagOf(ttsLanguage)) === isoOf(language) || voice.provider !== 'deepgram');
    return isOwn ? voice : { provider: voice?.provider ?? 'deepgram', voice: null };
  }

  #play(item: SpeechItem, format: WireFormat, bytes: Uint8Array): void {
    const downlink = this.#downlink;
    if (downlink === null) return;
    const from = downlink.queue.pushedBytes;
    const lostMs = downlink.sendBinary(this.#samples.of(format, bytes), format);
    const until = downlink.queue.pushedBytes;
    this.#utterances.queued(item.id, from, until);
    const last = this.#audible.at(-1);
    if (last?.item === item) last.until = until;
    else this.#audible.push({ item, until });
    if (lostMs > 0) this.dependencies.counters.droppedOutboundMs += lostMs;
    if (this.host.speak()) downlink.queue.cameInTime();
  }

  #endItem(item: SpeechItem): void {
    this.#samples.reset();
    this.#utterances.ended(item.id);
    this.#downlink?.queue.mark(END);
  }

  #beginCycle(): void {
    const cycle = this.#audible[0]?.item.cycle;
    if (cycle === undefined || this.#heard?.cycle === cycle) return;
    this.#heard = { cycle, texts: [], startedMs: this.#elapsedMs };
  }

  #noteHeard(heard: readonly HeardUtterance[]): void {
    for (const { entry } of heard) this.#heard?.texts.push(entry.text);
    this.#record(heard.map(({ entry }) => entry));
  }

  /** Nothing more of what was said so far is heard. */
  #cut(): void {
    this.#speaker.cut();
    this.#samples.reset();
    const queue = this.#downlink?.queue;
    if (queue === undefined) return;
    this.#noteHeard(this.#utterances.cut(queue.playedBytes, this.#elapsedMs).heard);
    queue.clear();
    this.#audible = [];
  }

  #interrupt(): void {
    this.#beginCycle();
    const { startedMs = this.#elapsedMs } = this.#heard ?? {};
    const durationUntilInterruptMs = Math.round(this.#elapsedMs - startedMs);
    this.#isCut = this.#isCycleOpen;
    this.#cut();
    this.#send({ type: 'interrupt', utteranceUntilInterrupt: this.#heard?.texts.join(' ') ?? '', durationUntilInterruptMs });
    this.#heard = null;
  }

  /** Whether this input of the caller interrupts what is heard. */
  #mayInterrupt(input: 'speech' | 'dtmf'): boolean {
    return includes(this.#current?.interruptible ?? 'none', input);
  }

  /** Whether this input of the caller is reported. */
  #isReported(input: 'speech' | 'dtmf'): boolean {
    return !this.#isSpeaking || this.#mayInterrupt(input) || includes(this.settings.rules.reportsWhileSpeaking, input);
  }

  #listen(samples: Int16Array): void {
    if (this.#voice.frame(samples) !== 'speech-started') return;
    if (this.#isSpeaking && this.#mayInterrupt('speech')) this.#interrupt();
  }

  #onTurn(event: Extract<FluxEvent, { type: 'update' | 'end-of-turn' }>): void {
    if (this.#startedMs === null) return;
    if (event.type === 'update' && event.isNew)
      this.#turn = { isIgnored: !this.#isReported('speech'), startedMs: this.#elapsedMs, text: '' };
    const { isIgnored, startedMs, text: before } = this.#turn;
    const { text, language } = event;
    if (isIgnored || text === '') return;
    const lang = this.#transcriptionLanguage === ISO_MULTI && language !== null ? language : this.#transcriptionLanguage;
    const last = event.type === 'end-of-turn';
    this.#turn = { ...this.#turn, text: last ? '' : text };
    if (last) this.#record([{ speaker: 'caller', text, at_ms: Math.round(startedMs) }]);
    if (!last && (!this.settings.rules.partialPrompts || text === before)) return;
    // What the application says from now on answers this.
    if (last) this.#isCut = false;
    this.#send({ type: 'prompt', voicePrompt: text, lang, last });
  }

  #onDigit(digit: string): void {
    const isReported = this.settings.rules.reportsDigits && this.#isReported('dtmf');
    this.#record([{ speaker: 'caller', text: digit, at_ms: Math.round(this.#elapsedMs) }]);
    if (this.#isSpeaking && this.#mayInterrupt('dtmf')) this.#interrupt();
    if (!isReported) return;
    this.#isCut = false;
    this.#send({ type: 'dtmf', digit });
  }

  #sendDigits(digits: string): void {
    for (const digit of digits) {
      const event = eventOfDigit(digit);
      if (event === undefined || this.host.sendDtmf(event, DIGIT_MS)) continue;
      return this.#refuse('The call has no telephone-events, or too many digits wait: the digits are not sent.');
    }
  }

  #send(message: ToApplication): void {
    const app = this.#app;
    if (app === null || this.#startedMs === null || this.#isOver) return;
    app.sendText(JSON.stringify(message));
    if (app.unsentBytes > MAX_UNSENT_BYTES) this.#fail('the application does not read');
  }

  /** Tells the application that something of it is not done. */
  #refuse(description: string): void {
    this.#warnings += 1;
    if (this.#warnings > MAX_WARNINGS) return;
    this.host.emit({ type: 'agent-note', kind: 'ignored', text: description, isFailure: false });
    this.#send({ type: 'error', description });
  }

  /** Something failed, and the conversation goes on. */
  #warn(message: string): void {
    this.#warnings += 1;
    if (this.#warnings > MAX_WARNINGS) return;
    this.log.warn({ error: message }, 'agent.conversation.warning');
    this.host.emit({ type: 'agent-note', kind: 'other', text: shownReason(message), isFailure: true });
    this.#send({ type: 'error', description: shownReason(message) });
  }

  #note(text: string): void {
    this.host.emit({ type: 'agent-note', kind: 'other', text, isFailure: false });
  }

  #record(entries: readonly TranscriptEntry[]): void {
    if (entries.length > 0) this.host.emit({ type: 'agent-request', request: { type: 'transcript', entries, isByTime: true } });
  }

  /** The conversation is over, and the call is not: nothing is connected again. */
  #fail(message: string): void {
    const text = `${shownUrl(this.settings.url)}: ${shownReason(message)}`;
    this.log.warn({ error: message }, 'agent.conversation.failed');
    this.host.emit({ type: 'agent-note', kind: 'closed', text, isFailure: true });
    this.#end(null, text);
  }

  #end(handoffData: string | null, error: string | null): void {
    if (this.#isOver) return;
    this.#cut();
    this.#release();
    if (this.#settle === null) return this.host.emit({ type: 'conversation-ended', handoffData, error });
    this.#settle.reject(new AgentUnavailableError(error ?? 'the application closed the connection'));
    this.#settle = null;
  }

  #release(): void {
    this.#isOver = true;
    this.#cancelLimit();
    this.#stopDialling();
    this.#speaker.cut();
    this.#recognizer.close();
    this.#app?.close();
    this.#app = null;
    this.#uplink?.connect(null);
  }

  /** What a socket or a timer calls: a bug of ours ends this call, and no other one of the thread. */
  #safely(work: () => void): void {
    if (this.#isOver) return;
    try {
      work();
    } catch (error) {
      this.log.error({ error }, 'agent.bug');
      this.#fail(`a bug: ${errorText(error)}`);
    }
  }
}

/** A language code of the product (`ENG`) as a language tag; others as they are. */
function tagOf(language: string): string {
  return /^[A-Z]{3}$/.test(language) ? isoLanguageOf(language) : language;
}

function includes(rule: CallerInput, input: 'speech' | 'dtmf'): boolean {
  return rule === 'any' || rule === input;
}

/** Removes what may be a secret. */
function shownUrl(text: string): string {
  return URL.canParse(text) ? `${new URL(text).protocol}//${new URL(text).host}${new URL(text).pathname}` : 'a URL that cannot be read';
}
