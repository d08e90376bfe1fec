import type { LegCommand } from '../model/leg-command.js';
import { isIP, SocketAddress } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { AgentDescription } from '../model/agent.js';
import type { LegChange, LegDescription, LegEvent, LegFigures, MediaAddress, MediaDelays, MediaDirection } from '../model/media.js';
import { isNote } from '../model/media.js';
import type { RtcpSeen } from '../../lib/observed.js';
import type { Clock } from '../../lib/clock.js';
import { assertNever, errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { FRAME_MS } from '../../rtp/codec/g711.js';
import { ConferenceParty } from './conference.js';
import { EarlyMediaParty } from './early-media.js';
import { MediaLeg } from './leg.js';
import { noAgentCounters, type AgentCounters, type AgentHost, type LegAgent, type LegFork } from './leg-agent.js';
import { addressOf, EndpointFullError, isTaken, portPairFor, RestingPeers, type OpenLeg, type PortPair } from './port-pair.js';
import { RTP_HEADER_BYTES, uint32At } from '../../rtp/rtp-packet.js';
import type { ReceiveOutcome } from './rtp-receiver.js';
import { FrameDelay, SlotClock } from './slot-clock.js';
import { SocketPair } from './socket-pair.js';

/** How often a held leg looks after its agent and a digit without an end. */
const HELD_TICK_MS = 1_000;

export interface EndpointOptions {
  /** An address of this machine, the destination of legs' packets. */
  readonly address: string;
  /** Even ports for RTP; each next one is for RTCP. */
  readonly rtpPorts: readonly number[];
  readonly mediaTimeoutMs: number;
}

export interface EndpointDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly random32: () => number;
  /** Counters of the thread's agents. */
  readonly agentCounters?: AgentCounters;
  readonly newAgent: (description: Exclude<AgentDescription, { kind: 'party' | 'early-media' }>, host: AgentHost, log: Log) => LegAgent;
  /** Gets the RTCP of all legs, if set. */
  readonly onRtcp?: (seen: RtcpSeen) => void;
}

/** What became of packets, those of closed legs included, and how late the pacing was. */
export interface EndpointCounters {
  readonly legs: number;
  readonly packetsSent: number;
  readonly packetsReceived: number;
  readonly packetsLost: number;
  /** Arrived after their time to be played. */
  readonly packetsLate: number;
  /** Wake-ups at least a whole frame late. */
  readonly lateFrames: number;
  readonly agents: AgentCounters;
  readonly strangerPackets: number;
  readonly notAuthenticPackets: number;
  readonly malformedPackets: number;
  readonly sendErrors: number;
  /** Late packets of an ended call, from a peer whose next call uses the same port pair. */
  readonly earlierCallPackets: number;
  /** The smallest receive buffer that the system granted to a socket. */
  readonly receiveBufferBytes: number;
  /** The latest wake-up since the previous read of the counters, in milliseconds. */
  readonly maxLateMs: number;
}

interface LegAhead {
  readonly description: LegDescription;
  readonly onEvent: (event: LegEvent) => void;
}

/** The media endpoint's sockets and all legs on them. */
export class RtpEndpoint {
  readonly #portPairs: PortPair[] = [];
  readonly #legs = new Map<string, OpenLeg>();
  /** Each call's agent, from before its leg opens until it closes. */
  readonly #agents = new Map<string, LegAgent>();
  /** Those that cannot be started yet. */
  readonly #connecting = new Set<LegAgent>();
  /** Agents of calls that another process still has, and legs that are opened with the sockets. */
  readonly #agentsAhead = new Map<string, Promise<void>>();
  readonly #legsAhead = new Map<string, LegAhead>();
  /** Forks of calls whose leg is not open yet. */
  readonly #waitingForks = new Map<string, Map<string, LegFork>>();
  /** Of legs that may send. */
  readonly #frames: SlotClock;
  /** Of held legs. */
  readonly #heldTicks: SlotClock;
  #notAuthentic = 0;
  #malformed = 0;
  #earlierCall = 0;
  #receiveBufferBytes = 0;
  #maxLateMs = 0;
  readonly #frameDelay = new FrameDelay();
  #lateFrames = 0;
  /** Totals of closed legs and released agents. */
  readonly #closed = { packetsSent: 0, packetsReceived: 0, packetsLost: 0, packetsLate: 0 };

  /** Until `bind` agents can be connected, and nothing else. */
  constructor(
    private readonly options: EndpointOptions,
    private readonly dependencies: EndpointDependencies,
  ) {
    this.#frames = new SlotClock(dependencies.clock, (lateMs) => {
      this.#maxLateMs = Math.max(this.#maxLateMs, lateMs);
      if (lateMs >= FRAME_MS) this.#lateFrames += 1;
      this.#frameDelay.add(lateMs);
    });
    this.#heldTicks = new SlotClock(dependencies.clock, undefined, HELD_TICK_MS);
  }

  /**
   * Binds the sockets. Leaves out a taken port with a warning.
   * @throws EndpointFullError if none remains
   */
  static open(options: EndpointOptions, dependencies: EndpointDependencies): RtpEndpoint {
    const endpoint = new RtpEndpoint(options, dependencies);
    endpoint.bind();
    return endpoint;
  }

  /** @throws EndpointFullError if no socket can be bound */
  bind(): void {
    for (const rtpPort of this.options.rtpPorts) {
      const error = this.#openPortPair(rtpPort);
      if (error !== null) this.#warnOfPort(rtpPort, error);
    }
    if (this.#portPairs.length === 0) throw new EndpointFullError('no port of the media endpoint could be bound');
    this.#onBound();
  }

  /** The same, but only if all ports are free; false: the other process still has them. */
  bindIfFree(): boolean {
    if (this.options.rtpPorts.every((rtpPort) => this.#openPortPair(rtpPort) === null)) {
      this.#onBound();
      return true;
    }
    for (const { pair } of this.#portPairs.splice(0)) pair.close();
    return false;
  }

  #onBound(): void {
    this.#growReceiveBuffers();
    for (const [callId, { description, onEvent }] of this.#legsAhead)
      try {
        this.#openLeg(description, onEvent);
      } catch (error) {
        this.dependencies.log.warn({ call_id: callId, error: errorText(error) }, 'media.leg.not_opened_ahead');
      }
  }

  /** The leg of a call that another process still has: it is opened as soon as the sockets are ours, and `openLeg` takes it. */
  openAhead(description: LegDescription, onEvent: (event: LegEvent) => void): void {
    this.#legsAhead.set(description.callId, { description, onEvent });
  }

  /** Those that are bound. */
  get rtpPorts(): readonly number[] {
    return this.#portPairs.map(({ pair }) => pair.rtp.port);
  }

  /** Connects the agent of a call that another process still has; `connectAgent` takes it. Rejects with `AgentUnavailableError`. */
  connectAhead(callId: string, description: AgentDescription, onEvent: (event: LegEvent) => void): Promise<void> {
    const connected = this.#connect(callId, description, (event) => {
      // One that ends before the call is ours is of no use.
      if (isNote(event) || !this.#agentsAhead.delete(callId)) onEvent(event);
    });
    this.#agentsAhead.set(callId, connected);
    return connected;
  }

  /**
   * Creates a call's agent, in place of an earlier one, and connects it; or takes the one that `connectAhead` connects.
   * Rejects with `AgentUnavailableError`.
   */
  connectAgent(callId: string, description: AgentDescription, onEvent: (event: LegEvent) => void): Promise<void> {
    const ahead = this.#agentsAhead.get(callId);
    this.#agentsAhead.delete(callId);
    if (ahead !== undefined) this.#agents.get(callId)?.describe?.(description);
    return ahead === undefined
      ? this.#connect(callId, description, onEvent)
      : ahead.catch(() => this.#connect(callId, description, onEvent));
  }

  async #connect(callId: string, description: AgentDescription, onEvent: (event: LegEvent) => void): Promise<void> {
    this.#dismiss(callId);
    const host: AgentHost = {
      // An agent that was released only notes what was heard of it.
      emit: (event) => (this.#agents.get(callId) === agent || isNote(event)) && onEvent(event),
      sendDtmf: (event, durationMs) => this.#legs.get(callId)?.media.sendDigit(event, durationMs) ?? false,
      speak: () => this.#speak(callId),
      view: () => this.#legs.get(callId)?.media.view() ?? null,
    };
    const agent = this.#newAgent(callId, description, host);
    this.#agents.set(callId, agent);
    this.#connecting.add(agent);
    try {
      await agent.connect();
    } catch (error) {
      if (this.#agents.get(callId) === agent) this.#dismiss(callId);
      throw error;
    } finally {
      this.#connecting.delete(agent);
    }
  }

  #newAgent(callId: string, description: AgentDescription, host: AgentHost): LegAgent {
    const { random32, newAgent, log } = this.dependencies;
    const callerOf = (other: string): MediaLeg | null => this.#legs.get(other)?.media ?? null;
    switch (description.kind) {
      case 'party':
        return new ConferenceParty(callerOf(description.callId), random32());
      case 'early-media':
        return new EarlyMediaParty(callerOf(description.callId));
      default:
        return newAgent(description, host, log.child({ call_id: callId, ...description.owner }));
    }
  }

  /** Starts a call's leg, and its agent once that is connected: silence until then. */
  start(callId: string): void {
    const agent = this.#agents.get(callId);
    const isReady = agent === undefined || !(this.#connecting.has(agent) || this.#agentsAhead.has(callId));
    this.with(callId, (leg) => leg.start(isReady));
  }

  /** Copies the call's audio to a WebSocket from now on, or from the start of its leg. */
  startFork(callId: string, streamSid: string, fork: LegFork): void {
    const leg = this.#legs.get(callId);
    if (leg !== undefined) return leg.media.addFork(streamSid, fork);
    const waiting = this.#waitingForks.get(callId) ?? new Map<string, LegFork>();
    this.#waitingForks.set(callId, waiting.set(streamSid, fork));
  }

  /** Ends a fork; nothing when there is none. */
  stopFork(callId: string, streamSid: string): void {
    this.#waitingForks.get(callId)?.delete(streamSid);
    this.with(callId, (leg) => leg.removeFork(streamSid));
  }

  /** What the call wants of its leg or agent; nothing when they are gone. */
  command(callId: string, command: LegCommand): void {
    switch (command.do) {
      case 'start':
        return this.start(callId);
      case 'direct':
        return this.setDirection(callId, command.direction);
      case 'ring-back':
        return this.with(callId, (leg) => leg.setRingBack(command.isOn));
      case 'three-way':
        return this.with(callId, (leg) => leg.setThreeWay(true));
      case 'need-packets':
        return this.with(callId, (leg) => leg.needPackets());
      case 'take-digit':
        return this.with(callId, (leg) => leg.takeDigit(command.event, command.durationMs));
      case 'send-digit':
        return this.with(callId, (leg) => void leg.sendDigit(command.event, command.durationMs));
      case 'stop-fork':
        return this.stopFork(callId, command.streamSid);
      case 'notify-agent':
        return this.#agents.get(callId)?.notify(command.answer);
      default:
        assertNever(command);
    }
  }

  /**
   * Opens a leg.
   * @throws EndpointFullError without such a port or room on it; RangeError if the description is not usable
   */
  openLeg(description: LegDescription, onEvent: (event: LegEvent) => void): void {
    const { callId } = description;
    const ahead = this.#legsAhead.get(callId);
    this.#legsAhead.delete(callId);
    const leg = ahead === undefined ? undefined : this.#legs.get(callId);
    if (leg !== undefined && isDeepStrictEqual(ahead?.description, description)) return;
    // The call has changed meanwhile.
    if (leg !== undefined) this.#shut(leg);
    this.#openLeg(description, onEvent);
  }

  #openLeg(description: LegDescription, onEvent: (event: LegEvent) => void): void {
    const { callId, sipCallId } = description;
    const { onRtcp } = this.dependencies;
    if (this.#legs.has(callId)) throw new EndpointFullError('the call has a leg already');
    const remote = checkedAddress(description.remote);
    const portPair = portPairFor(this.#portPairs, description.localRtpPort, remote);
    const { pair } = portPair;
    const media = new MediaLeg(description, {
      clock: this.dependencies.clock,
      random32: this.dependencies.random32,
      transport: {
        sendRtp: (buffer, lengthBytes) => pair.rtp.send(leg.rtpPeer, buffer, lengthBytes),
        sendRtcp: (buffer, lengthBytes) => pair.rtcp.send(leg.rtcpPeer, buffer, lengthBytes),
      },
      mediaTimeoutMs: this.options.mediaTimeoutMs,
      onEvent,
      agent: () => this.#agents.get(callId),
      ...(onRtcp === undefined
        ? {}
        : {
            onRtcp: (direction, packet, atMs) => {
              const [own, peer] = [rtcpOf(addressOf(portPair)), rtcpOf(leg.remote)];
              const [from, to] = direction === 'in' ? [peer, own] : [own, peer];
              onRtcp({ sipCallId, from, to, packet: new Uint8Array(packet), atMs });
            },
          }),
    });
    const ticking = { tick: (skip: number, send: number) => this.#tick(leg, skip, send), again: () => this.#tickAgain(leg) };
    const leg: OpenLeg = { callId, media, portPair, remote, rtpPeer: -1, rtcpPeer: -1, ssrc: undefined, shunned: [], ticking, onEvent };
    this.#enter(leg);
    this.#legs.set(callId, leg);
    for (const [streamSid, fork] of this.#waitingForks.get(callId) ?? []) media.addFork(streamSid, fork);
    this.#waitingForks.delete(callId);
    this.#frames.add(ticking);
    if (description.startsAs !== undefined) {
      this.start(callId);
      this.setDirection(callId, description.startsAs);
    }
  }

  /**
   * Changes the leg's peer, or what the peer sends; packets from the old address then count as a stranger's.
   * @throws EndpointFullError without such a leg or if another one has that peer; RangeError if the address is not usable
   */
  changeLeg(callId: string, { remote: to, srtp, format }: LegChange): void {
    const leg = this.#legs.get(callId);
    if (leg === undefined) throw new EndpointFullError('the call has no leg');
    const remote = checkedAddress(to);
    if (isTaken(leg.portPair, remote, leg)) throw new EndpointFullError('the peer has another leg on these sockets');
    if (!isSame(leg.remote, remote)) {
      this.#part(leg);
      leg.remote = remote;
      this.#enter(leg);
    }
    leg.media.setFormat(format);
    leg.media.setKeys(srtp);
  }

  /** Changes the directions of media, as the peer announced them. A held leg has no frames; the first one after a hold goes out at once. */
  setDirection(callId: string, direction: MediaDirection): void {
    const leg = this.#legs.get(callId);
    if (leg === undefined) return;
    const wasHeld = leg.media.isHeld;
    this.with(callId, (media) => media.setDirection(direction));
    if (leg.media.isHeld === wasHeld) return;
    if (wasHeld) leg.ticking.tick(0, 1);
    // An agent may have ended the leg.
    if (this.#legs.get(callId) !== leg) return;
    const [from, to] = wasHeld ? [this.#heldTicks, this.#frames] : [this.#frames, this.#heldTicks];
    from.remove(leg.ticking);
    to.addTicked(leg.ticking);
  }

  /** Runs an action on a call's leg, if it is open. A leg that throws is lost; the others continue. */
  with(callId: string, action: (media: MediaLeg) => void): void {
    const leg = this.#legs.get(callId);
    if (leg !== undefined) this.#run(leg, action);
  }

  #run(leg: OpenLeg, action: (media: MediaLeg) => void): void {
    try {
      action(leg.media);
    } catch (error) {
      this.#lose(leg, error);
    }
  }

  /** Closes a leg and releases the agent; `null` if it is not open. */
  closeLeg(callId: string): LegFigures | null {
    this.#waitingForks.delete(callId);
    this.#agentsAhead.delete(callId);
    this.#legsAhead.delete(callId);
    this.#dismiss(callId);
    const leg = this.#legs.get(callId);
    return leg === undefined ? null : this.#shut(leg);
  }

  #shut(leg: OpenLeg): LegFigures {
    this.#legs.delete(leg.callId);
    this.#frames.remove(leg.ticking);
    this.#heldTicks.remove(leg.ticking);
    const figures = leg.media.close();
    this.#part(leg);
    addPackets(this.#closed, figures);
    return figures;
  }

  /** The leg's figures so far; `null` without a leg. */
  figures(callId: string): LegFigures | null {
    return this.#legs.get(callId)?.media.figures() ?? null;
  }

  /** Since the last look. */
  takeDelays(): MediaDelays {
    const delays = [...this.#legs.values()].flatMap(({ media }) => media.takeArrivalDelayMs() ?? []).sort((one, other) => one - other);
    return { frameMs: this.#frameDelay.take(), arrivalMs: Math.round(delays[Math.floor(delays.length / 2)] ?? 0) };
  }

  counters(): EndpointCounters {
    const maxLateMs = this.#maxLateMs;
    this.#maxLateMs = 0;
    const packets = { ...this.#closed };
    for (const { media } of this.#legs.values()) addPackets(packets, media.figures());
    for (const agent of this.#agents.values()) packets.packetsLate += agent.latePackets;
    return {
      legs: this.#legs.size,
      ...packets,
      lateFrames: this.#lateFrames,
      agents: this.dependencies.agentCounters ?? noAgentCounters(),
      strangerPackets: this.#portPairs.reduce((sum, { pair }) => sum + pair.strangers, 0),
      notAuthenticPackets: this.#notAuthentic,
      malformedPackets: this.#malformed,
      sendErrors: this.#portPairs.reduce((sum, portPair) => sum + portPair.pair.sendErrors, 0),
      earlierCallPackets: this.#earlierCall,
      receiveBufferBytes: this.#receiveBufferBytes,
      maxLateMs,
    };
  }

  /** Closes the sockets for another process, which has the calls from now on: neither their peers nor their agents are told. */
  leave(): void {
    for (const { ticking } of this.#legs.values()) for (const clock of [this.#frames, this.#heldTicks]) clock.remove(ticking);
    for (const { pair } of this.#portPairs) pair.close();
  }

  /** Closes all legs and sockets. */
  close(): void {
    for (const callId of [...this.#agents.keys(), ...this.#legs.keys()]) this.closeLeg(callId);
    for (const { pair } of this.#portPairs) pair.close();
  }

  /** `null`: both ports are bound. */
  #openPortPair(rtpPort: number): unknown {
    const byRtp = new Map<number, OpenLeg>();
    const byRtcp = new Map<number, OpenLeg>();
    try {
      const pair = SocketPair.open(
        this.options.address,
        rtpPort,
        (peer, datagram) => this.#receiveRtp(byRtp.get(peer), datagram),
        (peer, datagram) => this.#receiveRtcp(byRtcp.get(peer), datagram),
      );
      this.#portPairs.push({ pair, byRtp, byRtcp, resting: new RestingPeers() });
      return null;
    } catch (error) {
      return error;
    }
  }

  #warnOfPort(rtpPort: number, error: unknown): void {
    const { address } = this.options;
    const hint = 'set media.port_min and media.port_max to a free range';
    this.dependencies.log.warn({ address, rtp_port: rtpPort, error: errorText(error), hint }, 'media.port.not_usable');
  }

  #growReceiveBuffers(): void {
    const sizes = this.#portPairs.map((portPair) => portPair.pair.growReceiveBuffers());
    const askedBytes = Math.max(...sizes.map((size) => size.askedBytes));
    const grantedBytes = Math.min(...sizes.map((size) => size.grantedBytes));
    this.#receiveBufferBytes = grantedBytes;
    if (grantedBytes >= askedBytes) return;
    this.dependencies.log.warn(
      { asked_bytes: askedBytes, granted_bytes: grantedBytes, hint: 'raise net.core.rmem_max' },
      'media.buffers.small',
    );
  }

  /** RTP headers are in clear, even with SRTP (RFC 3711 §3.1). */
  #receiveRtp(leg: OpenLeg | undefined, datagram: Uint8Array): void {
    // Closed by what came with this packet.
    if (leg === undefined) return;
    if (datagram.length >= RTP_HEADER_BYTES) {
      const ssrc = uint32At(datagram, 8);
      if (this.#isShunned(leg, ssrc)) {
        this.#earlierCall += 1;
        return;
      }
      leg.ssrc = ssrc;
    }
    this.#run(leg, (media) => this.#count(media.receiveRtp(datagram)));
  }

  #isShunned(leg: OpenLeg, ssrc: number): boolean {
    if (leg.shunned.length === 0) return false;
    const nowMs = this.dependencies.clock.nowMs();
    leg.shunned = leg.shunned.filter(({ untilMs }) => untilMs > nowMs);
    return leg.shunned.some((source) => source.ssrc === ssrc);
  }

  #tick(leg: OpenLeg, skip: number, send: number): boolean {
    let isWaiting = false;
    this.#run(leg, (media) => (isWaiting = media.tick(skip, send)));
    return isWaiting;
  }

  #tickAgain(leg: OpenLeg): boolean {
    let isWaiting = false;
    this.#run(leg, (media) => (isWaiting = media.again()));
    return isWaiting;
  }

  #speak(callId: string): boolean {
    let isDue = true;
    this.with(callId, (media) => (isDue = media.speak()));
    return isDue;
  }

  #receiveRtcp(leg: OpenLeg | undefined, datagram: Uint8Array): void {
    if (leg !== undefined) this.#run(leg, (media) => this.#count(media.receiveRtcp(datagram)));
  }

  #dismiss(callId: string): void {
    const agent = this.#agents.get(callId);
    if (agent === undefined) return;
    this.#agents.delete(callId);
    this.#legs.get(callId)?.media.releaseAgent();
    this.#closed.packetsLate += agent.latePackets;
    agent.close();
  }

  #lose(leg: OpenLeg, error: unknown): void {
    this.dependencies.log.error({ call_id: leg.callId, error: error }, 'media.leg.failed');
    this.closeLeg(leg.callId);
    leg.onEvent({ type: 'media-lost' });
  }

  #count(outcome: ReceiveOutcome): void {
    if (outcome === 'not-authentic') this.#notAuthentic += 1;
    else if (outcome === 'not-rtp') this.#malformed += 1;
  }

  /** Adds the leg's peer to the tables. */
  #enter(leg: OpenLeg): void {
    const { callId, portPair, remote } = leg;
    const { pair, byRtp, byRtcp } = portPair;
    leg.rtpPeer = pair.rtp.addPeer(remote.address, remote.rtpPort);
    leg.rtcpPeer = pair.rtcp.addPeer(remote.address, remote.rtcpPort);
    byRtp.set(leg.rtpPeer, leg);
    byRtcp.set(leg.rtcpPeer, leg);
    leg.shunned = portPair.resting.sources(callId, remote.address, remote.rtpPort, this.dependencies.clock.nowMs());
  }

  /** Removes the leg's peer from the tables and remembers it among those that left. */
  #part({ callId, portPair, remote, rtpPeer, rtcpPeer, ssrc }: OpenLeg): void {
    const { pair, byRtp, byRtcp } = portPair;
    byRtp.delete(rtpPeer);
    byRtcp.delete(rtcpPeer);
    pair.rtp.removePeer(rtpPeer);
    pair.rtcp.removePeer(rtcpPeer);
    portPair.resting.add(callId, remote.address, remote.rtpPort, ssrc, this.dependencies.clock.nowMs());
  }
}

function addPackets(sum: { packetsSent: number; packetsReceived: number; packetsLost: number }, leg: LegFigures): void {
  sum.packetsSent += leg.packetsSent;
  sum.packetsReceived += leg.packetsReceived;
  sum.packetsLost += leg.packetsLost;
}

function isSame(one: MediaAddress, other: MediaAddress): boolean {
  return one.address === other.address && one.rtpPort === other.rtpPort && one.rtcpPort === other.rtcpPort;
}

function rtcpOf({ address, rtcpPort }: MediaAddress): RtcpSeen['from'] {
  return { address, port: rtcpPort };
}

/** The address in the form that datagrams have. */
function checkedAddress(remote: MediaAddress): MediaAddress {
  const version = isIP(remote.address);
  if (version === 0) throw new RangeError('the peer of a media leg needs a literal address');
  for (const port of [remote.rtpPort, remote.rtcpPort]) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new RangeError(`port ${port} of a media leg's peer`);
  }
  const { address } = new SocketAddress({ address: remote.address, family: version === 6 ? 'ipv6' : 'ipv4' });
  return { ...remote, address };
}
