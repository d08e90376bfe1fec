import type { DialAgent } from '../../gateway/agents/stream/socket.js';
import { StreamAgent, type StreamDependencies } from '../../gateway/agents/stream/stream-agent.js';
import { noAgentCounters, type AgentHost } from '../../gateway/media/leg-agent.js';
import type { AgentRequest, StreamSettings } from '../../gateway/model/agent.js';
import { newStreamSid } from '../../gateway/model/twilio-ids.js';
import { silentLog } from '../../lib/log.js';
import { decodeG711, encodeG711, silenceByte, FRAME_BYTES, FRAME_MS } from '../../rtp/codec/g711.js';
import { digitOfEvent } from '../../rtp/dtmf/telephone-event.js';
import { levelDbfs } from '../../rtp/codec/level.js';
import { AUDIBLE_DBFS, type CallerLine, type LineReport } from './caller-line.js';

const CODEC = 'PCMU';

/** The gateway's own connection to a bot, with a caller in place of a carrier's leg. */
export class BotLine implements CallerLine {
  readonly #agent: StreamAgent;
  readonly #counts = { marksSet: 0, marksEchoed: 0, clears: 0 };
  readonly #errors: string[] = [];
  readonly #requests: string[] = [];
  readonly #transcript: { speaker: 'agent' | 'caller'; text: string }[] = [];
  readonly #sent = new Uint8Array(FRAME_BYTES);
  readonly #received = new Uint8Array(FRAME_BYTES);
  readonly #samples = new Int16Array(FRAME_BYTES);
  #digits = '';
  /** The connection was closed, and whether that is a hang-up or a loss comes next. */
  #closeFailure: string | null = null;
  #isOver = false;
  #audio: Int16Array = new Int16Array(0);
  #audioAt = 0;

  constructor(
    settings: StreamSettings,
    private readonly dependencies: Omit<StreamDependencies, 'newStreamSid' | 'counters'>,
  ) {
    const host: AgentHost = {
      emit: (event) => this.#take(event),
      sendDtmf: (event) => {
        this.#digits += digitOfEvent(event) ?? '';
        return true;
      },
      speak: () => true,
      view: () => null,
    };
    const dial = countingDial(dependencies.dial, this.#counts);
    this.#agent = new StreamAgent(settings, host, { ...dependencies, dial, counters: noAgentCounters(), newStreamSid }, silentLog);
  }

  async connect(): Promise<void> {
    try {
      await this.#agent.connect();
    } catch (error) {
      throw this.#closeFailure === null ? error : new Error(this.#closeFailure, { cause: error });
    }
    this.#agent.start(CODEC, this.dependencies.clock.nowMs());
  }

  play(samples: Int16Array): void {
    this.#audio = samples;
    this.#audioAt = 0;
  }

  press(event: number): void {
    this.#agent.digit(event);
  }

  exchange(atMs: number): boolean {
    const nowMs = this.dependencies.clock.nowMs();
    this.#sent.fill(silenceByte(CODEC));
    const next = this.#audio.subarray(this.#audioAt, this.#audioAt + FRAME_BYTES);
    if (next.length > 0) encodeG711(CODEC, next, this.#sent);
    this.#audioAt += FRAME_BYTES;
    this.#agent.hear({
      codec: CODEC,
      ssrc: 1,
      rtpTimestamp: (atMs / FRAME_MS) * FRAME_BYTES,
      buffer: this.#sent,
      offset: 0,
      lengthBytes: FRAME_BYTES,
      nowMs,
    });
    this.#agent.fill(this.#received, nowMs);
    decodeG711(CODEC, this.#received, this.#samples);
    return levelDbfs(this.#samples) > AUDIBLE_DBFS;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  close(): Promise<void> {
    this.#agent.close();
    return Promise.resolve();
  }

  report(): LineReport {
    return {
      sipCallId: null,
      bot: { ...this.#counts, digits: this.#digits, requests: this.#requests },
      transcript: this.#transcript,
      errors: this.#errors,
    };
  }

  #take(event: Parameters<AgentHost['emit']>[0]): void {
    switch (event.type) {
      case 'agent-note':
        if (event.kind === 'closed') this.#closeFailure = event.isFailure ? event.text : null;
        else if (event.isFailure || event.kind === 'ignored') this.#errors.push(event.text);
        return;
      case 'agent-lost':
        if (this.#closeFailure !== null) this.#errors.push(this.#closeFailure);
        this.#errors.push('the connection broke and did not come back');
        this.#isOver = true;
        return;
      case 'agent-hangup':
      case 'agent-finished':
        this.#isOver = true;
        return;
      case 'agent-away':
      case 'agent-marks':
      case 'provider-tokens':
      case 'stream-started':
      case 'conversation-ended':
        return;
      case 'agent-request':
        return this.#onRequest(event.request);
    }
  }

  #onRequest(request: AgentRequest): void {
    this.#requests.push(request.type);
    if (request.type === 'transcript') this.#transcript.push(...request.entries.map(({ speaker, text }) => ({ speaker, text })));
    if (request.type !== 'transfer' && request.type !== 'tool') return;
    const message = 'A simulated call has no carrier and no tools.';
    this.#agent.notify({ type: 'refused', requestId: request.requestId, request: request.type, code: 'SIMULATED_CALL', message });
  }
}

/** Counts the marks and `clear`s of the bot, and the marks that go back to it. */
function countingDial(dial: DialAgent, counts: { marksSet: number; marksEchoed: number; clears: number }): DialAgent {
  return (address, events) =>
    dial(address, {
      onOpen: (socket) =>
        events.onOpen({
          get unsentBytes() {
            return socket.unsentBytes;
          },
          sendText: (text) => {
            if (eventOf(text) === 'mark') counts.marksEchoed += 1;
            socket.sendText(text);
          },
          sendUtf8: (bytes) => socket.sendUtf8(bytes),
          sendBinary: (bytes) => socket.sendBinary(bytes),
          ping: (serial) => socket.ping(serial),
          close: () => socket.close(),
          terminate: () => socket.terminate(),
        }),
      onText: (text) => {
        const event = eventOf(text);
        if (event === 'mark') counts.marksSet += 1;
        if (event === 'clear') counts.clears += 1;
        events.onText(text);
      },
      onFailed: (message) => events.onFailed(message),
      onBinary: (bytes) => events.onBinary(bytes),
      onPong: (serial) => events.onPong(serial),
      onClosed: (code) => events.onClosed(code),
    });
}

function eventOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { event?: unknown } | null)?.event;
  } catch {
    return undefined;
  }
}
