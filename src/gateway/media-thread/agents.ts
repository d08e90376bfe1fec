import { ThreadedAudioDecoder } from '../agents/audio-file.js';
import { FetchedAudio, type AudioUrls } from '../agents/audio-url.js';
import { ConversationAgent } from '../agents/conversation/conversation-agent.js';
import { HttpTextToSpeech } from '../agents/text-to-speech.js';
import { Player } from '../agents/player.js';
import { EspeakSpeech } from '../agents/speech.js';
import { newAdapter } from '../agents/provider/adapters.js';
import { ProviderAgent, type ProviderDependencies } from '../agents/provider/provider-agent.js';
import { socketDial, webSocketDial } from '../agents/stream/dial.js';
import { MediaFork } from '../agents/stream/media-fork.js';
import { StreamAgent, type StreamDependencies } from '../agents/stream/stream-agent.js';
import { TestLine } from '../agents/test-line.js';
import type { ForkSettings } from '../model/agent.js';
import type { LegEvent } from '../model/media.js';
import { newStreamSid } from '../model/twilio-ids.js';
import { assertNever } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { systemClock } from '../../lib/system-clock.js';
import type { EndpointDependencies } from '../media/endpoint.js';
import type { AgentCounters, LegFork } from '../media/leg-agent.js';
import { SampleLegAgent } from '../media/sample-leg-agent.js';
import { VoiceDetectors } from '../media/voice-detector.js';
import type { WorkerSettings } from './worker-messages.js';

/** Audio comes in pieces of less than a second. A thread parses 4 MiB of JSON in some 40 ms. */
const MAX_PROVIDER_MESSAGE_BYTES = 4 * 1_024 * 1_024;

/** Not with a call's first text or file, nor while calls wait for this thread to start. */
const LOAD_CLIENT_AFTER_MS = 1_000;

/** Makes the agents and forks of one thread. */
export interface ThreadAgents {
  readonly newAgent: EndpointDependencies['newAgent'];
  readonly newFork: (fork: ForkSettings, emit: (event: LegEvent) => void, log: Log) => LegFork;
}

/** Loads what agents need. */
export async function openAgents(settings: WorkerSettings, counters: AgentCounters): Promise<ThreadAgents> {
  const voices = await VoiceDetectors.load();
  const speech = new EspeakSpeech({ command: settings.speechCommand });
  const decoder = new ThreadedAudioDecoder(systemClock);
  const { caPem } = settings.agents;
  const audioFor = (allowPrivate: boolean): AudioUrls => new FetchedAudio({ allowPrivate, caPem, clock: systemClock }, decoder);
  const playerAudio = audioFor(settings.webhooksAllowPrivate);
  const stream: StreamDependencies = {
    counters,
    clock: systemClock,
    dial: webSocketDial(settings.agents),
    limits: settings.agents,
    openVoiceDetector: () => voices.open(),
    newStreamSid,
  };
  const textToSpeech = new HttpTextToSpeech({ allowPrivate: settings.agents.allowPrivate, caPem, clock: systemClock });
  const provider: ProviderDependencies = {
    counters,
    clock: systemClock,
    dial: socketDial({ ...settings.agents, maxMessageBytes: MAX_PROVIDER_MESSAGE_BYTES }),
    limits: settings.agents,
    newAdapter,
    textToSpeech,
  };
  const conversation = { ...stream, dialProvider: provider.dial, audio: audioFor(settings.agents.allowPrivate), textToSpeech };
  systemClock.setTimer(LOAD_CLIENT_AFTER_MS, () => void textToSpeech.load());
  return {
    newAgent: (agent, host, log) => {
      switch (agent.kind) {
        case 'test-line':
          return new SampleLegAgent(new TestLine(agent, speech, host, log, systemClock));
        case 'stream':
          return new StreamAgent(agent, host, stream, log);
        case 'player':
          return new SampleLegAgent(new Player(agent, { speech, textToSpeech, audio: playerAudio, clock: systemClock }, host, log));
        case 'provider':
          return new ProviderAgent(agent, host, provider, log);
        case 'conversation':
          return new ConversationAgent(agent, host, conversation, log);
        default:
          return assertNever(agent);
      }
    },
    newFork: (fork, emit, log) => new MediaFork(fork, stream, emit, log),
  };
}
