import { audioPacket } from '../audio-packet.js';
import { newAdapter } from '../../../src/gateway/agents/provider/adapters.js';
import { ProviderAgent } from '../../../src/gateway/agents/provider/provider-agent.js';
import type { SpeechText, TextToSpeech } from '../../../src/gateway/agents/text-to-speech.js';
import type { AgentSocketEvents, DialSocket } from '../../../src/gateway/agents/stream/socket.js';
import { noAgentCounters } from '../../../src/gateway/media/leg-agent.js';
import type { AgentConnectionLimits, AgentRequest, TranscriptEntry } from '../../../src/gateway/model/agent.js';
import type { LegEvent } from '../../../src/gateway/model/media.js';
import { NO_TUNING } from '../../../src/gateway/model/provider.js';
import type { ProviderSettings } from '../../../src/gateway/model/provider-settings.js';
import { silentLog } from '../../../src/lib/log.js';
import type { AudioCodec } from '../../../src/rtp/codec/g711.js';
import { AGENT_LIMITS } from '../media/agent-limits.js';
import { VirtualClock } from '../virtual-clock.js';

/** The far end of the WebSocket that a test plays. */
export interface PlayedEnd {
  send(message: string | Uint8Array): void;
  close(code: number, reason: string): void;
}

interface PlayedSession {
  receive(message: string): void;
  receiveBytes?(bytes: Buffer): void;
  readonly closed: { add(code: number): void };
}

type Open<Session> = (end: PlayedEnd, request: { readonly url: string; readonly headers: Readonly<Record<string, string>> }) => Session;

export const PROVIDER: ProviderSettings = {
  provider: 'openai-realtime',
  url: 'wss://api.openai.com/v1/realtime',
  apiKey: 'sk-secret',
  model: 'gpt-realtime-2.1',
  transcriptionModel: 'gpt-4o-mini-transcribe',
  prompt: 'You are the front desk.',
  firstSentence: null,
  waitsForGreeting: false,
  voice: null,
  language: 'ENG',
  pronunciationGuide: [],
  tuning: NO_TUNING,
  endOfSpeechMs: null,
  speech: null,
  tools: [],
  mayTransfer: true,
  audio: 'g711',
  codec: 'PCMU',
  conversation: [],
};

/** Text to speech that a test plays: one text at a time. */
class PlayedSpeech implements Pick<TextToSpeech, 'stream' | 'samples'> {
  readonly texts: SpeechText[] = [];
  #aborted: AbortSignal | null = null;
  #give: Parameters<TextToSpeech['stream']>[3] = () => undefined;
  #whole: { readonly resolve: (samples: Int16Array) => void; readonly reject: (error: Error) => void } | null = null;
  #done: { readonly resolve: () => void; readonly reject: (error: Error) => void } | null = null;

  get isAborted(): boolean {
    return this.#aborted?.aborted === true;
  }

  stream(...[_services, text, signal, onAudio]: Parameters<TextToSpeech['stream']>): Promise<void> {
    this.texts.push(text);
    this.#aborted = signal;
    this.#give = onAudio;
    return new Promise((resolve, reject) => (this.#done = { resolve, reject }));
  }

  /** The whole of a text: as many samples as `give` says, or the error of `refuse`. */
  samples(...[_services, text, signal]: Parameters<TextToSpeech['samples']>): Promise<Int16Array> {
    this.texts.push(text);
    this.#aborted = signal;
    return new Promise((resolve, reject) => (this.#whole = { resolve, reject }));
  }

  async give(samples: Int16Array): Promise<void> {
    this.#whole?.resolve(samples);
    await settled();
  }

  async refuse(message: string): Promise<void> {
    this.#whole?.reject(new Error(message));
    await settled();
  }

  say(bytes: Uint8Array): void {
    this.#give('pcmu', Buffer.from(bytes));
  }

  async end(): Promise<void> {
    this.#done?.resolve();
    await settled();
  }

  async fail(message: string): Promise<void> {
    this.#done?.reject(new Error(message));
    await settled();
  }
}

async function settled(): Promise<void> {
  await Promise.resolve();
  await Promise.resolve();
}

/** An agent at a provider on a leg in virtual time. Messages arrive at once; `accepts: false`: connections wait for `open`. */
export function openProvider<Session extends PlayedSession>(
  open: Open<Session>,
  settings: Partial<ProviderSettings> = {},
  limits: Partial<AgentConnectionLimits> = {},
) {
  const clock = new VirtualClock();
  const sessions: Session[] = [];
  const events: LegEvent[] = [];
  const notes: string[] = [];
  const pressed: number[] = [];
  const refusals: string[] = [];
  let pongs = true;
  const speech = new PlayedSpeech();
  const dial: DialSocket = (request, socketEvents) => {
    let isOver = false;
    clock.setTimer(1, () => {
      const refusal = refusals.shift();
      if (isOver) return;
      if (refusal !== undefined) return socketEvents.onFailed(refusal);
      leg.onOpen();
      sessions.push(connected(request, socketEvents));
    });
    return () => (isOver = true);
  };
  const connected = (request: Parameters<DialSocket>[0], socketEvents: AgentSocketEvents): Session => {
    let isOver = false;
    const deliver = (work: () => void): void => void clock.setTimer(0, () => isOver || work());
    const session: Session = open(
      {
        send: (message) =>
          deliver(() => (typeof message === 'string' ? socketEvents.onText(message) : socketEvents.onBinary(Buffer.from(message)))),
        close: (code, reason) =>
          deliver(() => {
            isOver = true;
            socketEvents.onClosed(code, reason);
          }),
      },
      request,
    );
    const end = (code: number): void => {
      isOver = true;
      session.closed.add(code);
    };
    socketEvents.onOpen({
      unsentBytes: 0,
      sendText: (text) => session.receive(text),
      sendUtf8: () => undefined,
      sendBinary: (bytes) => session.receiveBytes?.(Buffer.from(bytes)),
      ping: (serial) => pongs && socketEvents.onPong(serial),
      close: () => end(1_000),
      terminate: () => end(1_006),
    });
    return session;
  };
  const agent = new ProviderAgent(
    { ...PROVIDER, ...settings },
    {
      emit: (event) => (event.type === 'agent-note' ? notes.push(event.text) : events.push(event)),
      sendDtmf: (event) => pressed.push(event) > 0,
      speak: () => true,
      view: () => null,
    },
    { clock, dial, newAdapter, textToSpeech: speech, counters: noAgentCounters(), limits: { ...AGENT_LIMITS, ...limits } },
    silentLog,
  );
  const codec: AudioCodec = settings.codec ?? 'PCMU';
  const frame = new Uint8Array(160);
  const heard: Buffer[] = [];
  let timestamp = 0;
  const requests = (): AgentRequest[] => events.flatMap((event) => (event.type === 'agent-request' ? [event.request] : []));
  const leg = {
    agent,
    clock,
    sessions,
    notes,
    events,
    pressed,
    heard,
    refusals,
    speech,
    /** Called before each connection. */
    onOpen: (): void => undefined,
    ignorePings: (): void => void (pongs = false),
    get session(): Session {
      const session = sessions.at(-1);
      if (session === undefined) throw new Error('there is no session');
      return session;
    },
    requests,
    hasHungUp: (): boolean => events.some(({ type }) => type === 'agent-hangup'),
    isLost: (): boolean => events.some(({ type }) => type === 'agent-lost'),
    /** In the order of their times, as the record has them. */
    transcript: (): TranscriptEntry[] =>
      requests()
        .flatMap((request) => (request.type === 'transcript' ? request.entries : []))
        .sort((a, b) => a.at_ms - b.at_ms),
    connect: async (): Promise<void> => {
      const connected = agent.connect();
      connected.catch(() => undefined);
      await clock.advanceAsync(5);
      await connected;
    },
    start: (): void => agent.start(codec, clock.nowMs()),
    talk: async (): Promise<void> => {
      await leg.connect();
      leg.start();
      clock.advance(0);
    },
    /** So many frames pass; with a byte, the caller sends such audio; with more, that audio. @returns what the caller heard */
    frames: (count: number, audio?: number | Buffer): Buffer => {
      const first = heard.length;
      for (let i = 0; i < count; i += 1) {
        const packet = typeof audio === 'number' ? Buffer.alloc(160, audio) : audio?.subarray(160 * i, 160 * (i + 1));
        if (packet !== undefined) agent.hear(audioPacket(codec, 1, timestamp, packet, 0, packet.length, clock.nowMs()));
        timestamp += 160;
        clock.advance(20);
        agent.fill(frame, clock.nowMs());
        heard.push(Buffer.from(frame));
      }
      return Buffer.concat(heard.slice(first));
    },
  };
  return leg;
}
