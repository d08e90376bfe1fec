import { audioPacket } from '../audio-packet.js';
import { StreamAgent } from '../../../src/gateway/agents/stream/stream-agent.js';
import type { AgentConnectionLimits, StreamSettings } from '../../../src/gateway/model/agent.js';
import type { LegEvent } from '../../../src/gateway/model/media.js';
import type { AudioCodec } from '../../../src/rtp/codec/g711.js';
import { silentLog } from '../../../src/lib/log.js';
import type { VoiceDetector } from '../../../src/gateway/media/voice-activity.js';
import { AGENT_LIMITS } from '../media/agent-limits.js';
import { VirtualClock } from '../virtual-clock.js';
import { PlayedAgent } from './played-socket.js';
import { noAgentCounters } from '../../../src/gateway/media/leg-agent.js';

const HEX = '0123456789abcdef0123456789abcdef';
export const STREAM: StreamSettings = {
  url: 'wss://bot.example.com/stream',
  format: 'twilio',
  bearerToken: null,
  signatureKey: 'secret',
  accountSid: `AC${HEX}`,
  callSid: `CA${HEX}`,
  customParameters: { from: '+15550001111', to: '+15552223333' },
  endOfSpeechMs: 100,
  mayPress: true,
};
/** µ-law. */
export const SILENCE = 0xff;

interface Setup {
  readonly settings?: Partial<StreamSettings>;
  readonly limits?: Partial<AgentConnectionLimits>;
  readonly codec?: AudioCodec;
  /** As a bug in the leg would. */
  readonly pressThrows?: boolean;
}

/** An agent on a leg in virtual time: the other end of its WebSocket is played, and the leg takes a frame each 20 ms. */
export function openStream({ settings, limits, codec = 'PCMU', pressThrows = false }: Setup = {}) {
  const clock = new VirtualClock();
  const bot = new PlayedAgent();
  const asked: LegEvent[] = [];
  const notes: string[] = [];
  /** Those that waited, each time that they were reported. */
  const marks: (readonly string[])[] = [];
  /** Sids of the streams that it reported. */
  const started: string[] = [];
  const pressed: (readonly [event: number, durationMs: number])[] = [];
  let streams = 0;
  /** Loud frames are a voice. */
  const detector: VoiceDetector = { isVoice: (frame) => Math.abs(frame[0] ?? 0) > 1_000, close: () => undefined };
  const agent = new StreamAgent(
    { ...STREAM, ...settings },
    {
      emit: (event) => {
        if (event.type === 'agent-note') notes.push(event.text);
        else if (event.type === 'agent-marks') marks.push(event.names);
        else if (event.type === 'stream-started') started.push(event.streamSid);
        else asked.push(event);
      },
      sendDtmf: (event, durationMs) => {
        if (pressThrows) throw new Error('a bug');
        return pressed.length < 5 && pressed.push([event, durationMs]) > 0;
      },
      speak: () => true,
      view: () => null,
    },
    {
      clock,
      counters: noAgentCounters(),
      openVoiceDetector: () => detector,
      dial: bot.dial,
      limits: { ...AGENT_LIMITS, ...limits },
      newStreamSid: () => `MZ${String((streams += 1)).padStart(32, '0')}`,
    },
    silentLog,
  );
  let packets = 0;
  let timestamp = 7_000;
  const payload = new Uint8Array(160);
  const said: Buffer[] = [];
  return {
    clock,
    bot,
    asked,
    notes,
    marks,
    started,
    pressed,
    agent,
    said,
    /** Connected, answered and acknowledged. */
    talk: async (): Promise<void> => {
      const connected = agent.connect();
      bot.accept();
      await connected;
      agent.start(codec, clock.nowMs());
    },
    /** So many frames pass; the caller says one packet in each while `speaks`. */
    frames: (count: number, speaks = false): void => {
      for (let i = 0; i < count; i += 1) {
        if (speaks) {
          const bytes = Buffer.alloc(160, packets & 0x7f);
          agent.hear(audioPacket(codec, 1, timestamp, bytes, 0, 160, clock.nowMs()));
          packets += 1;
        }
        timestamp += 160;
        clock.advance(20);
        agent.fill(payload, clock.nowMs());
        said.push(Buffer.from(payload));
      }
    },
  };
}

export const media = (bytes: Uint8Array): object => ({
  event: 'media',
  streamSid: 'x',
  media: { payload: Buffer.from(bytes).toString('base64') },
});
export const markNames = (bot: PlayedAgent): unknown[] => bot.of('mark').map(({ mark }) => (mark as { name: string }).name);
