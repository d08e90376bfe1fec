import type { RelayFigures } from '../model/media.js';
import { MediaUnavailableError, type MediaRelay, type RelayAnswer, type RelayCall } from '../ports/ports.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { formatHostPort } from '../../lib/address.js';
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
import { RtpengineError, RtpengineNode, type NgReply } from './node.js';

/** A node that stood still for a second has its calls yet: they are not told as lost before this time is over, after 0.8 s without an answer. */
const SLOW_NODE_MS = 600;
/** For so long the calls of the last node that answered may hope for it: it may be started anew by whoever watches it. */
const LAST_NODE_MS = 2_000;
/** More do not fit one datagram of rtpengine's: it then answers nothing. */
const LIST_LIMITS = [500, 1_000];

export interface RelayPoolOptions {
  readonly nodes: readonly { readonly address: string; readonly port: number }[];
  /** Names of the nodes' interfaces; `null`: they are not ours to name. */
  readonly interfaces: RelayInterfaces | null;
  /** This gateway among those that use the nodes. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Time limit of one command, retransmissions included. */
  readonly timeoutMs: number;
  /** The one node is our own: the calls that it carries, and whether only this gateway uses it. `null`: external nodes. */
  readonly own: { readonly capacity: number; readonly isAlone: boolean } | null;
}

/** A node as the outside may see it. */
export interface RelayNodeState {
  readonly name: string;
  readonly isAlive: boolean;
  /** Calls of this gateway on it. */
  readonly calls: number;
  readonly outstanding: number;
}

type LostListener = (node: string, relayIds: readonly string[]) => void;
type BackListener = (node: string) => void;

/** Opens the pool's sockets; the nodes are taken to live until they do not answer. */
export function openRelayPool(options: RelayPoolOptions): RelayPool {
  return new RelayPool(options, (at) => new RtpengineNode({ ...options, ...at }));
}

/** The media relay that the gateway sees: some rtpengines, each call on one of them. */
export class RelayPool implements MediaRelay {
  readonly #members: readonly PoolMember[];
  readonly #lostListeners: LostListener[] = [];
  readonly #backListeners: BackListener[] = [];
  readonly #prefix: string;
  /** Nodes that do not answer, whose calls are not given up yet. */
  readonly #silent = new Map<PoolMember, CancelTimer>();
  /** The command of each call that is under way, which its `delete` must not overtake. */
  readonly #busy = new Map<string, Promise<unknown>>();

  constructor(
    private readonly options: Omit<RelayPoolOptions, 'timeoutMs'>,
    newNode: (at: { readonly address: string; readonly port: number }) => MemberNode,
  ) {
    this.#prefix = `${encodeURIComponent(options.instance)}:`;
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

  offer(call: RelayCall, sdp: string): Promise<RelayAnswer> {
    return this.#offer(call, 'carrier', call.agentSideSrtp, sdp);
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

  /** A node does not answer any more, or has forgotten these calls. While none answers its calls are told two seconds later. */
  onNodeLost(listener: LostListener): void {
    this.#lostListeners.push(listener);
  }

  onNodeBack(listener: BackListener): void {
    this.#backListeners.push(listener);
  }

  /** Some node takes calls. */
  get isUp(): boolean {
    return this.#members.some(({ isAlive }) => isAlive);
  }

  nodes(): readonly RelayNodeState[] {
    return this.#members.map(({ name, isAlive, assigned, outstanding }) => ({ name, isAlive, calls: assigned.size, outstanding }));
  }

  /** Calls that still fit; `null`: not known, for the nodes are somebody else's. */
  headroom(): number | null {
    const { own } = this.options;
    if (!this.isUp) return 0;
    if (own === null) return null;
    // What other gateways have there is known once a second.
    const sessions = this.#members.reduce((sum, member) => sum + member.sessions + (own.isAlone ? 0 : member.othersSessions), 0);
    return Math.max(0, own.capacity - sessions);
  }

  /**
   * Frees the sessions of an earlier process, but those of the calls to keep: on a node of our own all, elsewhere those whose call-id
   * says that they are this gateway's. Rejects with `MediaUnavailableError` when no node answers.
   */
  async reconcile(keep: ReadonlySet<string>): Promise<void> {
    const outcomes = await Promise.allSettled(this.#members.map((member) => this.#freeLeftovers(member, keep)));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue;
      const { message } = outcome.reason as Error;
      this.options.log.warn({ node: this.#members[index]?.name, error: message }, 'rtpengine.leftovers.unknown');
      if (outcomes.every(({ status }) => status === 'rejected')) throw new MediaUnavailableError(`rtpengine list: ${message}`);
    }
  }

  /** A node that lives has forgotten these calls. One that does not answer may only be slow: its calls wait a little, longer when no other lives. */
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
      // Where none lived, the others' calls have waited for a place to go.
      if (silent !== member && !isOnly) continue;
      cancel();
      this.#silent.delete(silent);
      // It stood still, or is another process on the same port: whether it knows its calls tells.
      if (silent === member) member.findForgotten();
      else this.#notifyLost(silent, [...silent.assigned]);
    }
    this.#backListeners.forEach((tell) => tell(member.name));
  }

  #notifyLost(member: PoolMember, relayIds: readonly string[]): void {
    this.#lostListeners.forEach((tell) => tell(member.name, relayIds));
  }

  close(): void {
    for (const cancel of this.#silent.values()) cancel();
    for (const member of this.#members) member.close();
  }

  /** A call's first offer is tried on a second node when the first has no room or does not answer. */
  async #offer(call: RelayCall, offerer: RelaySide, isSecure: boolean, sdp: string): Promise<RelayAnswer> {
    const { interfaces } = this.options;
    const { relayId } = call;
    const args = offerCommand(this.#negotiation(call, offerer, sdp), { interfaces, isSecure });
    const placed = this.#memberOf(relayId);
    if (placed !== undefined) return this.#ask(placed, relayId, 'offer', args);
    const first = this.#leastBusy(null);
    try {
      return await this.#firstOffer(first, relayId, args);
    } catch (error) {
      const wasEnded = !first.assigned.has(relayId);
      if (isFull(error as Error)) first.setFull();
      // Perhaps it did the work and the answer was lost.
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

  #leastBusy(besides: PoolMember | null): PoolMember {
    let best: PoolMember | undefined;
    for (const member of this.#members) {
      if (member === besides || !member.takesCalls) continue;
      if (best === undefined || costOf(member) < costOf(best)) best = member;
    }
    if (best === undefined) throw new MediaUnavailableError(this.isUp ? 'no rtpengine has room' : 'no rtpengine answers');
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
      if (this.#busy.get(relayId) === command) this.#busy.delete(relayId);
    }
  }

  async #freeLeftovers(member: PoolMember, keep: ReadonlySet<string>): Promise<void> {
    let freed = 0;
    for (const limit of LIST_LIMITS) {
      for (;;) {
        const { calls } = await member.command('list', { limit });
        const listed = Array.isArray(calls) ? calls.filter((id): id is string => typeof id === 'string') : [];
        const leftovers = listed.filter((callId) => this.#isLeftover(callId, keep));
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
    // The list is always of the same calls: none of the others can be seen.
    this.options.log.warn({ node: member.name, error: 'it has more calls than it can list' }, 'rtpengine.leftovers.unknown');
  }

  #notifyFreed(member: PoolMember, sessions: number): void {
    if (sessions > 0) this.options.log.warn({ node: member.name, sessions }, 'rtpengine.leftovers.freed');
  }

  #isLeftover(callId: string, keep: ReadonlySet<string>): boolean {
    const isOurs = callId.startsWith(this.#prefix);
    return (isOurs || this.options.own?.isAlone === true) && !(isOurs && keep.has(callId.slice(this.#prefix.length)));
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

/** Calls that it has, and work that it is behind with. */
function costOf(member: PoolMember): number {
  return member.sessions + member.outstanding;
}

/** No ports, its own limit of sessions, or no answer: another node may do better. */
function isNodesFault(error: unknown): boolean {
  const { cause } = error as Error;
  if (!(cause instanceof RtpengineError)) return false;
  return cause.kind === 'timeout' || isFull(error as Error);
}

/** No ports, no file handles for them, or its own limit of sessions. */
function isFull({ cause }: { readonly cause?: unknown }): boolean {
  return cause instanceof RtpengineError && cause.kind === 'refused' && /ports|limit/i.test(cause.message);
}

function sdpOf(reply: NgReply): RelayAnswer {
  const sdp = reply['sdp'];
  // An offer without a usable m-line is answered ok and without an SDP.
  if (typeof sdp !== 'string' || sdp === '') throw new MediaUnavailableError('rtpengine answered without an SDP');
  return { sdp };
}
