import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { AnswererWatch } from '../media/answerer-watch.js';
import type { AgentDescription } from '../model/agent.js';
import type { LegDescription, LegEvent, MediaAddress } from '../model/media.js';
import { AgentUnavailableError } from '../ports/ports.js';
import { assertNever, errorText } from '../../lib/result.js';
import type { Log, LogFields } from '../../lib/log.js';
import { TurnBatch } from '../../lib/turn-batch.js';
import { systemClock } from '../../lib/system-clock.js';
import { RtpEndpoint } from '../media/endpoint.js';
import { FrameDelay } from '../media/slot-clock.js';
import { noAgentCounters } from '../media/leg-agent.js';
import type { ThreadAgents } from './agents.js';
import { CommandGate } from './command-gate.js';
import type { LogLevel, WorkerCommand, WorkerMessage, WorkerReply, WorkerSettings } from './worker-messages.js';

// A worker thread of the media service: it owns sockets, pacing and agents, apart from signalling.

if (parentPort === null) throw new Error('this module runs as a worker thread of the media service');
const port = parentPort;
const settings = workerData as WorkerSettings;

/** How often the lateness of frames is read. */
const DELAY_WINDOW_MS = 500;

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

function handle(endpoint: RtpEndpoint, newFork: ThreadAgents['newFork'], command: WorkerCommand): void {
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
      endpoint.startFork(callId, fork.streamSid, newFork(fork, emit, workerLog({ call_id: callId })));
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

/** Also the sign that the thread does not hang. The timer alone does not keep it alive. */
function reportDelays(frameDelay: FrameDelay): void {
  setInterval(() => post({ type: 'frame-delay', delayMs: frameDelay.take() }), DELAY_WINDOW_MS).unref();
}

async function loadAgents(counters: ReturnType<typeof noAgentCounters>): Promise<ThreadAgents> {
  const { openAgents } = await import('./agents.js');
  return openAgents(settings, counters);
}

async function run(): Promise<void> {
  const agentCounters = noAgentCounters();
  let agents: ThreadAgents | undefined;
  const loaded = (): ThreadAgents => {
    if (agents === undefined) throw new Error('agents are not loaded');
    return agents;
  };
  // A spare process has everything loaded when its turn comes.
  if (settings.waitsToBind) {
    agents = await loadAgents(agentCounters);
    await once(port, 'message');
  }
  const frameDelay = new FrameDelay();
  const endpoint = RtpEndpoint.open(settings, {
    clock: systemClock,
    log: workerLog({}),
    random32: () => randomInt(2 ** 32),
    agentCounters,
    onFrameDelay: (lateMs) => frameDelay.add(lateMs),
    newAgent: (agent, host, log) => loaded().newAgent(agent, host, log),
    ...(settings.tellsRtcp ? { onRtcp: (seen) => post({ type: 'rtcp', seen }) } : {}),
  });
  const gate = new CommandGate((command) => handle(endpoint, (...given) => loaded().newFork(...given), command));
  port.on('message', (commands: readonly WorkerCommand[]) => {
    for (const command of commands) gate.take(command);
  });
  reportDelays(frameDelay);
  post({ type: 'ready', capacity: endpoint.capacity });
  // Half of what a thread loads: callers of an earlier process have their legs meanwhile.
  try {
    agents ??= await loadAgents(agentCounters);
  } catch (error) {
    endpoint.close();
    throw error;
  }
  gate.open();
}

run().catch((error: unknown) => {
  post({ type: 'failed', message: error instanceof Error ? error.message : 'unknown' });
  closePort();
});
