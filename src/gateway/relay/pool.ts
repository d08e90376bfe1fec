import type { RelayFigures } from '../model/media.js';
import { MediaUnavailableError, type MediaRelay, type RelayAnswer, type RelayCall } from '../ports/ports.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { figuresOf } from './figures.js';
import { formatHostPort } from '../../lib/address.js';
import { DelayLimit } from '../../lib/delay-limit.js';
import { PassingMap } from '../../lib/passing-map.js';
import type { Log } from '../../lib/log.js';
import {
  answerCommand,
  deleteCommand,
  offerCommand,
  type NegotiationArguments,
  type NgCommand,
  type RelayInterfaces,
  type RelaySide,
} from './flags.js';
import { PoolMember, type MemberNode } from './member.js';
import { MAX_OUTSTANDING, RtpengineError, RtpengineNode, type NgReply } from './node.js';

/** A node that stalled for a second still has its calls: report them as lost only after this time, from 0.8 s without a response on. */
const SLOW_NODE_MS = 600;
/** How long the calls of the last live node may wait for its restart. */
const LAST_NODE_MS = 2_000;
/** More do not fit in one datagram of rtpengine: it then sends none. */
const LIST_LIMITS = [500, 1_000];

export interface RelayPoolOptions {
  readonly nodes: readonly { readonly address: string; readonly port: number }[];
  /** Names of the nodes' interfaces; `null`: they are not ours to choose. */
  readonly interfaces: RelayInterfaces | null;
  /** This gateway's name among those that use the nodes. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Time limit of one command, retransmissions included. */
  readonly timeoutMs: number;
  /** An offer that waits longer to be sent means that the relay is behind. */
  readonly maxDelayMs: number;
  /** For our own single node: its capacity in calls, and the names of the gateways that use it. `null`: external nodes. */
  readonly own: { readonly capacity: number; readonly instances: readonly string[] } | null;
}

/** A node's state for health and metrics. */
export interface RelayNodeState {
  readonly name: string;
  readonly isAlive: boolean;
  /** This gateway's calls on it. */
  readonly calls: number;
  readonly outstanding: number;
}

type LostListener = (node: string, relayIds: readonly string[]) => void;
type BackListener = (node: string) => void;

/** Unanswered offers of a node. A turn of the event loop can have hundreds of calls: none has waited yet, and the last would wait for all. */
const MAX_OFFERS = 2 * MAX_OUTSTANDING;

/** Opens the pool's sockets. Nodes count as live until they miss their pings. */
export function openRelayPool(options: RelayPoolOptions): RelayPool {
  return new RelayPool(options, (at) => new RtpengineNode({ ...options, ...at }));
}

/** The gateway's media relay: one or more rtpengines, each call on one of them. */
export class RelayPool implements MediaRelay {
  readonly #members: readonly PoolMember[];
  readonly #lostListeners: LostListener[] = [];
  readonly #backListeners: BackListener[] = [];
  readonly #prefix: string;
  /** On our own node only we have calls. `null`: others may have them. */
  readonly #knownPrefixes: readonly string[] | null;
  readonly #delay: DelayLimit;
  /** Offers without an answer, counted before a node has them: each may wait for an earlier session first. */
  #offers = 0;
  /** Nodes without a response whose calls are not lost yet. */
  readonly #silent = new Map<PoolMember, CancelTimer>();
  /** Nodes that did not answer `reconcile`, with the calls to keep: they are asked when they are back. */
  readonly #unread = new Map<PoolMember, ReadonlySet<string>>();
  /** Each call's pending command, which its `delete` must not overtake. */
  readonly #busy = new PassingMap<string, Promise<unknown>>();

  constructor(
    private readonly options: Omit<RelayPoolOptions, 'timeoutMs'>,
    newNode: (at: { readonly address: string; readonly port: number }) => MemberNode,
  ) {
    this.#delay = new DelayLimit(options.maxDelayMs);
    this.#prefix = prefixOf(options.instance);
    this.#knownPrefixes = options.own?.instances.map(prefixOf) ?? null;
    const owner = {
      onLost: (member: PoolMember, relayIds: readonly string[]) => this.#onLost(member, relayIds),
      onBack: (member: PoolMember) => this.#onBack(member),
    };
    const { clock, log } = options;
    this.#members = options.nodes.map((at) => {
      const name = formatHostPort(at.address, at.port);
      return new PoolMember(newNode(at), { name, callIdOf: (relayId) => this.#callIdOf(relayId), clock, log }, owner);
    });
  }

  async offer(call: RelayCall, sdp: string): Promise<RelayAnswer> {
    this.#offers += 1;
    try {
      return await this.#offer(call, 'carrier', call.agentSideSrtp, sdp);
    } finally {
      this.#offers -= 1;
    }
  }

  answer(call: RelayCall, sdp: string): Promise<RelayAnswer> {
    return this.#answer(call, 'carrier', sdp);
  }

  offerToCarrier(call: RelayCall, sdp: string): Promise<RelayAnswer> {
    return this.#offer(call, 'agent', call.carrierSideSrtp, sdp);
  }

  answerFromCarrier(call: RelayCall, sdp: string): Promise<RelayAnswer> {
    return this.#answer(call, 'agent', sdp);
  }

  async delete(relayId: string): Promise<RelayFigures | null> {
    const member = this.#memberOf(relayId);
    if (member === undefined) return null;
    // From now on no other node takes it.
    member.assigned.delete(relayId);
    await this.#busy.get(relayId)?.catch(() => undefined);
    return member.free(relayId);
  }

  nodeOf(relayId: string): string | null {
    return this.#memberOf(relayId)?.name ?? null;
  }

  adopt(relayId: string, node: string): boolean {
    const member = this.#members.find(({ name }) => name === node);
    member?.adopt(relayId);
    return member !== undefined;
  }

  leave(relayId: string): void {
    this.#memberOf(relayId)?.freeQuietly(relayId);
  }

  /** What rtpengine has received of a call so far; `null`: it has no such call. Rejects when it does not answer. */
  async figures(relayId: string): Promise<RelayFigures | null> {
    const member = this.#memberOf(relayId);
    return member === undefined ? null : figuresOf(await member.command('query', { 'call-id': this.#callIdOf(relayId) }));
  }

  /** A node stopped responding, or lost these calls. While none responds, its calls are reported two seconds later. */
  onNodeLost(listener: LostListener): void {
    this.#lostListeners.push(listener);
  }

  onNodeBack(listener: BackListener): void {
    this.#backListeners.push(listener);
  }

  /** At least one node accepts calls. */
  get isUp(): boolean {
    return this.#members.some(({ isAlive }) => isAlive);
  }

  /**
   * Why offers wait too long to be sent, or are too many, on every live node: the figure and its limit, for a person; `null`: they are not.
   * Each wait tightens the limit for a while (`DelayLimit`).
   */
  excess(): string | null {
    const delays = this.#members.filter(({ isAlive }) => isAlive).map(({ delayMs }) => delayMs);
    if (delays.length === 0) return null;
    const maxOffers = delays.length * MAX_OFFERS;
    if (this.#offers >= maxOffers) return `${String(this.#offers)} calls wait for rtpengine, limit ${String(maxOffers)}`;
    const delayMs = Math.min(...delays);
    if (!this.#delay.isExceeded(delayMs, this.options.clock.nowMs())) return null;
    return `calls wait ${String(Math.round(delayMs))} ms for rtpengine, limit ${String(this.options.maxDelayMs)} ms`;
  }

  nodes(): readonly RelayNodeState[] {
    return this.#members.map(({ name, isAlive, assigned, outstanding }) => ({ name, isAlive, calls: assigned.size, outstanding }));
  }

  /** Calls that still fit; `null`: unknown, because the nodes are external. */
  headroom(): number | null {
    const { own } = this.options;
    if (!this.isUp) return 0;
    if (own === null) return null;
    // Other gateways' sessions there are counted once a second.
    const sessions = this.#members.reduce((sum, member) => sum + member.sessions + member.othersSessions, 0);
    return Math.max(0, own.capacity - sessions);
  }

  /**
   * Frees the sessions of an earlier process, except those of the calls to keep: on our own node all, on others those whose call-id has
   * this gateway's name; of a node that does not respond when it is back. Rejects with `MediaUnavailableError` if no node responds.
   */
  async reconcile(keep: ReadonlySet<string>): Promise<void> {
    const isKept = (relayId: string): boolean => keep.has(relayId);
    const outcomes = await Promise.allSettled(
      this.#members.map((member) =>
        this.#freeLeftovers(member, isKept).catch((error: unknown) => {
          this.#unread.set(member, keep);
          throw error;
        }),
      ),
    );
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue;
      const { message } = outcome.reason as Error;
      this.options.log.warn({ node: this.#members[index]?.name, error: message }, 'rtpengine.leftovers.unknown');
      if (outcomes.every(({ status }) => status === 'rejected')) throw new MediaUnavailableError(`rtpengine list: ${message}`);
    }
  }

  /** A live node lost these calls. A silent one may only be slow: its calls wait a little, and longer if no other lives. */
  #onLost(member: PoolMember, relayIds: readonly string[]): void {
    if (member.isAlive) return this.#notifyLost(member, relayIds);
    const cancel = this.options.clock.setTimer(this.isUp ? SLOW_NODE_MS : LAST_NODE_MS, () => {
      this.#silent.delete(member);
      this.#notifyLost(member, [...member.assigned]);
    });
    this.#silent.set(member, cancel);
  }

  #onBack(member: PoolMember): void {
    const isOnly = this.#members.every((one) => one === member || !one.isAlive);
    for (const [silent, cancel] of [...this.#silent]) {
      // If none lived, the others' calls have waited for a node too.
      if (silent !== member && !isOnly) continue;
      cancel();
      this.#silent.delete(silent);
      // It stalled, or is another process on the same port: whether it has its calls decides.
      if (silent === member) member.findForgotten();
      else this.#notifyLost(silent, [...silent.assigned]);
    }
    void this.#freeUnread(member);
    this.#backListeners.forEach((tell) => tell(member.name));
  }

  #notifyLost(member: PoolMember, relayIds: readonly string[]): void {
    this.#lostListeners.forEach((tell) => tell(member.name, relayIds));
  }

  close(): void {
    for (const cancel of this.#silent.values()) cancel();
    for (const member of this.#members) member.close();
  }

  /** Tries a call's first offer on a second node if the first is full or silent. */
  async #offer(call: RelayCall, offerer: RelaySide, isSecure: boolean, sdp: string): Promise<RelayAnswer> {
    const { interfaces } = this.options;
    const { relayId } = call;
    const args = offerCommand(this.#negotiation(call, offerer, sdp), { interfaces, isSecure });
    const placed = this.#memberOf(relayId);
    if (placed !== undefined) return this.#ask(placed, relayId, 'offer', args);
    const first = this.#neighbour(call) ?? this.#leastBusy(null);
    try {
      return await this.#firstOffer(first, relayId, args);
    } catch (error) {
      const wasEnded = !first.assigned.has(relayId);
      if (isFull(error as Error)) first.setFull();
      // The node may have executed the command although the reply was lost.
      first.freeQuietly(relayId);
      if (wasEnded || !isNodesFault(error) || !this.#members.some((member) => member !== first && member.takesCalls)) throw error;
    }
    const second = this.#leastBusy(first);
    try {
      return await this.#firstOffer(second, relayId, args);
    } catch (error) {
      if (isFull(error as Error)) second.setFull();
      second.freeQuietly(relayId);
      throw error;
    }
  }

  async #firstOffer(member: PoolMember, relayId: string, args: object): Promise<RelayAnswer> {
    await member.assign(relayId);
    if (!member.assigned.has(relayId)) throw new MediaUnavailableError('the call has ended');
    return this.#ask(member, relayId, 'offer', args);
  }

  async #answer(call: RelayCall, offerer: RelaySide, sdp: string): Promise<RelayAnswer> {
    const { relayId } = call;
    const member = this.#memberOf(relayId);
    if (member === undefined) throw new MediaUnavailableError('rtpengine answer: the call is on no node');
    return this.#ask(member, relayId, 'answer', answerCommand(this.#negotiation(call, offerer, sdp)));
  }

  /** rtpengine sends to its own ports, then. */
  #neighbour({ beside = null }: RelayCall): PoolMember | null {
    const member = beside === null ? undefined : this.#memberOf(beside);
    return member?.takesCalls === true ? member : null;
  }

  #leastBusy(besides: PoolMember | null): PoolMember {
    let best: PoolMember | undefined;
    for (const member of this.#members) {
      if (member === besides || !member.takesCalls) continue;
      if (best === undefined || costOf(member) < costOf(best)) best = member;
    }
    if (best === undefined) throw new MediaUnavailableError(this.isUp ? 'no rtpengine has capacity' : 'no rtpengine answers');
    return best;
  }

  async #ask(member: PoolMember, relayId: string, name: NgCommand, args: object): Promise<RelayAnswer> {
    const command = member.command(name, args);
    this.#busy.set(relayId, command);
    try {
      return sdpOf(await command);
    } catch (error) {
      if (error instanceof MediaUnavailableError) throw error;
      throw new MediaUnavailableError(`rtpengine ${name}: ${(error as Error).message}`, { cause: error });
    } finally {
      this.#busy.deleteOnly(relayId, command);
    }
  }

  /** What an earlier process left on a node that did not answer then. Calls of this one may be on it by now. */
  async #freeUnread(member: PoolMember): Promise<void> {
    const keep = this.#unread.get(member);
    if (keep === undefined) return;
    try {
      await this.#freeLeftovers(member, (relayId) => keep.has(relayId) || this.#memberOf(relayId) !== undefined);
      this.#unread.delete(member);
    } catch {
      // It went away again, and will be back.
    }
  }

  async #freeLeftovers(member: PoolMember, isKept: (relayId: string) => boolean): Promise<void> {
    let freed = 0;
    for (const limit of LIST_LIMITS) {
      for (;;) {
        const { calls } = await member.command('list', { limit });
        const listed = Array.isArray(calls) ? calls.filter((id): id is string => typeof id === 'string') : [];
        const leftovers = listed.filter((callId) => this.#isLeftover(callId, isKept));
        await Promise.all(leftovers.map((callId) => member.command('delete', deleteCommand(callId, null))));
        freed += leftovers.length;
        if (listed.length < limit) {
          this.#notifyFreed(member, freed);
          return;
        }
        if (leftovers.length === 0) break;
      }
    }
    this.#notifyFreed(member, freed);
    // The list always has the same calls: the others stay invisible.
    this.options.log.warn({ node: member.name, error: 'it has more calls than it can list' }, 'rtpengine.leftovers.unknown');
  }

  #notifyFreed(member: PoolMember, sessions: number): void {
    if (sessions > 0) this.options.log.warn({ node: member.name, sessions }, 'rtpengine.leftovers.freed');
  }

  #isLeftover(callId: string, isKept: (relayId: string) => boolean): boolean {
    if (callId.startsWith(this.#prefix)) return !isKept(callId.slice(this.#prefix.length));
    return this.#knownPrefixes?.some((known) => callId.startsWith(known)) === false;
  }

  #memberOf(relayId: string): PoolMember | undefined {
    return this.#members.find(({ assigned }) => assigned.has(relayId));
  }

  #negotiation({ relayId, agentSideSrtp, carrierSideSrtp }: RelayCall, offerer: RelaySide, sdp: string): NegotiationArguments {
    return { callId: this.#callIdOf(relayId), offerer, sdp, endsSrtp: carrierSideSrtp && !agentSideSrtp };
  }

  #callIdOf(relayId: string): string {
    return `${this.#prefix}${relayId}`;
  }
}

function prefixOf(instance: string): string {
  return `${encodeURIComponent(instance)}:`;
}

/** Its calls, and its pending commands. */
function costOf(member: PoolMember): number {
  return member.sessions + member.outstanding;
}

/** No ports, its own session limit, or no response: another node may succeed. */
function isNodesFault(error: unknown): boolean {
  const { cause } = error as Error;
  if (!(cause instanceof RtpengineError)) return false;
  return cause.kind === 'timeout' || isFull(error as Error);
}

/** No ports, no file handles for them, or its own session limit. */
function isFull({ cause }: { readonly cause?: unknown }): boolean {
  return cause instanceof RtpengineError && cause.kind === 'refused' && /ports|limit/i.test(cause.message);
}

function sdpOf(reply: NgReply): RelayAnswer {
  const sdp = reply['sdp'];
  // rtpengine answers an offer without a usable m-line with ok and no SDP.
  if (typeof sdp !== 'string' || sdp === '') throw new MediaUnavailableError('rtpengine answered without an SDP');
  return { sdp };
}
