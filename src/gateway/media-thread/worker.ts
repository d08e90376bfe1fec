import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { ThreadedAudioFiles, type AudioFiles } from '../agents/audio-file.js';
import { ConversationAgent, type ConversationDependencies } from '../agents/conversation/conversation-agent.js';
import { conversationDependencies } from '../agents/conversation/dependencies.js';
import { HttpTextToSpeech } from '../agents/text-to-speech.js';
import { Player } from '../agents/player.js';
import { EspeakSpeech, type Speech } from '../agents/speech.js';
import { newAdapter } from '../agents/provider/adapters.js';
import { ProviderAgent, type ProviderDependencies } from '../agents/provider/provider-agent.js';
import { socketDial, webSocketDial } from '../agents/stream/dial.js';
import { AnswererWatch } from '../media/answerer-watch.js';
import { MediaFork } from '../agents/stream/media-fork.js';
import { StreamAgent, type StreamDependencies } from '../agents/stream/stream-agent.js';
import { TestLine } from '../agents/test-line.js';
import type { AgentDescription } from '../model/agent.js';
import type { LegDescription, LegEvent, MediaAddress } from '../model/media.js';
import { newStreamSid } from '../model/twilio-ids.js';
import { AgentUnavailableError } from '../ports/ports.js';
import { assertNever, errorText } from '../../lib/result.js';
import type { Log, LogFields } from '../../lib/log.js';
import { TurnBatch } from '../../lib/turn-batch.js';
import { systemClock } from '../../lib/system-clock.js';
import { RtpEndpoint } from '../media/endpoint.js';
import { FrameDelay } from '../media/slot-clock.js';
import { noAgentCounters, type AgentHost, type LegAgent } from '../media/leg-agent.js';
import { SampleLegAgent } from '../media/sample-leg-agent.js';
import { VoiceDetectors } from '../media/voice-detector.js';
import type { LogLevel, WorkerCommand, WorkerMessage, WorkerReply, WorkerSettings } from './worker-messages.js';

// A worker thread of the media service: it owns sockets, pacing and agents, apart from signalling.

if (parentPort === null) throw new Error('this module runs as a worker thread of the media service');
const port = parentPort;
const settings = workerData as WorkerSettings;

/** So often it is looked at how late the frames are. */
const DELAY_WINDOW_MS = 500;
/** As providers' own libraries take. */
const MAX_PROVIDER_MESSAGE_BYTES = 16 * 1_024 * 1_024;

const outgoing = new TurnBatch<WorkerMessage>((messages) => port.postMessage(messages));

function post(message: WorkerMessage): void {
  outgoing.push(message);
}

function closePort(): void {
  outgoing.flush();
  port.close();
}

function workerLog(bindings: object): Log {
  const at =
    (level: LogLevel) =>
    (fields: LogFields, event: string): void =>
      post({ type: 'log', level, fields: { ...bindings, ...fields }, event });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => workerLog({ ...bindings, ...fields }),
  };
}

function handle(endpoint: RtpEndpoint, stream: StreamDependencies, command: WorkerCommand): void {
  const reply = (requestId: number, answer: WorkerReply): void => post({ type: 'reply', requestId, reply: answer });
  switch (command.type) {
    case 'bind':
      break;
    case 'reserve':
      reply(
        command.requestId,
        orRefused(() => ({ type: 'reserved', address: endpoint.reserve(command.callId) })),
      );
      break;
    case 'connect-agent':
      void connectAgent(endpoint, command.callId, command.agent).then((answer) => reply(command.requestId, answer));
      break;
    case 'notify-agent':
      endpoint.notifyAgent(command.callId, command.answer);
      break;
    case 'start-fork': {
      const { callId, fork } = command;
      const emit = (event: LegEvent): void => post({ type: 'leg-event', callId, event });
      endpoint.startFork(callId, fork.streamSid, new MediaFork(fork, stream, emit, workerLog({ call_id: callId })));
      break;
    }
    case 'stop-fork':
      endpoint.stopFork(command.callId, command.streamSid);
      break;
    case 'open':
      reply(
        command.requestId,
        orRefused(() => ({ type: 'opened', address: open(endpoint, command.leg) })),
      );
      break;
    case 'change':
      reply(
        command.requestId,
        orRefused(() => {
          endpoint.changeLeg(command.callId, command.change);
          return { type: 'changed' };
        }),
      );
      break;
    case 'start':
      endpoint.start(command.callId);
      break;
    case 'direct':
      endpoint.setDirection(command.callId, command.direction);
      break;
    case 'ring-back':
      endpoint.with(command.callId, (leg) => leg.setRingBack(command.isOn));
      break;
    case 'three-way':
      endpoint.with(command.callId, (leg) => leg.setThreeWay(command.isOn));
      break;
    case 'digit':
      endpoint.with(command.callId, (leg) => leg.takeDigit(command.event, command.durationMs));
      break;
    case 'dtmf':
      endpoint.with(command.callId, (leg) => leg.sendDigit(command.event, command.durationMs));
      break;
    case 'figures':
      reply(command.requestId, { type: 'figures', figures: endpoint.figures(command.callId) });
      break;
    case 'close':
      reply(command.requestId, { type: 'figures', figures: endpoint.closeLeg(command.callId) });
      break;
    case 'counters':
      reply(command.requestId, { type: 'counted', counters: endpoint.counters() });
      break;
    case 'shut-down':
      // Without sockets, timers and the port, nothing keeps the thread alive.
      endpoint.close();
      closePort();
      break;
    default:
      assertNever(command);
  }
}

async function connectAgent(endpoint: RtpEndpoint, callId: string, agent: AgentDescription): Promise<WorkerReply> {
  try {
    await endpoint.connectAgent(callId, agent, (event) => post({ type: 'leg-event', callId, event }));
    return { type: 'agent-connected' };
  } catch (error) {
    const message = errorText(error);
    return error instanceof AgentUnavailableError ? { type: 'agent-unavailable', message } : { type: 'refused', message };
  }
}

/** No streamSid of Twilio's form. */
const ANSWERER_FORK = 'answerer';

function open(endpoint: RtpEndpoint, leg: LegDescription): MediaAddress {
  const { callId } = leg;
  const emit = (event: LegEvent): void => post({ type: 'leg-event', callId, event });
  const address = endpoint.openLeg(leg, emit);
  if (leg.watchesAnswerer === true) {
    const watch = new AnswererWatch((event, isDone) => {
      emit({ type: 'answered-by', event });
      if (isDone) endpoint.stopFork(callId, ANSWERER_FORK);
    });
    endpoint.startFork(callId, ANSWERER_FORK, watch);
  }
  return address;
}

function orRefused(work: () => WorkerReply): WorkerReply {
  try {
    return work();
  } catch (error) {
    return { type: 'refused', message: error instanceof Error ? error.message : 'no leg' };
  }
}

function newAgent(
  agent: Exclude<AgentDescription, { kind: 'party' | 'early-media' }>,
  speech: Speech,
  files: AudioFiles,
  stream: StreamDependencies,
  provider: ProviderDependencies,
  conversation: ConversationDependencies,
  host: AgentHost,
  log: Log,
): LegAgent {
  switch (agent.kind) {
    case 'test-line':
      return new SampleLegAgent(new TestLine(agent, speech, host, log, systemClock));
    case 'stream':
      return new StreamAgent(agent, host, stream, log);
    case 'player':
      return new SampleLegAgent(
        new Player(agent, { speech, textToSpeech: conversation.textToSpeech, files, clock: systemClock }, host, log),
      );
    case 'provider':
      return new ProviderAgent(agent, host, provider, log);
    case 'conversation':
      return new ConversationAgent(agent, host, conversation, log);
    default:
      return assertNever(agent);
  }
}

/** Also the sign that the thread does not hang. The timer alone does not keep it alive. */
function reportDelays(frameDelay: FrameDelay): void {
  setInterval(() => post({ type: 'frame-delay', delayMs: frameDelay.take() }), DELAY_WINDOW_MS).unref();
}

async function run(): Promise<void> {
  const voices = await VoiceDetectors.load();
  const speech = new EspeakSpeech({ command: settings.speechCommand });
  const files = new ThreadedAudioFiles();
  const agentCounters = noAgentCounters();
  const stream: StreamDependencies = {
    counters: agentCounters,
    clock: systemClock,
    dial: webSocketDial(settings.agents),
    limits: settings.agents,
    openVoiceDetector: () => voices.open(),
    newStreamSid,
  };
  const textToSpeech = new HttpTextToSpeech({ allowPrivate: settings.agents.allowPrivate, clock: systemClock });
  const provider: ProviderDependencies = {
    counters: agentCounters,
    clock: systemClock,
    dial: socketDial({ ...settings.agents, maxMessageBytes: MAX_PROVIDER_MESSAGE_BYTES }),
    limits: settings.agents,
    newAdapter,
    textToSpeech,
  };
  const conversation = conversationDependencies({ ...stream, dialProvider: provider.dial, files, textToSpeech });
  if (settings.waitsToBind) await once(port, 'message');
  const frameDelay = new FrameDelay();
  const endpoint = RtpEndpoint.open(settings, {
    clock: systemClock,
    log: workerLog({}),
    random32: () => randomInt(2 ** 32),
    agentCounters,
    onFrameDelay: (lateMs) => frameDelay.add(lateMs),
    newAgent: (agent, host, log) => newAgent(agent, speech, files, stream, provider, conversation, host, log),
    ...(settings.tellsRtcp ? { onRtcp: (seen) => post({ type: 'rtcp', seen }) } : {}),
  });
  port.on('message', (commands: readonly WorkerCommand[]) => {
    for (const command of commands) handle(endpoint, stream, command);
  });
  reportDelays(frameDelay);
  post({ type: 'ready', capacity: endpoint.capacity });
}

run().catch((error: unknown) => {
  post({ type: 'failed', message: error instanceof Error ? error.message : 'unknown' });
  closePort();
});
