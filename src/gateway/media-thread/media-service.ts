import type { LegCommand } from '../model/leg-command.js';
import type { AgentConnectionLimits, AgentDescription, ForkSettings } from '../model/agent.js';
import type { LegChange, LegDescription, LegEvent, LegFigures, MediaAddress, MediaDelays } from '../model/media.js';
import { isNote } from '../model/media.js';
import type { RtcpSeen } from '../../lib/observed.js';
import { publish } from '../ports/events.js';
import { AgentUnavailableError, MediaUnavailableError, type MediaEndpoint } from '../ports/ports.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { PassingMap } from '../../lib/passing-map.js';
import { systemClock } from '../../lib/system-clock.js';
import type { EndpointCounters } from '../media/endpoint.js';
import { KernelDropWatch, readKernelDrops } from '../media/kernel-drops.js';
import { CALLS_PER_SOCKET_PAIR } from '../media/port-pair.js';
import { WorkerHandle } from './worker-handle.js';
import type { WorkerCommand, WorkerSettings } from './worker-messages.js';

export interface MediaServiceOptions {
  /** A literal address of this machine, the destination of legs' packets. */
  readonly address: string;
  /** Both inclusive: an even port and the next for each 64 calls, divided among the workers. */
  readonly portMin: number;
  readonly portMax: number;
  /** Worker threads. */
  readonly workers: number;
  /** Time without the caller's RTP, hold excepted, that causes `media-timeout`. */
  readonly mediaTimeoutMs: number;
  /** Path or name of the speech program; default `espeak-ng`. */
  readonly speechCommand?: string;
  readonly agents: AgentConnectionLimits;
  /** `<Play>` may name private and loopback addresses; false unless given. */
  readonly webhooksAllowPrivate?: boolean;
  /** Another process has the ports until it resolves. */
  readonly bindAfter?: Promise<void>;
  /** Gets the RTCP of all legs, if set. */
  readonly onRtcp?: ((seen: RtcpSeen) => void) | undefined;
}

export interface MediaAhead {
  /** The leg is opened together with the sockets, and `open` takes it. Throws `MediaUnavailableError` without such a port. */
  open(leg: LegDescription): void;
  /** After `open`; `connectAgent` takes it. Rejects with `AgentUnavailableError` or `MediaUnavailableError`. */
  connectAgent(callId: string, agent: AgentDescription): Promise<void>;
  /** The sockets are bound as soon as the other process has closed its own, before it has ended. */
  bindWhenFree(): void;
}

/** Sums over all workers; `maxLateMs` and `receiveBufferBytes` are the worst. */
export interface MediaCounters extends Pick<
  EndpointCounters,
  | 'legs'
  | 'strangerPackets'
  | 'notAuthenticPackets'
  | 'malformedPackets'
  | 'sendErrors'
  | 'earlierCallPackets'
  | 'receiveBufferBytes'
  | 'maxLateMs'
> {
  /** Each worker's counters; `null`: it did not answer. */
  readonly workers: readonly (EndpointCounters | null)[];
  /** Datagrams that the kernel dropped because a receive buffer was full; `null`: unknown. */
  readonly kernelDrops: number | null;
  readonly workerRestarts: number;
}

export interface MediaService extends MediaEndpoint {
  /** Capacity of the sockets, in calls. */
  readonly capacity: number;
  /** Legs that are open or have a reserved port pair. */
  readonly legs: number;
  /** Resolves when the sockets are bound. Rejects with `MediaUnavailableError` when a worker has no usable port. */
  ready(): Promise<void>;
  /** What is done for calls that another process still has, before the sockets are bound. */
  readonly ahead: MediaAhead;
  counters(): Promise<MediaCounters>;
  /**
   * Of half a second, of the worst media thread. Frames are a second late or more while the kernel drops datagrams that a thread did not read
   * in time, or while a thread hangs.
   */
  readonly delays: MediaDelays;
  /** Closes the sockets for the next process, which has the calls: neither their peers nor their agents are told. Never rejects. */
  leave(): Promise<void>;
  /** Closes all legs, sockets and threads. */
  shutdown(): Promise<void>;
}

const WATCH_MS = 500;
/** A thread that has not reported this long gets no new calls; it is replaced after the second time. */
const SILENT_MS = 1_500;
const HUNG_MS = 8_000;
/** A thread whose receive buffers are full is at least so far behind. */
const DROPPING_DELAY_MS = 1_000;
const NO_DELAYS: MediaDelays = { frameMs: 0, arrivalMs: 0 };
const SHUTDOWN_LIMIT_MS = 2_000;
/** How long a leg of a dead thread waits for the next thread. */
const REPLACEMENT_LIMIT_MS = 10_000;
/** The longest pause before the replacement of a worker that keeps dying; the pause doubles each time. */
const MAX_RESTART_DELAY_MS = 10_000;
const FIRST_RESTART_DELAY_MS = 100;
/** Sockets in total: enough for 16,384 calls. */
const MAX_SOCKET_PAIRS = 256;

/** An RTP port, and the legs that have it or are to have it. */
interface Place {
  readonly rtpPort: number;
  isBound: boolean;
  legs: number;
}

interface OpenLeg {
  readonly slot: WorkerSlot;
  onEvent: (event: LegEvent) => void;
  /** The agent was connected: if its worker dies, it is lost too. */
  hasAgent: boolean;
  /** `null`: it has none yet. */
  readonly place: Place | null;
  /** False: there is an agent, or a port is reserved. */
  readonly isOpen: boolean;
}

/** A worker's share of the ports, and its current worker. */
interface WorkerSlot {
  readonly settings: WorkerSettings;
  worker: WorkerHandle;
  readonly places: readonly Place[];
  /** 0: the worker starts, or has died. */
  capacity: number;
  legs: number;
  delays: MediaDelays;
  /** When it last reported, which it does each half second. */
  reportedMs: number;
  restartDelayMs: number;
  restartTimer: NodeJS.Timeout | undefined;
  /** Legs at a port of this share, which wait for the next worker. */
  readonly waiting: Set<() => void>;
}

/** Starts the worker threads, and binds their sockets unless another process has the ports. Rejects as `ready` does. */
export async function createMediaService(options: MediaServiceOptions, log: Log, clock: Clock = systemClock): Promise<MediaService> {
  const shares = sharePorts(options);
  const service = new ThreadedMediaService(
    shares.map((rtpPorts) => ({
      address: options.address,
      rtpPorts,
      mediaTimeoutMs: options.mediaTimeoutMs,
      speechCommand: options.speechCommand ?? 'espeak-ng',
      agents: options.agents,
      webhooksAllowPrivate: options.webhooksAllowPrivate ?? false,
      tellsRtcp: options.onRtcp !== undefined,
      waitsToBind: options.bindAfter !== undefined,
    })),
    options,
    log,
    clock,
  );
  if (options.bindAfter === undefined) await service.ready();
  return service;
}

function sharePorts(options: MediaServiceOptions): number[][] {
  const first = options.portMin + (options.portMin % 2);
  const shares = Array.from({ length: Math.max(1, options.workers) }, (): number[] => []);
  for (let port = first, pair = 0; port + 1 <= options.portMax && pair < MAX_SOCKET_PAIRS; port += 2, pair += 1) {
    shares[pair % shares.length]?.push(port);
  }
  return shares.filter((share, index) => share.length > 0 || index === 0);
}

class ThreadedMediaService implements MediaService {
  readonly #slots: readonly WorkerSlot[];
  readonly #legs = new PassingMap<string, OpenLeg>();
  /** Who gets what an agent still notes while its leg closes. */
  readonly #closing = new PassingMap<string, OpenLeg['onEvent']>();
  readonly #readDrops: () => Promise<number | null>;
  readonly #dropWatch: KernelDropWatch;
  #workerRestarts = 0;
  #isShuttingDown = false;
  readonly ahead: MediaAhead = {
    open: (leg) => {
      const slot = this.#slotOf(leg.localRtpPort);
      if (slot === undefined) throw new MediaUnavailableError(`no media worker has port ${String(leg.localRtpPort)}`);
      this.#enter(leg.callId, { slot, onEvent: () => undefined, hasAgent: false, place: placeOf(slot, leg.localRtpPort), isOpen: false });
      slot.worker.send({ type: 'open-ahead', leg });
    },
    connectAgent: async (callId, agent) => {
      const slot = this.#legs.get(callId)?.slot;
      if (slot !== undefined) await this.#askForAgent(slot, callId, agent, true);
    },
    bindWhenFree: () => {
      for (const { worker } of this.#slots) worker.send({ type: 'bind', isWhenFree: true });
    },
  };
  #cancelWatch: CancelTimer | undefined;
  #ready: Promise<void> | undefined;

  constructor(
    settings: readonly WorkerSettings[],
    private readonly options: Pick<MediaServiceOptions, 'onRtcp' | 'bindAfter'>,
    private readonly log: Log,
    private readonly clock: Clock,
  ) {
    const [first] = settings;
    const ports = settings.flatMap(({ rtpPorts }) => rtpPorts);
    this.#readDrops = () => readKernelDrops(first?.address ?? '', ports);
    this.#dropWatch = new KernelDropWatch(this.#readDrops, clock, log);
    this.#slots = settings.map((share) => {
      const slot: Omit<WorkerSlot, 'worker'> = {
        settings: share,
        places: share.rtpPorts.map((rtpPort) => ({ rtpPort, isBound: false, legs: 0 })),
        capacity: 0,
        legs: 0,
        delays: NO_DELAYS,
        reportedMs: clock.nowMs(),
        restartDelayMs: FIRST_RESTART_DELAY_MS,
        restartTimer: undefined,
        waiting: new Set(),
      };
      return Object.assign(slot, { worker: this.#startWorker(slot, share) });
    });
    this.#watchLater();
  }

  get capacity(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.capacity, 0);
  }

  get legs(): number {
    return this.#legs.size;
  }

  get delays(): MediaDelays {
    const silences = this.#slots.map((slot) => this.#silenceMs(slot)).filter((silentMs) => silentMs > SILENT_MS);
    const dropping = this.#dropWatch.isDropping ? DROPPING_DELAY_MS : 0;
    return {
      frameMs: Math.max(dropping, ...silences, ...this.#slots.map(({ delays }) => delays.frameMs)),
      arrivalMs: Math.max(0, ...this.#slots.map(({ delays }) => delays.arrivalMs)),
    };
  }

  ready(): Promise<void> {
    this.#ready ??= this.#bound().catch(async (error: unknown) => {
      await this.shutdown();
      throw error;
    });
    return this.#ready;
  }

  async #bound(): Promise<void> {
    for (const slot of this.#slots) {
      setBound(slot, await slot.worker.ready);
      slot.reportedMs = this.clock.nowMs();
    }
    this.log.info({ workers: this.#slots.length, capacity: this.capacity }, 'media.ready');
  }

  async connectAgent(callId: string, agent: AgentDescription, onEvent: (event: LegEvent) => void): Promise<void> {
    const startedMs = this.clock.nowMs();
    const connected = (isConnected: boolean): void =>
      publish('agent.connect', { agent: agent.kind, isConnected, tookMs: this.clock.nowMs() - startedMs });
    try {
      await this.#connectAgent(callId, agent, onEvent);
    } catch (error) {
      connected(false);
      throw error;
    }
    connected(true);
  }

  async #connectAgent(callId: string, agent: AgentDescription, onEvent: (event: LegEvent) => void): Promise<void> {
    if (this.#isShuttingDown) throw new MediaUnavailableError('the media endpoint is shutting down');
    const present = this.#legs.get(callId);
    // A port pair reserved earlier has no listener.
    if (present !== undefined) present.onEvent = onEvent;
    const { slot } = present ?? this.#waitingLeg(callId, onEvent);
    await this.#askForAgent(slot, callId, agent, false);
    const leg = this.#legs.get(callId);
    if (leg !== undefined) leg.hasAgent = true;
  }

  async #askForAgent({ worker }: WorkerSlot, callId: string, agent: AgentDescription, isAhead: boolean): Promise<void> {
    const reply = await worker.request((requestId) => ({ type: 'connect-agent', requestId, callId, agent, isAhead }));
    if (reply.type === 'agent-unavailable') throw new AgentUnavailableError(reply.message);
    if (reply.type !== 'agent-connected') throw new MediaUnavailableError(reply.type === 'refused' ? reply.message : 'unexpected reply');
  }

  #slotOf(localRtpPort: number): WorkerSlot | undefined {
    return this.#slots.find(({ settings }) => settings.rtpPorts.includes(localRtpPort));
  }

  startFork(callId: string, fork: ForkSettings, onEvent: (event: LegEvent) => void): void {
    if (this.#isShuttingDown) throw new MediaUnavailableError('the media endpoint is shutting down');
    const { slot } = this.#legs.get(callId) ?? this.#waitingLeg(callId, onEvent);
    slot.worker.send({ type: 'start-fork', callId, fork });
  }

  send(callId: string, command: LegCommand): void {
    this.#legs.get(callId)?.slot.worker.send({ type: 'leg', callId, command });
  }

  async reserve(callId: string, beside: string | null = null): Promise<MediaAddress> {
    if (this.#isShuttingDown) throw new MediaUnavailableError('the media endpoint is shutting down');
    const leg = this.#waitingLeg(callId, () => undefined, beside);
    if (leg.place !== null) throw new MediaUnavailableError('the call has a media leg already');
    const { places, settings } = leg.slot;
    const place = leastUsed(places);
    if (place === undefined) return this.#refuse(callId, 'no media port pair is free');
    this.#forget(callId);
    this.#enter(callId, { ...leg, place });
    const { rtpPort } = place;
    return { address: settings.address, rtpPort, rtcpPort: rtpPort + 1 };
  }

  async open(leg: LegDescription, onEvent: (event: LegEvent) => void): Promise<void> {
    const { callId, localRtpPort: rtpPort } = leg;
    if (this.#isShuttingDown) throw new MediaUnavailableError('the media endpoint is shutting down');
    const present = this.#legs.get(callId);
    if (present?.isOpen === true) throw new MediaUnavailableError('the call has a media leg already');
    this.#forget(callId);
    const slot = present?.slot ?? (await this.#slotWith(rtpPort));
    const place = placeOf(slot, rtpPort);
    this.#enter(callId, { slot, onEvent, hasAgent: present?.hasAgent === true, place, isOpen: true });
    if (place?.isBound !== true || place.legs > CALLS_PER_SOCKET_PAIR)
      return this.#refuse(callId, `port ${String(rtpPort)} of the media endpoint has no free slot`);
    slot.worker.send({ type: 'open', leg });
  }

  async change(callId: string, change: LegChange): Promise<void> {
    const leg = this.#legs.get(callId);
    if (leg?.isOpen !== true) throw new MediaUnavailableError('the call has no media leg');
    const reply = await leg.slot.worker.request((requestId) => ({ type: 'change', requestId, callId, change }));
    if (reply.type === 'refused') throw new MediaUnavailableError(reply.message);
  }

  async figures(callId: string): Promise<LegFigures | null> {
    return this.#figures(this.#legs.get(callId)?.slot, (requestId) => ({ type: 'figures', requestId, callId }));
  }

  async close(callId: string): Promise<LegFigures | null> {
    const leg = this.#legs.get(callId);
    if (leg === undefined) return null;
    this.#forget(callId);
    this.#closing.set(callId, leg.onEvent);
    const figures = await this.#figures(leg.slot, (requestId) => ({ type: 'close', requestId, callId }));
    this.#closing.deleteOnly(callId, leg.onEvent);
    return figures;
  }

  async #figures(slot: WorkerSlot | undefined, command: (requestId: number) => WorkerCommand): Promise<LegFigures | null> {
    if (slot === undefined) return null;
    try {
      const reply = await slot.worker.request(command);
      return reply.type === 'figures' ? reply.figures : null;
    } catch {
      // The worker died, and the leg with it.
      return null;
    }
  }

  async counters(): Promise<MediaCounters> {
    const kernelDrops = await this.#readDrops();
    const replies = await Promise.allSettled(
      this.#slots.map((slot) => slot.worker.request((requestId) => ({ type: 'counters', requestId }))),
    );
    const workers = replies.map((reply) => (reply.status === 'fulfilled' && reply.value.type === 'counted' ? reply.value.counters : null));
    const answered = workers.filter((counters) => counters !== null);
    const sum = (figure: Exclude<keyof EndpointCounters, 'agents'>): number => answered.reduce((all, one) => all + one[figure], 0);
    return {
      legs: sum('legs'),
      strangerPackets: sum('strangerPackets'),
      notAuthenticPackets: sum('notAuthenticPackets'),
      malformedPackets: sum('malformedPackets'),
      sendErrors: sum('sendErrors'),
      earlierCallPackets: sum('earlierCallPackets'),
      receiveBufferBytes: answered.length === 0 ? 0 : Math.min(...answered.map(({ receiveBufferBytes }) => receiveBufferBytes)),
      maxLateMs: Math.max(0, ...answered.map(({ maxLateMs }) => maxLateMs)),
      workers,
      kernelDrops,
      workerRestarts: this.#workerRestarts,
    };
  }

  async leave(): Promise<void> {
    this.#isShuttingDown = true;
    await Promise.allSettled(this.#slots.map(({ worker }) => worker.request((requestId) => ({ type: 'leave', requestId }))));
  }

  async shutdown(): Promise<void> {
    this.#isShuttingDown = true;
    this.#dropWatch.stop();
    this.#cancelWatch?.();
    for (const { restartTimer, waiting } of this.#slots) {
      clearTimeout(restartTimer);
      for (const proceed of [...waiting]) proceed();
    }
    await Promise.all(this.#slots.filter((slot) => !slot.worker.hasExited).map((slot) => slot.worker.shutDown(SHUTDOWN_LIMIT_MS)));
    this.#legs.clear();
  }

  /** Where the call has its agent or port pair already, else on a worker with capacity. */
  #waitingLeg(callId: string, onEvent: (event: LegEvent) => void, beside: string | null = null): OpenLeg {
    const present = this.#legs.get(callId);
    if (present?.isOpen === true) throw new MediaUnavailableError('the call has a media leg already');
    if (present !== undefined) return present;
    const slot = (beside === null ? undefined : this.#legs.get(beside)?.slot) ?? this.#chooseSlot();
    const leg: OpenLeg = { slot, onEvent, hasAgent: false, place: null, isOpen: false };
    this.#enter(callId, leg);
    return leg;
  }

  /** The worker with the fewest legs. */
  #chooseSlot(): WorkerSlot {
    let best: WorkerSlot | undefined;
    for (const slot of this.#slots) {
      if (isFull(slot) || this.#silenceMs(slot) > SILENT_MS) continue;
      if (best === undefined || slot.legs < best.legs) best = slot;
    }
    if (best === undefined) throw new MediaUnavailableError('no media worker has capacity');
    return best;
  }

  /** The worker that has this port, once it runs. */
  async #slotWith(localRtpPort: number): Promise<WorkerSlot> {
    const slot = this.#slotOf(localRtpPort);
    if (slot?.capacity === 0) await this.#replacementOf(slot);
    if (slot === undefined || isFull(slot))
      throw new MediaUnavailableError(`port ${String(localRtpPort)} has no media worker with capacity`);
    return slot;
  }

  /** Resolves when the next worker runs, or after the time limit. */
  #replacementOf({ waiting }: WorkerSlot): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.clock.setTimer(REPLACEMENT_LIMIT_MS, () => proceed());
      const proceed = (): void => {
        cancel();
        waiting.delete(proceed);
        resolve();
      };
      waiting.add(proceed);
    });
  }

  /** Frees what there is of the call. */
  async #refuse(callId: string, message: string): Promise<never> {
    await this.close(callId);
    throw new MediaUnavailableError(message);
  }

  #enter(callId: string, leg: OpenLeg): void {
    this.#legs.set(callId, leg);
    count(leg, 1);
  }

  #forget(callId: string): void {
    const leg = this.#legs.get(callId);
    if (leg === undefined) return;
    this.#legs.delete(callId);
    count(leg, -1);
  }

  #startWorker(slot: Omit<WorkerSlot, 'worker'>, settings: WorkerSettings): WorkerHandle {
    const worker = new WorkerHandle(
      settings,
      {
        onLegEvent: (callId, event) =>
          (this.#legs.get(callId)?.onEvent ?? (isNote(event) ? this.#closing.get(callId) : undefined))?.(event),
        onRtcp: (seen) => this.options.onRtcp?.(seen),
        onDelays: (delays) => Object.assign(slot, { delays, reportedMs: this.clock.nowMs() }),
        onExit: () => this.#onWorkerExit(slot as WorkerSlot),
      },
      this.log,
    );
    void this.options.bindAfter?.then(() => worker.send({ type: 'bind', isWhenFree: false }));
    return worker;
  }

  /** How long a thread that should report has not; 0: it starts. */
  #silenceMs({ capacity, worker, reportedMs }: WorkerSlot): number {
    return capacity === 0 || worker.hasExited ? 0 : this.clock.nowMs() - reportedMs;
  }

  #watchLater(): void {
    const dueMs = this.clock.nowMs() + WATCH_MS;
    this.#cancelWatch = this.clock.setTimer(WATCH_MS, () => {
      const nowMs = this.clock.nowMs();
      // Where this thread stood still, reports of the others wait unread.
      if (nowMs - dueMs > WATCH_MS) for (const slot of this.#slots) slot.reportedMs = nowMs;
      for (const slot of this.#slots) {
        if (this.#silenceMs(slot) < HUNG_MS) continue;
        this.log.error({ silent_ms: Math.round(this.#silenceMs(slot)) }, 'media.worker.hung');
        slot.worker.terminate();
      }
      this.#watchLater();
    });
  }

  #onWorkerExit(slot: WorkerSlot): void {
    setBound(slot, []);
    slot.delays = NO_DELAYS;
    if (this.#isShuttingDown) return;
    const lost = [...this.#legs].filter(([, leg]) => leg.slot === slot);
    this.log.error(
      { legs: lost.length, restart_delay_ms: slot.restartDelayMs, hint: 'its calls go on in the next one' },
      'media.worker.died',
    );
    for (const [callId, leg] of lost) {
      this.#forget(callId);
      if (leg.isOpen || leg.hasAgent) leg.onEvent({ type: 'media-lost' });
    }
    slot.restartTimer = setTimeout(() => void this.#restart(slot), slot.restartDelayMs);
    slot.restartDelayMs = Math.min(2 * slot.restartDelayMs, MAX_RESTART_DELAY_MS);
  }

  async #restart(slot: WorkerSlot): Promise<void> {
    this.#workerRestarts += 1;
    const worker = this.#startWorker(slot, slot.settings);
    slot.worker = worker;
    try {
      const rtpPorts = await worker.ready;
      if (slot.worker !== worker || worker.hasExited) return;
      slot.reportedMs = this.clock.nowMs();
      setBound(slot, rtpPorts);
      slot.restartDelayMs = FIRST_RESTART_DELAY_MS;
      this.log.info({ capacity: slot.capacity, waiting_legs: slot.waiting.size }, 'media.worker.replaced');
      for (const proceed of [...slot.waiting]) proceed();
    } catch (error) {
      // Its exit follows, and with it the next attempt.
      this.log.error({ error: error }, 'media.worker.not_replaced');
    }
  }
}

function isFull({ worker, legs, capacity }: WorkerSlot): boolean {
  return worker.hasExited || legs >= capacity;
}

function setBound(slot: WorkerSlot, rtpPorts: readonly number[]): void {
  for (const place of slot.places) place.isBound = rtpPorts.includes(place.rtpPort);
  slot.capacity = rtpPorts.length * CALLS_PER_SOCKET_PAIR;
}

/** `null`: the port is not in its share. */
function placeOf({ places }: Pick<WorkerSlot, 'places'>, rtpPort: number): Place | null {
  return places.find((place) => place.rtpPort === rtpPort) ?? null;
}

/** The one with the fewest legs; `undefined`: all are full. */
function leastUsed(places: readonly Place[]): Place | undefined {
  let best: Place | undefined;
  for (const place of places) {
    if (place.isBound && place.legs < (best?.legs ?? CALLS_PER_SOCKET_PAIR)) best = place;
    if (best?.legs === 0) break;
  }
  return best;
}

function count({ slot, place }: OpenLeg, change: 1 | -1): void {
  slot.legs += change;
  if (place !== null) place.legs += change;
}
