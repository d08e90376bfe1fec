import { NO_DIALS } from './no-dials.js';
import { OPERATOR } from './providers.js';
import type { AgentAnswer, AgentRequest } from '../../src/gateway/model/agent.js';
import type { CallSnapshot } from '../../src/gateway/model/call-snapshot.js';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import type { E164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_AGENT_SETTINGS } from '../../src/gateway/model/agent-record.js';
import type { LegEvent } from '../../src/gateway/model/media.js';
import type { Route } from '../../src/gateway/model/records.js';
import type { CallFacts, StandIn } from '../../src/gateway/call/state.js';
import { TimerQueue } from '../../src/lib/timers.js';
import { CallRunner } from '../../src/gateway/call/call-runner.js';
import type { CallServices } from '../../src/gateway/call/call-services.js';
import { callFrom } from './call-data.js';
import { readSnapshot } from '../../src/gateway/call/call-snapshot.js';
import { NO_PROVIDER_USAGE } from '../../src/gateway/model/provider-usage.js';
import { NO_USAGE } from '../../src/gateway/admission/admission.js';
import { AgentUnavailableError, MediaUnavailableError, StoreUnavailableError } from '../../src/gateway/ports/ports.js';
import type { SrfAnswer, SrfDialog, SrfHandler, SrfRequest, SrfResponse } from '../../src/gateway/ports/signalling.js';
import { ok } from '../../src/lib/result.js';
import { silentLog } from '../../src/lib/log.js';
import { FACTS, INSIDE, LATE_FACTS, LOCAL, OTHER_INSIDE, OTHER_OUTSIDE, OUTSIDE } from './call-machine.js';
import { NUMBER, ROUTE } from './route.js';
import { toolOf } from './tool.js';
import { VirtualClock } from './virtual-clock.js';
import { NO_VOICE_SERVER } from './voice-server.js';

/** The agent's one tool is in the store, so that it is looked up before the agent is connected. */
const TOOLED: Route = {
  ...ROUTE,
  agent: {
    ...DEFAULT_AGENT_SETTINGS,
    agent_id: 'a',
    org_id: 'o',
    name: '',
    created_at: '',
    updated_at: '',
    tools: ['TL-1', { ...toolOf('o').tool, name: 'inline' }],
  },
};

/** Something that the call waits for, and that a schedule settles one way or the other. */
interface Pending {
  readonly name: string;
  readonly settle: (succeeds: boolean) => void;
}

/** A request of the carrier's within the call, and how often it was answered. */
export interface Asked {
  readonly method: string;
  readonly answers: number[];
}

/**
 * One call on the real runner, with everything around it played: each look-up, relay command and message waits until the schedule
 * settles it. Counts what was opened and what was said.
 */
export class RunnerBench {
  readonly clock = new VirtualClock();
  readonly records: CallRecord[] = [];
  readonly pending: Pending[] = [];
  readonly asked: Asked[] = [];
  readonly statuses: number[] = [];
  /** What the agent was told. */
  readonly told: AgentAnswer[] = [];
  readonly open = {
    agents: new Set<string>(),
    legs: new Set<string>(),
    sessions: new Set<string>(),
    leases: new Set<string>(),
    snapshots: new Set<string>(),
  };
  readonly runner: CallRunner;
  /** What requests of ours get that succeed, but for INVITEs. */
  answersWith = 200;
  byes = 0;
  ended = 0;
  /** How often a record was to be written: the store may be away. */
  writes = 0;
  /** How often an agent was to be connected. */
  connects = 0;
  hasDialog = false;
  isAcknowledged = false;
  #onCancel: () => void = () => undefined;
  #listeners = new Map<string, (...args: never[]) => void>();
  #sipDialog: SrfDialog | undefined;
  #kept: CallSnapshot | null = null;
  #onLegEvent: ((event: LegEvent) => void) | undefined;
  #isMoved = false;
  #reinvites: ((error: unknown, answer?: SrfAnswer) => void)[] = [];

  /**
   * @param standIn what stands in for an agent that cannot be reached
   * @param world what is otherwise than usual around the call
   */
  constructor(
    isLate: boolean,
    standIn: StandIn | null = null,
    private readonly world: {
      readonly route?: Route;
      readonly facts?: Partial<CallFacts>;
      readonly services?: Partial<CallServices>;
    } = {},
  ) {
    const request = this.#request('INVITE', isLate ? '' : FACTS.sdp);
    const response: SrfResponse = { send: (status) => this.statuses.push(status) };
    const { origin, own } = callFrom('anonymous');
    this.runner = CallRunner.invited(
      this.#services(),
      {
        origin: { ...origin, to: NUMBER, startedAtMs: this.clock.wallMs() },
        open: { request, response, sessionTimer: {} },
        called: NUMBER,
        claim: { header: undefined, date: undefined, callers: [] },
        authorization: [],
        facts: { ...(isLate ? LATE_FACTS : FACTS), standIn, ...world.facts },
        own,
      },
      () => (this.ended += 1),
    );
    request.on('cancel', () => this.runner.dispatch({ type: 'cancelled' }));
    this.runner.dispatch({ type: 'invited' });
  }

  /** Settles one of the things that are waited for. */
  async settle(index: number, succeeds: boolean): Promise<void> {
    const [one] = this.pending.splice(index % Math.max(1, this.pending.length), 1);
    one?.settle(succeeds);
    await turns();
  }

  /** Goes on in the usual way until the carrier has acknowledged the call and both sides talk. */
  async connect(answer: string): Promise<void> {
    while (this.pending.length > 0) await this.settle(0, true);
    this.say('ack', answer);
    await turns();
    while (this.pending.length > 0) await this.settle(0, true);
  }

  /** What was kept of the call, as Redis has it. */
  get kept(): CallSnapshot | null {
    return JSON.parse(JSON.stringify(this.#kept)) as CallSnapshot | null;
  }

  /** What was kept of the call is taken up by another process; this one's is as good as dead. */
  restart(snapshot = this.kept): CallRunner {
    const kept = snapshot === null ? undefined : readSnapshot(snapshot);
    if (kept === undefined) throw new Error('nothing was kept of the call');
    const runner = CallRunner.orphaned(this.#services(), kept, this.clock.wallMs(), () => (this.ended += 1));
    void runner.resume(kept.node);
    return runner;
  }

  cancel(): void {
    this.#onCancel();
  }

  /** In the call; nothing once drachtio-srf has no dialog. */
  say(event: 'ack' | 'destroy' | 'modify' | 'update', body = '', reason = ''): void {
    if (!this.hasDialog) return;
    if (event === 'ack') {
      this.isAcknowledged = true;
      return this.#sipDialog?.handle(this.#request('ACK', body), {} as SrfResponse);
    }
    if (event === 'destroy') {
      this.hasDialog = false;
      const listener = this.#listeners.get(event) as ((request: SrfRequest, reason: string) => void) | undefined;
      return listener?.(this.#request('BYE', body), reason);
    }
    this.#ask(event, this.#request(event === 'modify' ? 'INVITE' : 'UPDATE', body));
  }

  /** The carrier tells how a transfer goes. */
  notify(status: string, subscriptionState: string): void {
    if (!this.hasDialog) return;
    const headers: Readonly<Record<string, string>> = {
      Event: 'refer',
      'Subscription-State': subscriptionState,
      'Content-Type': 'message/sipfrag',
    };
    this.#ask('NOTIFY', { ...this.#request('NOTIFY', `SIP/2.0 ${status}\r\n`), get: (name: string) => headers[name] });
  }

  #ask(method: string, request: SrfRequest): void {
    const asked: Asked = { method, answers: [] };
    this.asked.push(asked);
    this.#sipDialog?.handle(request, { send: (status: number) => asked.answers.push(status) });
  }

  /** The agent asks for something, once there is one. */
  agentSays(request: AgentRequest): void {
    this.#onLegEvent?.({ type: 'agent-request', request });
  }

  /** The agent has played what it was to play. */
  agentFinishes(): void {
    this.#onLegEvent?.({ type: 'agent-finished', digits: '', finishedOnKey: '' });
  }

  /** The carrier's answer to our re-INVITE, when one is out. */
  answerReinvite(status: number, body: string): void {
    this.#reinvites.shift()?.(null, { status, body, raw: '', unanswered: null });
  }

  /** Everything that is under way comes to an end: what is waited for succeeds, timers run out. */
  async drain(): Promise<void> {
    for (let round = 0; round < 50 && (this.pending.length > 0 || this.ended === 0); round += 1) {
      while (this.pending.length > 0) await this.settle(0, true);
      this.clock.advance(1_000);
      await turns();
    }
  }

  #services(): CallServices {
    const { open } = this;
    return {
      trunksArePublic: false,
      mayMoveMedia: () => true,
      timers: new TimerQueue(this.clock),
      doNotCall: { add: () => Promise.resolve(1), find: () => Promise.resolve(new Set<E164>()) },
      identities: { verify: () => Promise.resolve(null) },
      routes: {
        lookup: (_number, call) => {
          if (call !== null) open.leases.add(call.call_id);
          return this.#wait(
            'lookup',
            () => ({ route: this.world.route ?? TOOLED, load: NO_USAGE, staleMs: null }),
            new StoreUnavailableError('away'),
          );
        },
        release: (callId) => void open.leases.delete(callId),
        disown: (callId) => void open.leases.delete(callId),
      },
      dials: NO_DIALS,
      others: { placeLeg: () => 'DIAL_NOT_ALLOWED', tell: () => false },
      calls: {
        write: ({ record }) => {
          this.writes += 1;
          return this.#wait('record', () => void this.records.push(record), new StoreUnavailableError('away'));
        },
      },
      snapshots: {
        persist: (snapshot) => {
          this.#kept = snapshot;
          open.snapshots.add(snapshot.call_id);
        },
        delete: (callId) => {
          this.#kept = null;
          open.snapshots.delete(callId);
        },
        written: () => Promise.resolve(),
        flush: () => Promise.resolve(),
        orphaned: () => Promise.resolve([]),
        ahead: () => Promise.resolve([]),
        take: () => Promise.resolve([]),
      },
      relay: {
        offer: (call) => this.#relay('offer', call.relayId, () => (this.#isMoved ? OTHER_INSIDE : INSIDE)),
        answer: (call) => this.#relay('answer', call.relayId, () => (this.#isMoved ? OTHER_OUTSIDE : OUTSIDE)),
        offerToCarrier: (call) => this.#relay('offerToCarrier', call.relayId, () => (this.#isMoved ? OTHER_OUTSIDE : OUTSIDE)),
        answerFromCarrier: (call) => this.#relay('answerFromCarrier', call.relayId, () => (this.#isMoved ? OTHER_INSIDE : INSIDE)),
        delete: (relayId) =>
          this.#wait('delete', () => (open.sessions.delete(relayId), null), new MediaUnavailableError('gone')).catch(
            () => (open.sessions.delete(relayId), null),
          ),
        figures: () => Promise.resolve(null),
        nodeOf: () => 'node',
        adopt: () => true,
        leave: () => (this.#isMoved = true),
      },
      endpoint: {
        connectAgent: (callId, _agent, onEvent) => {
          this.#onLegEvent = onEvent;
          return this.#agent(callId);
        },
        send: (_callId, command) => {
          if (command.do === 'notify-agent') this.told.push(command.answer);
        },
        startFork: () => undefined,
        reserve: (callId) => this.#leg('reserve', callId, LOCAL),
        open: (leg) => this.#leg('open', leg.callId, undefined),
        change: () => this.#wait('move', () => undefined, new MediaUnavailableError('gone')),
        figures: () => Promise.resolve(null),
        close: (callId) => {
          open.agents.delete(callId);
          open.legs.delete(callId);
          return Promise.resolve(null);
        },
      },
      sessions: {
        begin: () => Promise.resolve(null),
        used: () => undefined,
        end: () => undefined,
        usage: () => Promise.resolve(NO_PROVIDER_USAGE),
      },
      srf: this.#srf(),
      gate: null,
      newKey: () => new Uint8Array(30),
      agentSideSrtp: false,
      tools: { find: () => this.#wait('tools', () => [], new StoreUnavailableError('away')) },
      voiceServer: NO_VOICE_SERVER,
      toolRunner: {
        run: (_orgId, _tool, input) => this.#wait('tool', () => ok({ result: input, httpStatus: 200 }), new Error('a bug of the runner')),
      },
      isTraced: true,
      operatorAgent: OPERATOR,
      clock: this.clock,
      log: silentLog,
      retryAfterSeconds: () => 1,
      glareDelayMs: () => 500,
      referReason: 'DECLINED',
      ...this.world.services,
    };
  }

  #srf(): CallServices['srf'] {
    const none = (): never => {
      throw new Error('not part of this bench');
    };
    return {
      invite: none,
      handle: none,
      use: none,
      onConnect: none,
      options: none,
      onLost: none,
      connect: none,
      disconnect: none,
      withdraw: none,
      restore: () => this.#dialog(),
      snapshot: () => ({ id: 'd', invite: '', localTag: '', contact: '' }),
      place: none,
      register: none,
      forget: () => {
        this.hasDialog = false;
      },
      createUAS: (_request, _response, _options, callback) => {
        void this.#wait('200', () => this.#newDialog(), new Error('unknown transaction')).then(
          (dialog) => callback(null, dialog),
          (error: unknown) => callback(error),
        );
      },
      request: (_id, { method }, onAnswer, onUpdate) => this.#requested(method, onAnswer, onUpdate),
    };
  }

  #requested(method: string, onAnswer: (error: unknown, answer?: SrfAnswer) => void, onUpdate: SrfHandler | undefined): void {
    if (method === 'INVITE') {
      this.#reinvites.push(onAnswer);
      if (onUpdate !== undefined) this.#listeners.set('crossing-update', onUpdate);
      return;
    }
    if (method === 'BYE') this.byes += 1;
    void this.#wait(method, () => ({ status: this.answersWith, body: '', raw: '', unanswered: null }), new Error('not sent')).then(
      (answer) => onAnswer(null, answer),
      (error: unknown) => onAnswer(error),
    );
  }

  #newDialog(): SrfDialog {
    this.statuses.push(200);
    return this.#dialog();
  }

  #dialog(): SrfDialog {
    this.hasDialog = true;
    return (this.#sipDialog = {
      id: 'd',
      sip: { callId: 's', localTag: 'l', remoteTag: 'r' },
      local: { contact: '' },
      handle: () => undefined,
      on: (event: string, listener: (...args: never[]) => void) => void this.#listeners.set(event, listener),
    });
  }

  #relay(name: string, relayId: string, sdp: () => string): Promise<{ sdp: string }> {
    this.open.sessions.add(relayId);
    return this.#wait(name, () => ({ sdp: sdp() }), new MediaUnavailableError('no answer'));
  }

  #agent(callId: string): Promise<void> {
    this.connects += 1;
    this.open.agents.add(callId);
    return this.#wait('agent', () => undefined, new AgentUnavailableError('refused'));
  }

  #leg<T>(name: string, callId: string, value: T): Promise<T> {
    this.open.legs.add(callId);
    return this.#wait(name, () => value, new MediaUnavailableError('no room'));
  }

  #wait<T>(name: string, value: () => T, error: Error): Promise<T> {
    return new Promise((resolve, reject) => {
      this.pending.push({ name, settle: (succeeds) => (succeeds ? resolve(value()) : reject(error)) });
    });
  }

  #request(method: string, body: string): SrfRequest {
    const header = (name: string): string | undefined => (name === 'Content-Type' && body !== '' ? 'application/sdp' : undefined);
    return {
      method,
      uri: `sip:${NUMBER}@gw`,
      body,
      protocol: 'tls',
      source_address: '203.0.113.7',
      source_port: 5061,
      isNewInvite: true,
      msg: { raw: '', headers: {} },
      get: header,
      has: () => true,
      getParsedHeader: () => [],
      on: (_event, listener) => {
        this.#onCancel = listener;
      },
    };
  }
}

/** Lets promises that are settled be heard. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await Promise.resolve();
}
