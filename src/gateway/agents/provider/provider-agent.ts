import type { AudioPacket } from '../../../rtp/audio-packet.js';
import type { AgentAnswer, AgentConnectionLimits, AgentRequest, TranscriptEntry } from '../../model/agent.js';
import type { ProviderSettings } from '../../model/provider-settings.js';
import { type AudioCodec, FRAME_MS } from '../../../rtp/codec/g711.js';
import { digitOfEvent } from '../../../rtp/dtmf/telephone-event.js';
import type { CancelTimer, Clock } from '../../../lib/clock.js';
import type { Log } from '../../../lib/log.js';
import { AgentUnavailableError } from '../../ports/ports.js';
import { assertNever } from '../../../lib/result.js';
import type { AgentCounters, AgentHost, LegAgent, Speech } from '../../media/leg-agent.js';
import { ConnectionRunner, type ConnectionWork } from '../stream/connection-runner.js';
import { Downlink } from '../stream/downlink.js';
import { EarlyAudio } from '../stream/early-audio.js';
import type { AgentSocket, DialSocket } from '../stream/socket.js';
import { Uplink } from '../stream/uplink.js';
import { WholeSamples } from '../stream/whole-samples.js';
import { silenceOf } from '../stream/wire-format.js';
import type { WireFormat } from '../stream/wire-format.js';
import { MessageBudget, PROVIDER_LIMITS } from '../message-budget.js';
import type { TextToSpeech } from '../text-to-speech.js';
import type { ProviderAction, ProviderAdapter, WireMessage } from './adapter.js';
import { CallerKeys } from './caller-keys.js';
import { CallerTurns } from './caller-turns.js';
import { ConversationSoFar } from './conversation-so-far.js';
import { EarlySpeech } from './early-speech.js';
import type { SipHeaders } from '../../model/passed-headers.js';
import { Farewell } from './farewell.js';
import { FunctionCalls } from './function-calls.js';
import { causeOf, shownReason } from './json-message.js';
import { Liveness } from './liveness.js';
import { LongSilence } from './long-silence.js';
import { OwnSpeech } from './own-speech.js';
import { ProviderNotes } from './provider-notes.js';
import { Renewal } from './renewal.js';
import { Utterances, type HeardUtterance } from './utterances.js';

export interface ProviderDependencies {
  readonly clock: Clock;
  readonly dial: DialSocket;
  readonly limits: AgentConnectionLimits;
  readonly newAdapter: (settings: ProviderSettings) => ProviderAdapter;
  readonly textToSpeech: Pick<TextToSpeech, 'stream' | 'samples'>;
  /** Counted up. */
  readonly counters: AgentCounters;
}

/** The caller's audio of a new connection: 2 s. */
const MAX_HELD_FRAMES = 100;
/** Deepgram ends a session that has neither audio nor a message for 10 s. */
const KEEP_ALIVE_MS = 5_000;
/** Silence is sent in pieces of half a second while the carrier sends nothing. */
const SILENT_FRAMES = 25;
const MAX_UNSENT_BYTES = 4 * 1_024 * 1_024;
const TAKEN_OVER = 'You take over this call after an interruption. Apologize shortly, and go on with the conversation.';
/** The provider is asked again for an answer that failed; */
const ASK_AGAIN_MS = 500;
/** and gets a text again that it refused while somebody spoke. */
const SEND_AGAIN_MS = 2_000;
/** Answers that failed one after the other: each second one costs the session, and the last one the agent. */
const MAX_UNANSWERED = 4;
const ANSWER = 'The connection was interrupted before you answered. Answer the caller now.';
/** The position of all that was said when a mark comes back does not matter: the queue is flushed at it. */
const END = 'end';
/** The utterance that another service than the provider speaks. */
const GREETING = 'first-sentence';

/** One call's agent at a provider of voice models: carries out what the provider's adapter says. */
export class ProviderAgent implements LegAgent {
  readonly #connection: ConnectionRunner;
  #adapter: ProviderAdapter;
  #socket: AgentSocket | null = null;
  #isAccepted = false;
  #stopDialling: () => void = () => undefined;
  #uplink: Uplink | null = null;
  #downlink: Downlink | null = null;
  #startedMs: number | null = null;
  /** The agent was asked to begin, or takes over. */
  #isBegun = false;
  /** Those of the first session. */
  #formats: ProviderAdapter['formats'];
  readonly #notes: ProviderNotes;
  readonly #ownSpeech: OwnSpeech;
  readonly #liveness: Liveness;
  readonly #budget = new MessageBudget(PROVIDER_LIMITS, () => this.#notes.warn('it sends too many messages: some are ignored', true));
  readonly #earlyAudio = new EarlyAudio();
  readonly #earlySpeech = new EarlySpeech();
  #held: Uint8Array[] = [];
  readonly #utterances = new Utterances();
  readonly #samples = new WholeSamples();
  readonly #conversation: ConversationSoFar;
  readonly #callerTurns = new CallerTurns();
  readonly #calls: FunctionCalls;
  readonly #keys: CallerKeys;
  readonly #farewell = new Farewell();
  /** Headers of the BYE; `null`: none. */
  #byeHeaders: SipHeaders | null = null;
  readonly #silence: LongSilence;
  #silentFrames = 0;
  #sentFrames = 0;
  /** For this connection: when its audio began, and when it has to be renewed. */
  #sessionMs = 0;
  readonly #renewal = new Renewal();
  #isRenewing = false;
  #cancelKeepAlive: CancelTimer | undefined;
  #hasGap = false;
  #unanswered = 0;
  /** Something was heard of the agent since an answer failed. */
  #hasAnswered = false;
  /** The next session is to answer. */
  #isAnswerDue = false;
  #cancelAgain: CancelTimer | undefined;

  constructor(
    private readonly settings: ProviderSettings,
    private readonly host: AgentHost,
    private readonly dependencies: ProviderDependencies,
    private readonly log: Log,
  ) {
    this.#notes = new ProviderNotes(settings, (note) => host.emit(note), dependencies.clock, log);
    this.#adapter = dependencies.newAdapter(settings);
    this.#formats = this.#adapter.formats;
    this.#conversation = new ConversationSoFar(settings.conversation);
    this.#calls = new FunctionCalls(settings, host, dependencies.clock, {
      give: (callId, output, continues) => this.#run(this.#adapter.toolResult(callId, output, continues)),
      inform: (text) => this.#run(this.#adapter.inform(text)),
      leave: (sipHeaders) => {
        this.#byeHeaders = sipHeaders;
        this.#farewell.begin();
      },
      say: (callId, text) => (this.#adapter.say === undefined ? this.#ownSpeech.prepare(callId, text) : this.#run(this.#adapter.say(text))),
    });
    this.#silence = new LongSilence(dependencies.limits.maxSilenceMs);
    this.#liveness = new Liveness(dependencies.limits.pingIntervalMs, () => this.#socket?.ping(0));
    this.#ownSpeech = new OwnSpeech(settings, dependencies.textToSpeech, {
      play: (format, bytes) => this.#safely(() => this.#play(GREETING, bytes, format)),
      end: () => this.#safely(() => this.#endUtterance(GREETING)),
      failed: (message, isHeard) => this.#safely(() => this.#onUnspoken(message, isHeard)),
      unspoken: (message) => this.#safely(() => this.#notes.warn(`text to speech: ${message}`)),
    });
    this.#keys = new CallerKeys(dependencies.clock, (text) => this.#safely(() => this.#run(this.#adapter.inform(text))));
    this.#connection = new ConnectionRunner(dependencies.clock, dependencies.limits, {
      perform: (work) => this.#perform(work),
      onTimer: (timer) => timer === 'connect' && this.#notes.failed('the session was not accepted in time'),
      safely: (work) => this.#safely(work),
    });
  }

  get bufferedMs(): number {
    return (this.#uplink?.bufferedMs ?? 0) + this.#held.length * FRAME_MS;
  }

  get latePackets(): number {
    return this.#uplink?.latePackets ?? 0;
  }

  connect(): Promise<void> {
    const { provider, apiKey, model } = this.settings;
    if (apiKey === null || model === '') {
      const message = `there is no ${apiKey === null ? 'key' : 'agent'} for ${provider}`;
      this.#notes.add('other', message, true);
      return Promise.reject(new AgentUnavailableError(message));
    }
    return this.#connection.connect();
  }

  start(codec: AudioCodec, nowMs: number): void {
    const { limits } = this.dependencies;
    this.#startedMs = nowMs;
    const onDropped = (milliseconds: number): void => this.#onDropped('droppedInboundMs', milliseconds);
    const uplink = new Uplink(this.#formats.input, codec, limits.maxUnsentAudioMs, { onSamples: () => undefined, onDropped });
    this.#uplink = uplink;
    this.#downlink = new Downlink(this.#formats.output, codec, limits.maxQueuedSpeechMs);
    uplink.start(nowMs);
    uplink.connect({ socket: this.#wire(), writer: null });
    this.#connection.step({ type: 'started' });
    for (const { utterance, bytes, format } of this.#earlySpeech.take()) {
      if (bytes === null) this.#endUtterance(utterance);
      else this.#play(utterance, bytes, format);
    }
    this.#earlyAudio.giveTo(uplink, nowMs);
    this.#keys.start();
  }

  digit(event: number): void {
    const digit = digitOfEvent(event);
    if (digit === undefined) return;
    this.#silence.caller();
    this.#keys.press(digit);
  }

  hear(packet: AudioPacket): void {
    const { codec, buffer, offset, lengthBytes, nowMs } = packet;
    if (this.#callerTurns.heard(codec, buffer, offset, lengthBytes, nowMs)) this.#silence.loud(nowMs);
    (this.#uplink ?? this.#earlyAudio).hear(packet);
  }

  get speech(): Speech {
    return this.#downlink?.queue.speech ?? 'none';
  }

  fill(payload: Uint8Array, nowMs: number): void {
    const queue = this.#downlink?.queue;
    if (queue === undefined) return;
    if (queue.isEmpty) this.#sayForTool();
    const isSpeaking = queue.pull(payload);
    if (isSpeaking) this.#callerTurns.answered(nowMs);
    this.#watchSilence(isSpeaking);
    queue.takePlayedMarks();
    this.#heard(this.#utterances.played(queue.playedBytes, this.#elapsedMs));
    if (this.#utterances.hasUnwritten) this.#miss('the provider sent no text of what the agent said');
    this.#silentFrames = 0;
    this.#takeLeave(1, queue.isEmpty);
    this.#tick(nowMs, 1);
  }

  pass(nowMs: number, frames: number): void {
    const before = this.#sentFrames;
    // A caller on hold hears no farewell.
    this.#takeLeave(frames, true);
    this.#tick(nowMs, frames);
    this.#silentFrames += Math.max(0, frames - (this.#sentFrames - before));
    if (this.#silentFrames < SILENT_FRAMES) return;
    for (; this.#silentFrames > 0; this.#silentFrames -= 1) this.#sendAudio(silenceOf(this.#formats.input));
  }

  notify(answer: AgentAnswer): void {
    this.#calls.notify(answer);
  }

  close(): void {
    this.#cancelAgain?.();
    this.#keys.close();
    this.#ownSpeech.stop();
    const queue = this.#downlink?.queue;
    if (queue !== undefined) this.#heard(this.#utterances.cut(queue.playedBytes, this.#elapsedMs).heard);
    this.#connection.close();
  }

  #tick(nowMs: number, frames: number): void {
    this.#uplink?.tick(nowMs);
    this.#budget.refill(frames);
    if (this.#socket === null || !this.#isAccepted) return;
    if (this.#renewal.isDue(nowMs, () => this.#isQuiet)) this.#renew();
    if (this.#liveness.pass(frames * FRAME_MS, this.#adapter.silentAfterMs)) return;
    this.#notes.failed('the provider answered no ping');
    this.#connection.step({ type: 'silent' });
  }

  #watchSilence(isSpeaking: boolean): void {
    const step = this.#silence.frame(!isSpeaking && this.#calls.isEmpty && this.#isAccepted && !this.#farewell.isBegun);
    if (step === 'ask') this.#run(this.#adapter.inform('Nobody has spoken for a while. Ask whether the caller is still there.'));
    if (step !== 'leave') return;
    this.#farewell.begin();
    this.#notes.add('other', 'nobody spoke, also not after a question: the agent hangs up');
  }

  get #isQuiet(): boolean {
    return this.#downlink?.queue.isEmpty === true && !this.#adapter.isResponding && this.#calls.isEmpty;
  }

  #renew(): void {
    this.#isRenewing = true;
    this.#notes.add('other', 'the session is renewed, because the provider limits its duration');
    this.#connection.step({ type: 'silent' });
  }

  #takeLeave(frames: number, isQuiet: boolean): void {
    if (!this.#farewell.pass(frames, isQuiet && !this.#adapter.isResponding)) return;
    this.host.emit({ type: 'agent-hangup', ...(this.#byeHeaders === null ? {} : { sipHeaders: this.#byeHeaders }) });
  }

  #perform(work: ConnectionWork): void {
    switch (work.do) {
      case 'dial':
        return this.#dial();
      case 'announce':
        return this.#onTalking(work.reconnects);
      case 'say-stop':
        this.#socket?.close();
        return this.#leaveSocket();
      case 'abandon':
        this.#stopDialling();
        if (this.#startedMs === null || this.#isRenewing) this.#socket?.close();
        else this.#socket?.terminate();
        return this.#leaveSocket();
      case 'away':
        return this.host.emit({ type: 'agent-away' });
      case 'hang-up':
      case 'lost':
        this.log.warn({}, 'agent.lost');
        return this.host.emit({ type: 'agent-lost' });
      default:
        assertNever(work);
    }
  }

  #dial(): void {
    const { dial, newAdapter } = this.dependencies;
    this.#notes.dialled();
    const resumption = this.#isBegun ? this.#adapter.resumption : null;
    this.#adapter = newAdapter(this.settings);
    this.#isAccepted = false;
    this.#stopDialling = dial(this.#adapter.target, {
      onOpen: (socket) =>
        this.#safely(() => {
          this.#socket = socket;
          this.#liveness.seen();
          this.#run(this.#adapter.open([...this.#conversation.said, ...this.#utterances.underWay], resumption));
        }),
      onFailed: (message) => this.#safely(() => this.#onFailed(`${message}${causeOf(/HTTP (\d{3})$/.exec(message)?.[1] ?? '')}`)),
      onText: (text) => this.#receive(text),
      onBinary: (bytes) => this.#receive(bytes),
      onPong: () => this.#liveness.seen(),
      onClosed: (code, reason = '') => this.#safely(() => this.#onClosed(code, reason)),
    });
  }

  #receive(message: WireMessage): void {
    this.#liveness.seen();
    if (!this.#budget.take(message.length)) return;
    this.#safely(() => this.#run(this.#adapter.receive(message)));
  }

  /** Until the ACK there is no audio to send. */
  #keepAlive(): void {
    const { keepAlive } = this.#adapter;
    if (keepAlive === undefined || this.#startedMs !== null) return;
    this.#cancelKeepAlive = this.dependencies.clock.setTimer(KEEP_ALIVE_MS, () => {
      if (this.#startedMs === null) this.#send(keepAlive);
      this.#keepAlive();
    });
  }

  #onAccepted(): void {
    const { clock } = this.dependencies;
    this.#isAccepted = true;
    if (this.#startedMs === null) this.#formats = this.#adapter.formats;
    this.#keepAlive();
    this.#isRenewing = false;
    this.#sessionMs = clock.nowMs();
    this.#renewal.endsIn(this.#adapter.sessionMs, clock.nowMs());
    this.#notes.accepted();
    this.#connection.step({ type: 'opened' });
    // While the 200 and its ACK are under way the model makes its first words.
    const isAnswerDue = this.#isAnswerDue;
    this.#isAnswerDue = false;
    if (this.#isBegun) return isAnswerDue ? this.#run(this.#adapter.inform(ANSWER)) : undefined;
    this.#isBegun = true;
    if (this.#conversation.said.length > 0) this.#run(this.#adapter.inform(TAKEN_OVER));
    else if (!this.settings.waitsForGreeting) this.#begin();
  }

  #begin(): void {
    const { firstSentence: text } = this.settings;
    if (text === null || this.#adapter.spoke === undefined || !this.#ownSpeech.begin(text)) return this.#run(this.#adapter.begin());
    this.#utterances.said(GREETING, text, true);
  }

  #onUnspoken(message: string, isHeard: boolean): void {
    this.#notes.warn(`text to speech: ${message}`);
    if (isHeard) return this.#endUtterance(GREETING);
    if (this.#isAccepted) this.#run(this.#adapter.begin());
    else this.#isBegun = false;
  }

  #onTalking(reconnects: number): void {
    if (reconnects > 0) {
      this.dependencies.counters.reconnects += 1;
      this.log.info({ reconnects }, 'agent.reconnected');
    }
    this.#sessionMs = this.dependencies.clock.nowMs();
    for (const frame of this.#held.splice(0)) this.#sendAudio(frame);
  }

  /** The connection was not made, or the session was not accepted. */
  #onFailed(message: string): void {
    this.log.warn({ error: message }, 'agent.not_connected');
    this.#notes.failed(message);
    this.#socket?.close();
    this.#leaveSocket();
    this.#connection.step({ type: 'failed', message });
  }

  #onClosed(code: number, reason: string): void {
    const { message, isFinal, isHangUp = false } = this.#adapter.closed(code, reason);
    const wasAccepted = this.#isAccepted;
    this.log.info({ code }, 'agent.closed');
    if (!wasAccepted) return this.#onFailed(message);
    if (isHangUp && this.#startedMs !== null) {
      this.#notes.closed(`the agent ended the call${reason === '' ? '' : ` (${shownReason(reason)})`}`, false);
      this.#farewell.begin();
      return this.#leaveSocket(true);
    }
    this.#end(message, isFinal);
  }

  /** The session is over, and the call is not. */
  #end(message: string, isFinal: boolean): void {
    const next = isFinal ? '' : '; another session begins, with the conversation so far';
    this.#notes.closed(`${message}${next}`, true);
    this.#socket?.close();
    this.#leaveSocket();
    if (isFinal) this.host.emit({ type: 'agent-lost' });
    else this.#connection.step({ type: 'closed', code: 1_006 });
  }

  /** @param isComplete the agent had said all */
  #leaveSocket(isComplete = false): void {
    this.#socket = null;
    this.#cancelKeepAlive?.();
    this.#cancelAgain?.();
    this.#isAccepted = false;
    this.#renewal.clear();
    // Another session does not know of them.
    this.#calls.clear();
    this.#utterances.sessionEnded(this.#downlink?.queue.playedBytes ?? 0, isComplete, GREETING);
    this.#samples.reset();
    this.#earlySpeech.sessionEnded(GREETING);
    const isHeard = this.#ownSpeech.hasGreeting || (this.#downlink?.queue.pushedBytes ?? 0) > 0;
    // Nothing of the agent came to the caller: a session that does not go on with this one begins anew.
    this.#isBegun &&= isHeard || (this.#startedMs !== null && this.#adapter.resumption !== null);
  }

  #run(actions: readonly ProviderAction[]): void {
    for (const action of actions) this.#act(action);
  }

  #act(action: ProviderAction): void {
    switch (action.do) {
      case 'send':
        return this.#send(action.message);
      case 'accepted':
        return this.#onAccepted();
      case 'fail':
        return this.#isAccepted ? this.#end(action.message, action.isFinal) : this.#onFailed(action.message);
      case 'warn':
        return this.#notes.warn(action.message, action.isFailure);
      case 'unanswered':
        return this.#onUnanswered(action.message);
      case 'refused':
        this.#notes.warn(action.message, true);
        return this.#again(SEND_AGAIN_MS);
      case 'play':
        this.#hasAnswered = true;
        return this.#play(action.utterance, action.bytes);
      case 'end-utterance':
        return this.#endUtterance(action.utterance);
      case 'interrupt':
        return this.#interrupt();
      case 'said':
        return this.#utterances.said(action.utterance, action.text, action.isLast);
      case 'corrected':
        return this.#ask({ type: 'transcript', entries: [], correction: action.text });
      case 'heard': {
        this.#silence.caller();
        if (this.#hasAnswered) this.#unanswered = 0;
        const nowMs = this.dependencies.clock.nowMs();
        const spokenMs = action.audioMs === null ? (this.#callerTurns.written(nowMs) ?? nowMs) : this.#sessionMs + action.audioMs;
        const atMs = spokenMs - (this.#startedMs ?? this.#sessionMs);
        return this.#record([{ speaker: 'caller', text: action.text, at_ms: Math.max(0, Math.round(atMs)) }]);
      }
      case 'not-heard':
        this.#miss(`the provider did not transcribe the caller: ${action.message}`);
        return this.#notes.warn(`not transcribed: ${action.message}`);
      case 'caller-speech':
        return this.#silence.caller(action.isSpeaking);
      case 'run-tool':
        return this.#calls.run(action.callId, action.name, action.input, action.speech);
      case 'drop-tools':
        return this.#calls.drop(action.callIds);
      case 'used':
        return this.host.emit({ type: 'provider-tokens', tokens: action.tokens });
      case 'renew':
        return this.#renewal.endsIn(action.withinMs, this.dependencies.clock.nowMs());
      default:
        assertNever(action);
    }
  }

  #onUnanswered(message: string): void {
    this.#unanswered += 1;
    this.#hasAnswered = false;
    if (this.#unanswered % 2 === 0) {
      this.#isAnswerDue = true;
      return this.#end(message, this.#unanswered >= MAX_UNANSWERED);
    }
    this.#notes.warn(message, true);
    this.#again(ASK_AGAIN_MS);
  }

  #again(delayMs: number): void {
    this.#cancelAgain?.();
    this.#cancelAgain = this.dependencies.clock.setTimer(delayMs, () => this.#safely(() => this.#run(this.#adapter.again?.() ?? [])));
  }

  #send(message: WireMessage): void {
    const socket = this.#socket;
    if (socket === null) return;
    if (typeof message === 'string') socket.sendText(message);
    else socket.sendBinary(message);
    if (socket.unsentBytes <= MAX_UNSENT_BYTES) return;
    this.#notes.failed('the provider does not read');
    this.#connection.step({ type: 'silent' });
  }

  /** What the uplink takes for a bot's socket. */
  #wire(): Pick<AgentSocket, 'unsentBytes' | 'sendUtf8' | 'sendBinary'> {
    const unsentBytes = (): number => this.#socket?.unsentBytes ?? 0;
    return {
      get unsentBytes() {
        return unsentBytes();
      },
      sendUtf8: () => undefined,
      sendBinary: (bytes) => this.#sendAudio(bytes),
    };
  }

  #sendAudio(bytes: Uint8Array): void {
    this.#sentFrames += 1;
    // Providers acknowledge no audio: what the socket has taken counts as read.
    this.#uplink?.acknowledge(this.#uplink.sentFrames);
    if (this.#isAccepted) return this.#send(this.#adapter.audio(bytes));
    this.#held.push(bytes.slice());
    if (this.#held.length <= MAX_HELD_FRAMES) return;
    this.#held.shift();
    this.#miss('audio of the caller was lost while the connection was renewed');
  }

  /** @param format that of the provider's audio if it is left out */
  #play(utterance: string, bytes: Uint8Array, format?: WireFormat): void {
    const downlink = this.#downlink;
    if (downlink === null) return this.#earlySpeech.add({ utterance, bytes, format });
    this.#queue(downlink, utterance, this.#samples.of(format ?? this.#adapter.formats.output, bytes), format);
    if (this.host.speak()) downlink.queue.cameInTime();
  }

  #queue(downlink: Downlink, utterance: string, bytes: Uint8Array, format?: WireFormat): void {
    const from = downlink.queue.pushedBytes;
    const lostMs = downlink.sendBinary(bytes, format);
    this.#utterances.queued(utterance, from, downlink.queue.pushedBytes);
    if (lostMs > 0) this.#onDropped('droppedOutboundMs', lostMs);
  }

  /** Nobody speaks: what a tool that still runs has said. The provider's audio may go on after it, within a sample. */
  #sayForTool(): void {
    const speech = this.#ownSpeech.take((callId) => this.#calls.isRunning(callId));
    if (speech === undefined || this.#downlink === null) return;
    const utterance = `tool-${speech.callId}`;
    this.#utterances.said(utterance, speech.text, true);
    this.#queue(this.#downlink, utterance, speech.bytes, 'pcm16-8000');
    this.#utterances.ended(utterance);
    this.#downlink.queue.mark(END);
  }

  #endUtterance(utterance: string): void {
    if (this.#downlink === null) return this.#earlySpeech.add({ utterance, bytes: null });
    this.#utterances.ended(utterance);
    this.#samples.reset();
    // It may have been heard already.
    this.#heard(this.#utterances.played(this.#downlink.queue.playedBytes, this.#elapsedMs));
    // The last part of a frame is not waited for.
    this.#downlink.queue.mark(END);
  }

  #interrupt(): void {
    this.#ownSpeech.stop();
    this.#earlySpeech.take();
    const queue = this.#downlink?.queue;
    if (queue === undefined) return;
    const { played, heard } = this.#utterances.cut(queue.playedBytes, this.#elapsedMs);
    queue.clear();
    this.#samples.reset();
    this.#heard(heard);
    if (this.#utterances.hasUnwritten) this.#miss('the provider sent no text of what the agent said');
    this.#run(this.#adapter.interrupted(played.filter(({ utterance }) => utterance !== GREETING)));
  }

  #heard(utterances: readonly HeardUtterance[]): void {
    for (const { id, entry } of utterances) if (id === GREETING) this.#run(this.#adapter.spoke?.(entry.text) ?? []);
    this.#record(utterances.map(({ entry }) => entry));
  }

  #record(entries: readonly TranscriptEntry[]): void {
    if (entries.length === 0) return;
    this.#conversation.add(entries);
    this.#ask({ type: 'transcript', entries, isByTime: true });
  }

  #miss(gap: string): void {
    if (this.#hasGap) return;
    this.#hasGap = true;
    this.#ask({ type: 'transcript', entries: [], gap });
  }

  #ask(request: AgentRequest): void {
    this.host.emit({ type: 'agent-request', request });
  }

  get #elapsedMs(): number {
    return this.#startedMs === null ? 0 : this.dependencies.clock.nowMs() - this.#startedMs;
  }

  #onDropped(counter: 'droppedInboundMs' | 'droppedOutboundMs', milliseconds: number): void {
    this.dependencies.counters[counter] += milliseconds;
    this.log.debug({ counter, milliseconds }, 'agent.audio.dropped');
  }

  /** What a socket or a timer calls: a bug of ours ends this call, and no other one of the thread. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.log.error({ error }, 'agent.bug');
      this.host.emit({ type: 'agent-lost' });
    }
  }
}
