import { audioPacket } from '../audio-packet.js';
import { ConversationAgent } from '../../../src/gateway/agents/conversation/conversation-agent.js';
import type { ToApplication } from '../../../src/gateway/agents/conversation/messages.js';
import type { AgentSocketEvents, DialSocket } from '../../../src/gateway/agents/stream/socket.js';
import type { SpeechText, TextToSpeech } from '../../../src/gateway/agents/text-to-speech.js';
import { noAgentCounters } from '../../../src/gateway/media/leg-agent.js';
import { VoiceDetectors } from '../../../src/gateway/media/voice-detector.js';
import type { ConversationSettings, TranscriptEntry } from '../../../src/gateway/model/agent.js';
import { DEFAULT_CONVERSATION, type ConversationRules } from '../../../src/gateway/model/conversation.js';
import type { LegEvent } from '../../../src/gateway/model/media.js';
import { silentLog } from '../../../src/lib/log.js';
import { encodeG711 } from '../../../src/rtp/codec/g711.js';
import { AGENT_LIMITS } from '../media/agent-limits.js';
import { NO_SPEECH } from '../providers.js';
import { FakeFluxSession } from '../provider/fake-flux.js';
import { VirtualClock } from '../virtual-clock.js';

const HEX = '0123456789abcdef0123456789abcdef';
const FRAME = 160;
/** Of played speech: silence of µ-law is 0xff. */
export const SPOKEN = 0x22;
/** Each character of a text is so long. */
export const CHARACTER_MS = 20;

export const CONVERSATION: ConversationSettings = {
  url: 'wss://app.example.com/relay?secret=1',
  bearerToken: null,
  signatureKey: 'secret',
  accountSid: `AC${HEX}`,
  callSid: `CA${HEX}`,
  customParameters: { name: 'Ada' },
  sessionId: `VX${HEX}`,
  direction: 'inbound',
  from: '+15550001111',
  to: '+15552223333',
  callerName: null,
  forwardedFrom: null,
  rules: DEFAULT_CONVERSATION,
  listen: { ...NO_SPEECH.listen, apiKey: 'dg' },
  speech: NO_SPEECH.speech,
};

type Message = ToApplication | { readonly type: 'setup'; readonly [name: string]: unknown };
const voices = await VoiceDetectors.load();

/** An application in a conversation with a call, in virtual time: speech becomes frames of one byte, as long as its text. */
export function openConversation(rules: Partial<ConversationRules> = {}, settings: Partial<ConversationSettings> = {}) {
  const clock = new VirtualClock();
  const sent: Message[] = [];
  const closed: string[] = [];
  const events: LegEvent[] = [];
  const notes: string[] = [];
  const transcript: TranscriptEntry[] = [];
  const pressed: number[] = [];
  const asked: SpeechText[] = [];
  const sessions: FakeFluxSession[] = [];
  const refusals: string[] = [];
  let app: AgentSocketEvents | null = null;
  let flux: AgentSocketEvents | null = null;
  /** A text that fails. */
  let failing = '';
  const textToSpeech: TextToSpeech = {
    stream: (_services, text, signal, onAudio) => {
      asked.push(text);
      if (text.text === failing) return Promise.reject(new Error('deepgram answered 429 (too many sessions or requests)'));
      const bytes = new Uint8Array(text.text.length * CHARACTER_MS * 8).fill(SPOKEN);
      if (!signal.aborted) onAudio('pcmu', bytes);
      return Promise.resolve();
    },
    samples: () => Promise.reject(new Error('not streamed')),
  };
  const dialProvider: DialSocket = (request, socketEvents) => {
    const refusal = refusals.shift();
    if (refusal !== undefined) {
      clock.setTimer(0, () => socketEvents.onFailed(refusal));
      return () => undefined;
    }
    clock.setTimer(0, () => {
      flux = socketEvents;
      let session: FakeFluxSession | null = null;
      socketEvents.onOpen({
        unsentBytes: 0,
        sendText: (text) => session?.receive(text),
        sendUtf8: () => undefined,
        sendBinary: (bytes) => session?.receiveBytes(Buffer.from(bytes)),
        ping: () => undefined,
        close: () => session?.closed.add(1_000),
        terminate: () => session?.closed.add(1_006),
      });
      const end = {
        send: (message: string | Uint8Array) => clock.setTimer(0, () => socketEvents.onText(String(message))),
        close: (code: number, reason: string) => clock.setTimer(0, () => socketEvents.onClosed(code, reason)),
      };
      session = new FakeFluxSession(end, request);
      sessions.push(session);
    });
    return () => undefined;
  };
  const agent = new ConversationAgent(
    { ...CONVERSATION, ...settings, rules: { ...DEFAULT_CONVERSATION, ...rules } },
    {
      emit: (event) => {
        if (event.type === 'agent-note') notes.push(event.text);
        else if (event.type === 'agent-request' && event.request.type === 'transcript') transcript.push(...event.request.entries);
        else events.push(event);
      },
      sendDtmf: (event) => pressed.push(event) > 0,
      speak: () => true,
      view: () => null,
    },
    {
      clock,
      counters: noAgentCounters(),
      limits: AGENT_LIMITS,
      dial: (_address, socketEvents) => {
        app = socketEvents;
        return () => undefined;
      },
      dialProvider,
      openVoiceDetector: () => voices.open(),
      textToSpeech,
      audio: {
        samplesAt: (_account, url) =>
          url.includes('missing')
            ? Promise.reject(new Error('The server of the audio answered 404.'))
            : Promise.resolve(new Int16Array(10 * FRAME).fill(4_000)),
      },
    },
    silentLog,
  );
  const payload = new Uint8Array(FRAME);
  let packets = 0;
  const application = (): AgentSocketEvents => {
    if (app === null) throw new Error('nobody dialled');
    return app;
  };
  const open = (): void =>
    application().onOpen({
      unsentBytes: 0,
      sendText: (text) => sent.push(JSON.parse(text) as Message),
      sendUtf8: () => undefined,
      sendBinary: () => undefined,
      ping: (serial) => application().onPong(serial),
      close: () => closed.push('closed'),
      terminate: () => closed.push('terminated'),
    });
  /** Frames of the call; each with 20 ms of the caller. Returns how many had speech in them. */
  const frames = async (count: number, samples: Int16Array = new Int16Array(FRAME * count)): Promise<number> => {
    let spoken = 0;
    for (let index = 0; index < count; index += 1) {
      const bytes = new Uint8Array(FRAME);
      encodeG711('PCMU', samples.subarray(index * FRAME, (index + 1) * FRAME), bytes);
      agent.hear(audioPacket('PCMU', 1, FRAME * packets, bytes, 0, FRAME, clock.nowMs()));
      packets += 1;
      payload.fill(0);
      agent.fill(payload, clock.nowMs());
      if (payload.some((byte) => byte !== 0xff)) spoken += 1;
      clock.advance(20);
      await Promise.resolve();
      await Promise.resolve();
    }
    return spoken;
  };
  const conversation = {
    agent,
    clock,
    sent,
    closed,
    events,
    notes,
    transcript,
    pressed,
    asked,
    sessions,
    refusals,
    open,
    frames,
    application,
    failOn: (text: string) => (failing = text),
    loseFlux: () => flux?.onClosed(1_006),
    get flux(): FakeFluxSession {
      const session = sessions.at(-1);
      if (session === undefined) throw new Error('nobody listens');
      return session;
    },
    says: (message: object) => application().onText(JSON.stringify(message)),
    of: <Type extends Message['type']>(type: Type) =>
      sent.filter((message): message is Extract<Message, { type: Type }> => message.type === type),
    /** Connected, answered and acknowledged. */
    talk: async (): Promise<void> => {
      const connected = agent.connect();
      open();
      clock.advance(1);
      clock.advance(1);
      await connected;
      agent.start('PCMU', clock.nowMs());
      await frames(3);
    },
    /** The caller's turn, from its first word to its end. */
    callerSays: async (text: string): Promise<void> => {
      const session = sessions.at(-1);
      session?.turn('StartOfTurn', text.split(' ')[0] ?? '');
      session?.turn('EndOfTurn', text);
      await frames(2);
    },
  };
  return conversation;
}
