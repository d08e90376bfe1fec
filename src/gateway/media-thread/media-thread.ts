import { randomInt } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import { AnswererWatch } from '../media/answerer-watch.js';
import type { LegDescription, LegEvent } from '../model/media.js';
import { AgentUnavailableError } from '../ports/ports.js';
import { assertNever, errorText } from '../../lib/result.js';
import type { Log, LogFields } from '../../lib/log.js';
import { TurnBatch } from '../../lib/turn-batch.js';
import { systemClock } from '../../lib/system-clock.js';
import { RtpEndpoint } from '../media/endpoint.js';
import { noAgentCounters } from '../media/leg-agent.js';
import type { ThreadAgents } from './agents.js';
import { CommandGate } from './command-gate.js';
import type { CallCommand, LogLevel, WorkerCommand, WorkerMessage, WorkerReply, WorkerSettings } from './worker-messages.js';

/** Between attempts to bind the ports of a process that is about to end: callers hear nothing meanwhile. */
const BIND_AGAIN_MS = 4;
/** How often the delays of frames and packets are read. */
const DELAY_WINDOW_MS = 500;
/** No streamSid of Twilio's form. */
const ANSWERER_FORK = 'answerer';

/** The thread's end of the connection with the media service. */
type ThreadPort = Pick<MessagePort, 'on' | 'postMessage' | 'close'>;

/** One thread of the media service: it owns sockets, pacing and agents, apart from signalling. */
class MediaThread {
  readonly #outgoing = new TurnBatch<WorkerMessage>((messages) => this.port.postMessage(messages));

  constructor(
    private readonly port: ThreadPort,
    private readonly settings: WorkerSettings,
  ) {}

  start(): void {
    this.#run().catch((error: unknown) => this.#fail(error));
  }

  #post(message: WorkerMessage): void {
    this.#outgoing.push(message);
  }

  #closePort(): void {
    this.#outgoing.flush();
    this.port.close();
  }

  #workerLog(bindings: object): Log {
    const at =
      (level: LogLevel) =>
      (fields: LogFields, event: string): void =>
        this.#post({ type: 'log', level, fields: { ...bindings, ...fields }, event });
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => this.#workerLog({ ...bindings, ...fields }),
    };
  }

  #handle(endpoint: RtpEndpoint, newFork: ThreadAgents['newFork'], command: CallCommand): void {
    const reply = (requestId: number, answer: WorkerReply): void => this.#post({ type: 'reply', requestId, reply: answer });
    switch (command.type) {
      case 'connect-agent':
        void this.#connectAgent(endpoint, command).then((answer) => reply(command.requestId, answer));
        break;
      case 'leg':
        endpoint.command(command.callId, command.command);
        break;
      case 'start-fork': {
        const { callId, fork } = command;
        const emit = (event: LegEvent): void => this.#post({ type: 'leg-event', callId, event });
        endpoint.startFork(callId, fork.streamSid, newFork(fork, emit, this.#workerLog({ call_id: callId })));
        break;
      }
      case 'open':
        this.#open(endpoint, command.leg);
        break;
      case 'open-ahead': {
        const { callId } = command.leg;
        endpoint.openAhead(command.leg, (event) => this.#post({ type: 'leg-event', callId, event }));
        break;
      }
      case 'change':
        try {
          endpoint.changeLeg(command.callId, command.change);
          reply(command.requestId, { type: 'changed' });
        } catch (error) {
          reply(command.requestId, { type: 'refused', message: errorText(error) });
        }
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
      case 'leave':
        endpoint.leave();
        reply(command.requestId, { type: 'left' });
        break;
      case 'shut-down':
        // Without sockets, timers and the port, nothing keeps the thread alive.
        endpoint.close();
        this.#closePort();
        break;
      default:
        assertNever(command);
    }
  }

  async #connectAgent(
    endpoint: RtpEndpoint,
    { callId, agent, isAhead }: Extract<WorkerCommand, { type: 'connect-agent' }>,
  ): Promise<WorkerReply> {
    const emit = (event: LegEvent): void => this.#post({ type: 'leg-event', callId, event });
    try {
      await (isAhead ? endpoint.connectAhead(callId, agent, emit) : endpoint.connectAgent(callId, agent, emit));
      return { type: 'agent-connected' };
    } catch (error) {
      const message = errorText(error);
      return error instanceof AgentUnavailableError ? { type: 'agent-unavailable', message } : { type: 'refused', message };
    }
  }

  #open(endpoint: RtpEndpoint, leg: LegDescription): void {
    const { callId } = leg;
    const emit = (event: LegEvent): void => this.#post({ type: 'leg-event', callId, event });
    try {
      endpoint.openLeg(leg, emit);
    } catch (error) {
      const log = this.#workerLog({ call_id: callId });
      log.error({ error: errorText(error) }, 'media.leg.not_opened');
      endpoint.closeLeg(callId);
      return emit({ type: 'media-lost' });
    }
    if (leg.watchesAnswerer === true) {
      const watch = new AnswererWatch((event, isDone) => {
        emit({ type: 'answered-by', event });
        if (isDone) endpoint.stopFork(callId, ANSWERER_FORK);
      });
      endpoint.startFork(callId, ANSWERER_FORK, watch);
    }
  }

  /** Also the sign that the thread does not hang. The timer alone does not keep it alive. */
  #reportDelays(endpoint: RtpEndpoint): void {
    setInterval(() => this.#post({ type: 'delays', delays: endpoint.takeDelays() }), DELAY_WINDOW_MS).unref();
  }

  async #loadAgents(counters: ReturnType<typeof noAgentCounters>): Promise<ThreadAgents> {
    const { openAgents } = await loadAgents();
    return openAgents(this.settings, counters);
  }

  async #run(): Promise<void> {
    const agentCounters = noAgentCounters();
    let agents: ThreadAgents | undefined;
    const loaded = (): ThreadAgents => {
      if (agents === undefined) throw new Error('agents are not loaded');
      return agents;
    };
    // One that follows another at a reload has everything loaded when its turn comes, and agents connected ahead of it.
    if (this.settings.waitsToBind) agents = await this.#loadAgents(agentCounters);
    const endpoint = new RtpEndpoint(this.settings, {
      clock: systemClock,
      log: this.#workerLog({}),
      random32: () => randomInt(2 ** 32),
      agentCounters,
      newAgent: (agent, host, log) => loaded().newAgent(agent, host, log),
      ...(this.settings.tellsRtcp ? { onRtcp: (seen) => this.#post({ type: 'rtcp', seen }) } : {}),
    });
    const carryOut = (command: CallCommand): void => this.#handle(endpoint, (...given) => loaded().newFork(...given), command);
    const gate = new CommandGate(carryOut);
    let take = (command: CallCommand): void => gate.take(command);
    let isBound = false;
    const bind = (isWhenFree: boolean): void => {
      if (isBound) return;
      try {
        if (!isWhenFree) endpoint.bind();
        else if (!endpoint.bindIfFree()) return void setTimeout(bind, BIND_AGAIN_MS, true).unref();
      } catch (error) {
        return this.#fail(error);
      }
      isBound = true;
      this.#reportDelays(endpoint);
      this.#post({ type: 'ready', rtpPorts: endpoint.rtpPorts });
    };
    this.port.on('message', (commands: readonly WorkerCommand[]) => {
      for (const command of commands)
        if (command.type === 'bind') bind(command.isWhenFree);
        else take(command);
    });
    if (!this.settings.waitsToBind) bind(false);
    // Half of what a thread loads: callers of an earlier process have their legs meanwhile.
    try {
      agents ??= await this.#loadAgents(agentCounters);
    } catch (error) {
      endpoint.close();
      throw error;
    }
    gate.open();
    take = carryOut;
  }

  #fail(error: unknown): void {
    this.#post({ type: 'failed', message: error instanceof Error ? error.message : 'unknown' });
    this.#closePort();
  }
}

/** Kept: a test runner asks anew at each import, also for what is loaded. */
let loading: Promise<typeof import('./agents.js')> | undefined;

/** Loads what agents need, once. */
export function loadAgents(): Promise<typeof import('./agents.js')> {
  loading ??= import('./agents.js');
  return loading;
}

/** Runs a thread's part of the media service until `shut-down`, or until it has failed. */
export function runMediaThread(port: ThreadPort, settings: WorkerSettings): void {
  new MediaThread(port, settings).start();
}
