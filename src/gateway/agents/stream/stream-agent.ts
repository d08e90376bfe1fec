import type { AudioPacket } from '../../../rtp/audio-packet.js';
import {
  NOT_IN_TURBO,
  type AgentAnswer,
  type AgentConnectionLimits,
  type AgentDescription,
  type AgentRequest,
  type StreamSettings,
} from '../../model/agent.js';
import type { AgentNote } from '../../model/media.js';
import { headerRefusal, type SipHeaders, unlistedHeader } from '../../model/passed-headers.js';
import type { FromAgentMessage } from '../../../agent-protocol/agent-messages.js';
import { type AudioCodec, FRAME_MS } from '../../../rtp/codec/g711.js';
import { assertNever } from '../../../lib/result.js';
import type { Clock } from '../../../lib/clock.js';
import type { Log, LogFields } from '../../../lib/log.js';
import { MAX_END_OF_SPEECH_MS, MIN_END_OF_SPEECH_MS, VoiceActivity, type VoiceDetector } from '../../media/voice-activity.js';
import { digitOfEvent, eventOfDigit } from '../../../rtp/dtmf/telephone-event.js';
import type { AgentCounters, AgentHost, LegAgent, Speech } from '../../media/leg-agent.js';
import { ConnectionRunner, type ConnectionWork } from './connection-runner.js';
import { Downlink } from './downlink.js';
import { EarlyAudio } from './early-audio.js';
import { EarlyMessages } from './early-messages.js';
import { APPLICATION_LIMITS, MessageBudget } from '../message-budget.js';
import { DONE_CODES } from './frames.js';
import { MediaReader } from './media-message.js';
import { beginsAsJson, isJson, MessageWriter, readMessage } from './messages.js';
import type { AgentSocket, DialAgent } from './socket.js';
import { Uplink } from './uplink.js';

export interface StreamDependencies {
  readonly clock: Clock;
  readonly dial: DialAgent;
  readonly limits: AgentConnectionLimits;
  /** `MZ` and 32 hex digits, another one each time. */
  readonly newStreamSid: () => string;
  readonly openVoiceDetector: () => VoiceDetector;
  /** Counted up. */
  readonly counters: AgentCounters;
}

/** Explanations of close codes (RFC 6455 §7.4.1). */
const CLOSE_CODES: Readonly<Record<number, string>> = {
  1000: ' (done)',
  1001: ' (going away)',
  1005: ' (no code)',
  1006: ' (connection lost)',
  1008: ' (policy)',
  1011: ' (error of the agent)',
  1012: ' (restart)',
  1013: ' (try again later)',
};
const DEFAULT_DIGIT_MS = 160;
/** Marks that wait are kept for the next process twice a second at most: some bots send one with each piece of audio. */
const MARKS_KEPT_FRAMES = 25;
/** What is still in buffers on the way is heard too before an agent's hang-up takes effect. */
const FAREWELL_FRAMES = 10;
/** Checks of how far an agent has read, per `agents.max_unsent_audio_ms`. */
const PINGS_PER_UNSENT = 8;
/** Messages that wait for a connection: as many as marks may. */
const MAX_OWED = 10_000;
/** Audio that an agent does not read is dropped long before; answers to what it sends are not, and end here. */
const MAX_UNSENT_BYTES = 4 * 1_024 * 1_024;
/** Warnings of one kind a call. */
const MAX_WARNINGS = 5;

/** One call's agent behind a WebSocket: carries out what `stepConnection` says, and moves audio and messages between leg and socket. */
export class StreamAgent implements LegAgent {
  readonly #connection: ConnectionRunner;
  #stopDialling: () => void = () => undefined;
  #socket: AgentSocket | null = null;
  #writer: MessageWriter | null = null;
  #uplink: Uplink | null = null;
  #downlink: Downlink | null = null;
  #startedMs: number | null = null;
  #brokenMs = 0;
  /** For the next stream. */
  #owed: ((writer: MessageWriter) => string)[] = [];
  #framesSincePing = 0;
  /** Frames since the connection was looked at last. */
  #framesSinceLook = 0;
  /** No pong came since the last ping; */
  #isPinged = false;
  /** nor since the last look. */
  #isPongDue = false;
  #farewellFrames: number | null = null;
  #byeHeaders: SipHeaders = {};
  #wantsDrops = false;
  #wantsSpeechEvents = false;
  #wantsBargeIn = false;
  #voice: VoiceActivity | null = null;
  readonly #earlyAudio = new EarlyAudio();
  readonly #earlyMessages = new EarlyMessages();
  /** Notes that a call gets once. */
  readonly #noted = new Set<string>();
  readonly #media = new MediaReader();
  #warnings = 0;
  #ignored = 0;
  #dialledMs = 0;
  readonly #budget = new MessageBudget(APPLICATION_LIMITS, () => this.#warn({}, 'agent.messages.too_many'));
  #endOfSpeechMs: number;
  /** Marks came or went since they were kept. */
  #hasNewMarks = false;
  #framesSinceMarks = MARKS_KEPT_FRAMES;

  constructor(
    private settings: StreamSettings,
    private readonly host: AgentHost,
    private readonly dependencies: StreamDependencies,
    private readonly log: Log,
  ) {
    this.#connection = new ConnectionRunner(dependencies.clock, dependencies.limits, {
      perform: (work) => this.#perform(work),
      onTimer: (timer) => timer === 'connect' && this.#noteFailure('no answer', this.#dialledMs),
      safely: (work) => this.#safely(work),
    });
    this.#endOfSpeechMs = Math.min(MAX_END_OF_SPEECH_MS, Math.max(MIN_END_OF_SPEECH_MS, settings.endOfSpeechMs));
  }

  get bufferedMs(): number {
    return this.#uplink?.bufferedMs ?? 0;
  }

  get latePackets(): number {
    return this.#uplink?.latePackets ?? 0;
  }

  connect(): Promise<void> {
    return this.#connection.connect();
  }

  describe(description: AgentDescription): void {
    if (description.kind === 'stream') this.settings = description;
  }

  start(codec: AudioCodec, nowMs: number): void {
    const { format, marks = [] } = this.settings;
    for (const name of marks) this.#owed.push((writer) => writer.mark(name));
    this.#hasNewMarks = marks.length > 0;
    const { limits } = this.dependencies;
    this.#startedMs = nowMs;
    this.#uplink = new Uplink(format, codec, limits.maxUnsentAudioMs, {
      onSamples: (samples, timestampMs) => this.#listen(samples, timestampMs),
      onDropped: (milliseconds) => this.#onDropped('inbound', milliseconds),
    });
    this.#downlink = new Downlink(format, codec, limits.maxQueuedSpeechMs);
    this.#uplink.start(nowMs);
    this.#connection.step({ type: 'started' });
    for (const work of this.#earlyMessages.take()) this.#safely(work);
    this.#earlyAudio.giveTo(this.#uplink, nowMs);
  }

  digit(event: number): void {
    const digit = digitOfEvent(event);
    if (digit !== undefined) this.#sendSurely((writer) => writer.dtmf(digit));
  }

  hear(packet: AudioPacket): void {
    (this.#uplink ?? this.#earlyAudio).hear(packet);
  }

  fill(payload: Uint8Array, nowMs: number): void {
    const downlink = this.#downlink;
    if (downlink === null) return;
    const { queue } = downlink;
    queue.pull(payload);
    this.#sendMarks(queue.takePlayedMarks());
    if (this.#farewellFrames !== null && queue.isEmpty) this.#takeLeave(this.#farewellFrames, 1);
    this.#tick(nowMs, 1);
  }

  get speech(): Speech {
    return this.#downlink?.queue.speech ?? 'none';
  }

  pass(nowMs: number, frames: number): void {
    // A caller on hold hears no farewell.
    if (this.#farewellFrames !== null) this.#takeLeave(this.#farewellFrames, frames);
    this.#tick(nowMs, frames);
  }

  notify(answer: AgentAnswer): void {
    this.#sendSurely((writer) => writer.answer(answer));
  }

  close(): void {
    this.#connection.close();
    this.#voice?.close();
    this.#voice = null;
  }

  #tick(nowMs: number, frames: number): void {
    this.#uplink?.tick(nowMs);
    this.#budget.refill(frames);
    this.#keepMarks(frames);
    if (this.#socket === null) return;
    const { pingIntervalMs, maxUnsentAudioMs } = this.dependencies.limits;
    this.#framesSincePing += frames;
    this.#framesSinceLook += frames;
    const hasUnread = this.#uplink?.hasUnread === true;
    if (this.#framesSincePing * FRAME_MS >= Math.min(pingIntervalMs, hasUnread ? maxUnsentAudioMs / PINGS_PER_UNSENT : Infinity)) {
      this.#framesSincePing = 0;
      this.#isPinged = true;
      this.#socket.ping(this.#uplink?.sentFrames ?? 0);
    }
    if (this.#framesSinceLook * FRAME_MS < pingIntervalMs) return;
    this.#framesSinceLook = 0;
    if (this.#isPongDue) {
      this.#note('other', `the agent answered no ping for ${String(pingIntervalMs)} ms`, true);
      return this.#connection.step({ type: 'silent' });
    }
    this.#isPongDue = this.#isPinged;
  }

  #keepMarks(frames: number): void {
    this.#framesSinceMarks += frames;
    if (!this.#hasNewMarks || this.#framesSinceMarks < MARKS_KEPT_FRAMES) return;
    this.#hasNewMarks = false;
    this.#framesSinceMarks = 0;
    this.host.emit({ type: 'agent-marks', names: this.#downlink?.queue.waitingMarks ?? [] });
  }

  /** @param frames that were sent before the ping that it answers */
  #onPong(frames: number): void {
    this.#isPinged = false;
    this.#isPongDue = false;
    if (frames > 0) this.#uplink?.acknowledge(frames);
  }

  #hangUp({ after, sip_headers: headers = {} }: NonNullable<Extract<FromAgentMessage, { event: 'hangup' }>['hangup']> = {}): void {
    const unlisted = unlistedHeader(headers, this.settings.headersFromAgent ?? []);
    if (unlisted !== null) {
      const { code, message } = headerRefusal(unlisted);
      return this.#refuse('hangup', null, code, message);
    }
    this.#byeHeaders = headers;
    if (after === 'now') return this.#leave();
    this.#farewellFrames ??= FAREWELL_FRAMES;
  }

  #leave(): void {
    this.host.emit({ type: 'agent-hangup', ...(Object.keys(this.#byeHeaders).length === 0 ? {} : { sipHeaders: this.#byeHeaders }) });
  }

  #takeLeave(framesLeft: number, frames: number): void {
    this.#farewellFrames = framesLeft - frames;
    if (this.#farewellFrames >= 0) return;
    this.#farewellFrames = null;
    this.#leave();
  }

  #perform(effect: ConnectionWork): void {
    switch (effect.do) {
      case 'dial':
        return this.#dial();
      case 'announce':
        return this.#announce(effect.reconnects);
      case 'say-stop':
        this.#send((writer) => writer.stop());
        this.#socket?.close();
        return this.#forgetSocket();
      case 'abandon':
        this.#stopDialling();
        if (this.#startedMs === null) this.#socket?.close();
        else this.#socket?.terminate();
        return this.#forgetSocket();
      case 'hang-up':
        return this.host.emit({ type: 'agent-hangup' });
      case 'away':
        return this.host.emit({ type: 'agent-away' });
      case 'lost':
        this.log.warn({}, 'agent.lost');
        return this.host.emit({ type: 'agent-lost' });
      default:
        assertNever(effect);
    }
  }

  #dial(): void {
    const { clock, dial } = this.dependencies;
    const startedMs = clock.nowMs();
    this.#dialledMs = startedMs;
    this.#stopDialling = dial(this.settings, {
      onOpen: (socket) =>
        this.#safely(() => {
          this.#socket = socket;
          this.#isPinged = false;
          this.#isPongDue = false;
          this.#framesSincePing = 0;
          this.#framesSinceLook = 0;
          const tookMs = Math.round(clock.nowMs() - startedMs);
          this.log.debug({ took_ms: tookMs }, 'agent.connected');
          this.#note('other', `connected to ${shownUrl(this.settings.url)} after ${String(tookMs)} ms`);
          this.#connection.step({ type: 'opened' });
        }),
      onFailed: (message) =>
        this.#safely(() => {
          this.log.warn({ error: message }, 'agent.not_connected');
          this.#noteFailure(message, startedMs);
          this.#connection.step({ type: 'failed', message });
        }),
      takeText: (buffer, start, end) => this.#takeMedia(buffer, start, end),
      onText: (text) => this.#safely(() => this.#onText(text)),
      onBinary: (bytes) => this.#safely(() => this.#onBinary(bytes)),
      onPong: (frames) => this.#safely(() => this.#onPong(frames)),
      onClosed: (code) => this.#safely(() => this.#onClosed(code)),
    });
  }

  /** What a socket or a timer calls: a bug of ours ends this call, and no other one of the thread. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.log.error({ error: error }, 'agent.bug');
      this.host.emit({ type: 'agent-lost' });
    }
  }

  #onClosed(code: number): void {
    this.#forgetSocket();
    this.log.info({ code }, 'agent.closed');
    this.#note('closed', `the agent's connection was closed with ${String(code)}${CLOSE_CODES[code] ?? ''}`, !DONE_CODES.has(code));
    this.#connection.step({ type: 'closed', code });
  }

  #forgetSocket(): void {
    this.#socket = null;
    this.#writer = null;
    // The bot's next connection begins anew.
    this.#earlyMessages.take();
    this.#brokenMs = this.dependencies.clock.nowMs();
    this.#uplink?.connect(null);
  }

  #announce(reconnects: number): void {
    const socket = this.#socket;
    const uplink = this.#uplink;
    if (socket === null || uplink === null) return;
    const streamSid = this.dependencies.newStreamSid();
    const writer = new MessageWriter(streamSid, this.settings);
    this.#writer = writer;
    socket.sendText(writer.connected());
    const { customParameters } = this.settings;
    // An earlier process of the gateway had the streams before.
    const streams = Number(customParameters['reconnects'] ?? 0) + reconnects;
    const { clock } = this.dependencies;
    const { unheardSinceMs = null } = this.settings;
    const awayMs = Math.round(reconnects > 0 ? clock.nowMs() - this.#brokenMs : clock.wallMs() - (unheardSinceMs ?? clock.wallMs()));
    const missed = reconnects === 0 && unheardSinceMs === null ? {} : { missed_ms: String(Math.max(0, awayMs)) };
    socket.sendText(writer.start(streams === 0 ? customParameters : { ...customParameters, reconnects: String(streams), ...missed }));
    uplink.connect({ socket, writer });
    for (const write of this.#owed.splice(0)) this.#send(write);
    this.host.emit({ type: 'stream-started', streamSid });
    if (reconnects === 0) return;
    this.dependencies.counters.reconnects += 1;
    this.log.info({ reconnects, away_ms: awayMs }, 'agent.reconnected');
    this.#note('other', `connected again, time ${String(reconnects)}, after ${String(awayMs)} ms without`);
  }

  /** Without a stream it waits for the next one: marks, keys and answers are few, and a bot waits for them. */
  #sendSurely(write: (writer: MessageWriter) => string): void {
    if (this.#writer !== null) this.#send(write);
    else if (this.#owed.length < MAX_OWED) this.#owed.push(write);
  }

  #send(write: (writer: MessageWriter) => string): void {
    const socket = this.#socket;
    if (socket === null || this.#writer === null) return;
    socket.sendText(write(this.#writer));
    if (socket.unsentBytes <= MAX_UNSENT_BYTES) return;
    this.#warn({ unsent_bytes: socket.unsentBytes }, 'agent.does_not_read');
    this.#connection.step({ type: 'silent' });
  }

  #sendMarks(names: readonly string[] | null): void {
    if (names === null) return;
    this.#hasNewMarks = true;
    for (const name of names) this.#sendSurely((writer) => writer.mark(name));
  }

  /** Some libraries send JSON in binary messages. */
  #onBinary(bytes: Uint8Array): void {
    const hasAudio = this.settings.format !== 'twilio';
    const mayBeText = beginsAsJson(bytes);
    if (!this.#budget.take(mayBeText ? bytes.length : 0)) return;
    if (mayBeText && (!hasAudio || isJson(bytes))) return this.#onMessageText(Buffer.from(bytes).toString());
    if (hasAudio) return this.#atStart(bytes.length, () => this.#play((downlink) => downlink.sendBinary(bytes)));
    this.#noteOnce('ignored', 'binary messages were ignored: in the format twilio all messages are JSON');
  }

  #takeMedia(buffer: Uint8Array, start: number, end: number): boolean {
    const audio = this.#budget.hasRoom ? this.#media.read(buffer, start, end) : null;
    if (audio === null) return false;
    this.#budget.take();
    this.#safely(() => this.#atStart(audio.length, () => this.#play((downlink) => downlink.sendBinary(audio, 'pcmu'))));
    return true;
  }

  /** Before `start` an agent knows no stream to speak on, and the call nobody who listens: its messages wait. */
  #atStart(bytes: number, work: () => void): void {
    if (this.#startedMs !== null) return work();
    this.#noteOnce('other', 'messages that came before start take effect behind it');
    if (!this.#earlyMessages.add(bytes, work)) this.#noteOnce('ignored', 'messages were ignored: too many came before start');
  }

  #onText(text: string): void {
    if (this.#budget.take(text.length)) this.#onMessageText(text);
  }

  #onMessageText(text: string): void {
    const read = readMessage(text);
    if (read.ok && read.message.event === 'media') this.#media.learn(text, read.message.media.payload);
    if (read.ok) return this.#atStart(text.length, () => this.#onMessage(read.message));
    this.#warn({ event: read.event, error: read.message }, 'agent.message.ignored');
    this.#ignored += 1;
    if (this.#ignored <= MAX_WARNINGS)
      this.#note(
        'ignored',
        `message ignored: ${read.event}: ${read.message}${this.#ignored === MAX_WARNINGS ? '; further warnings are not sent' : ''}`,
      );
    if (read.isKnown) this.#refuse(read.event, null, 'BAD_MESSAGE', read.message);
  }

  #onMessage(message: FromAgentMessage): void {
    const downlink = this.#downlink;
    if (downlink === null) return;
    switch (message.event) {
      case 'media':
        return this.#play(() => downlink.sendBinary(Buffer.from(message.media.payload, 'base64'), 'pcmu'));
      case 'mark':
        return this.#onMark(downlink, message.mark.name);
      case 'clear':
        return this.#sendMarks(downlink.queue.clear());
      case 'configure':
        return this.#configure(message.configure);
      case 'hangup':
        return this.#hangUp(message.hangup);
      case 'dtmf':
        return this.#sendDtmf(message.dtmf.digits, message.dtmf.duration_ms ?? DEFAULT_DIGIT_MS);
      case 'do_not_call':
        return this.#ask({ type: 'do_not_call', requestId: message.do_not_call?.id ?? null });
      case 'transfer':
        return this.#ask(transferOf(message.transfer));
      case 'transcript': {
        const at_ms = this.#elapsedMs;
        return this.#ask({
          type: 'transcript',
          entries: message.transcript.entries.map((entry) => ({ ...entry, at_ms: entry.at_ms ?? at_ms })),
        });
      }
      case 'analysis':
        return this.#ask({ type: 'analysis', requestId: message.analysis.id ?? null, analysis: message.analysis.data });
      case 'tool':
        return this.#ask({ type: 'tool', requestId: message.tool.id, name: message.tool.name, input: message.tool.input });
      default:
        assertNever(message);
    }
  }

  #onMark({ queue }: Downlink, name: string): void {
    this.#hasNewMarks = true;
    const early = queue.mark(name);
    if (early.length > 0) this.#noteOnce('other', 'too many marks wait: the oldest come back before their audio was heard');
    this.#sendMarks(early);
    this.#sendMarks(queue.takePlayedMarks());
  }

  get #elapsedMs(): number {
    return Math.round(this.dependencies.clock.nowMs() - (this.#startedMs ?? 0));
  }

  #ask(request: AgentRequest): void {
    this.#budget.passOn();
    this.host.emit({ type: 'agent-request', request });
  }

  #configure(wanted: Extract<FromAgentMessage, { event: 'configure' }>['configure']): void {
    this.#wantsDrops = wanted.drop_events ?? this.#wantsDrops;
    this.#wantsSpeechEvents = wanted.speech_events ?? this.#wantsSpeechEvents;
    this.#wantsBargeIn = wanted.barge_in ?? this.#wantsBargeIn;
    this.#endOfSpeechMs = wanted.end_of_speech_ms ?? this.#endOfSpeechMs;
    this.#voice?.close();
    const isWanted = this.#wantsSpeechEvents || this.#wantsBargeIn;
    this.#voice = isWanted ? new VoiceActivity(this.dependencies.openVoiceDetector(), this.#endOfSpeechMs) : null;
    if (this.#uplink !== null) this.#uplink.wantsSamples = isWanted;
  }

  #listen(samples: Int16Array, timestampMs: number): void {
    const event = this.#voice?.frame(samples);
    if (event === undefined) return;
    const isStart = event === 'speech-started';
    if (isStart && this.#wantsBargeIn) this.#sendMarks(this.#downlink?.queue.clear() ?? null);
    if (!this.#wantsSpeechEvents) return;
    // Both are known some time after they were.
    const sinceMs = isStart ? VoiceActivity.startMs : this.#endOfSpeechMs;
    this.#send((writer) => writer.speech(isStart ? 'speech_started' : 'speech_stopped', timestampMs + FRAME_MS - sinceMs));
  }

  #sendDtmf(digits: string, durationMs: number): void {
    if (!this.settings.mayPress) return this.#refuse('dtmf', null, NOT_IN_TURBO.code, NOT_IN_TURBO.message);
    for (const digit of digits) {
      const event = eventOfDigit(digit);
      if (event !== undefined && this.host.sendDtmf(event, durationMs)) continue;
      return this.#refuse('dtmf', null, 'DTMF_NOT_SENT', 'the call has no telephone-events, or too many digits are queued');
    }
  }

  #refuse(request: string, id: string | null, code: string, message: string): void {
    this.#sendSurely((writer) => writer.error({ request, id, code, message }));
  }

  /** @param queue returns the milliseconds that there was no room for */
  #play(queue: (downlink: Downlink) => number): void {
    const downlink = this.#downlink;
    if (downlink === null) return;
    const lostMs = queue(downlink);
    if (this.host.speak()) downlink.queue.cameInTime();
    if (lostMs > 0) this.#onDropped('outbound', lostMs);
  }

  #onDropped(track: 'inbound' | 'outbound', milliseconds: number): void {
    this.dependencies.counters[track === 'inbound' ? 'droppedInboundMs' : 'droppedOutboundMs'] += milliseconds;
    this.#warn({ track, milliseconds }, 'agent.audio.dropped');
    if (this.#wantsDrops) this.#send((writer) => writer.dropped(track, milliseconds));
  }

  /** For the trace and the record of the call. */
  #note(kind: AgentNote['kind'], text: string, isFailure = false): void {
    this.host.emit({ type: 'agent-note', kind, text, isFailure });
  }

  #noteOnce(kind: AgentNote['kind'], text: string): void {
    if (this.#noted.has(text)) return;
    this.#noted.add(text);
    this.#note(kind, text);
  }

  #noteFailure(message: string, startedMs: number): void {
    const tookMs = Math.round(this.dependencies.clock.nowMs() - startedMs);
    this.#note('other', `${shownUrl(this.settings.url)}: ${message}, after ${String(tookMs)} ms`, true);
  }

  #warn(fields: LogFields, event: string): void {
    this.#warnings += 1;
    if (this.#warnings <= MAX_WARNINGS)
      this.log.warn({ ...fields, ...(this.#warnings === MAX_WARNINGS ? { more: 'not logged' } : {}) }, event);
  }
}

/** Removes the query, which may hold a secret; a URL with user and password is refused. */
function shownUrl(text: string): string {
  if (!URL.canParse(text)) return 'a URL that cannot be read';
  const { protocol, host, pathname, search } = new URL(text);
  return `${protocol}//${host}${pathname}${search === '' ? '' : '?…'}`;
}

function transferOf(transfer: Extract<FromAgentMessage, { event: 'transfer' }>['transfer']): AgentRequest {
  const requestId = transfer.id ?? null;
  if (!('to' in transfer)) return { type: 'transfer-step', requestId, step: transfer.step };
  const { to, briefing, step, sip_headers: headers } = transfer;
  const target = { type: 'transfer', requestId, to, ...(headers === undefined ? {} : { sipHeaders: headers }) } as const;
  if (step === 'consult') return { ...target, isConsultation: true };
  return { ...target, ...(briefing === undefined ? {} : { briefing }) };
}
