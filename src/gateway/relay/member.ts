import type { RelayFigures } from '../model/media.js';
import { MediaUnavailableError } from '../ports/ports.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { PassingMap } from '../../lib/passing-map.js';
import { figuresOf, hasTags } from './figures.js';
import { deleteCommand, type NgCommand } from './flags.js';
import { HEALTHY, ROUND_MS, ROUNDS_TO_LOSE, stepHealth, type Health, type HealthEvent } from './health.js';
import { RtpengineError, type NgReply, type RtpengineNode } from './node.js';

const DELETE_RETRIES_MS = [200, 1_000, 5_000, 15_000];
/** Sessions to free on a node that is down; rtpengine's own timeout ends the others. */
const MAX_WAITING = 10_000;
/** Rounds between queries of the uptime: `ping` does not reveal a restart. */
const ROUNDS_PER_UPTIME = 5;
/** How long a full node gets no new call, unless one of its calls ends: a failing offer costs it as much as a hundred good ones. */
const FULL_MS = 1_000;

export interface MemberOptions {
  readonly name: string;
  /** A call's id on rtpengines, which other gateways may share. */
  readonly callIdOf: (relayId: string) => string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface MemberOwner {
  /** The node, or these of its calls, are lost. */
  onLost(member: PoolMember, relayIds: readonly string[]): void;
  onBack(member: PoolMember): void;
}

export type MemberNode = Pick<RtpengineNode, 'command' | 'probe' | 'abandon' | 'close' | 'outstanding' | 'delayMs'>;

/** One rtpengine of the pool: whether it lives, its calls, and its sessions that are still to be freed. */
export class PoolMember {
  /** Relay ids of the calls on this node. */
  readonly assigned = new Set<string>();
  readonly #freeing = new PassingMap<string, Promise<RelayFigures | null>>();
  /** To free when the node is back. */
  readonly #waiting = new Set<string>();
  #health: Health = HEALTHY;
  #round = 0;
  #isAsking = false;
  #fullUntilMs = -Infinity;
  #othersSessions = 0;
  /** Whether its response to `delete` has figures. rtpengine 12 has none there: then `query` runs first. */
  #deleteTells = false;
  #cancelRound: CancelTimer | undefined;

  constructor(
    private readonly node: MemberNode,
    private readonly options: MemberOptions,
    private readonly owner: MemberOwner,
  ) {
    this.#nextRound();
  }

  get name(): string {
    return this.options.name;
  }

  get isAlive(): boolean {
    return this.#health.isAlive;
  }

  /** It lives, and was not full recently. */
  get takesCalls(): boolean {
    return this.isAlive && this.options.clock.nowMs() >= this.#fullUntilMs;
  }

  /** It reported that it is full. */
  setFull(): void {
    if (this.takesCalls) this.options.log.warn({ node: this.name, calls: this.assigned.size }, 'rtpengine.node.full');
    this.#fullUntilMs = this.options.clock.nowMs() + FULL_MS;
  }

  /** How long its oldest offer has waited to be sent, in milliseconds. */
  get delayMs(): number {
    return this.node.delayMs;
  }

  get outstanding(): number {
    return this.node.outstanding;
  }

  /** Our sessions on the node, by our own count. */
  get sessions(): number {
    return this.assigned.size + this.#freeing.size;
  }

  /** Other gateways' sessions on the node, by its last response: at most a second old. */
  get othersSessions(): number {
    return this.#othersSessions;
  }

  /** Assigns a call to this node, after freeing an earlier session of it here. */
  async assign(relayId: string): Promise<void> {
    this.assigned.add(relayId);
    await this.#freeing.get(relayId)?.catch(() => undefined);
  }

  /** Assigns a call of an earlier process; reports it as lost if the node does not have it. */
  adopt(relayId: string): void {
    this.assigned.add(relayId);
    void this.#reportForgotten([relayId]);
  }

  /** Queries every call here; reports those that the node does not have as lost. */
  findForgotten(): void {
    void this.#reportForgotten([...this.assigned]);
  }

  /** Rejects with `RtpengineError`, at once if the node is dead. */
  command(name: NgCommand, args: object): Promise<NgReply> {
    if (!this.isAlive) return Promise.reject(new RtpengineError('timeout', `rtpengine at ${this.name} does not answer`));
    return this.#heed(this.node.command(name, args));
  }

  /** Any response shows that the node lives: a busy node may answer a ping too late. */
  async #heed(command: Promise<NgReply>): Promise<NgReply> {
    try {
      const reply = await command;
      this.#step({ type: 'answered' });
      return reply;
    } catch (error) {
      if (error instanceof RtpengineError && error.kind === 'refused') this.#step({ type: 'answered' });
      throw error;
    }
  }

  /**
   * Frees a call's session. Nobody else frees one whose `delete` was lost, so it retries until confirmed, for about 20 s, or, if the node
   * dies, when it is back; then the result is `null`, as for a session that the node does not have.
   */
  free(relayId: string): Promise<RelayFigures | null> {
    this.assigned.delete(relayId);
    const earlier = this.#freeing.get(relayId);
    if (earlier !== undefined) return earlier;
    const freeing = this.#free(relayId).finally(() => this.#freeing.delete(relayId));
    this.#freeing.set(relayId, freeing);
    return freeing;
  }

  /** `free` without waiting for the result. */
  freeQuietly(relayId: string): void {
    this.free(relayId).catch((error: unknown) => {
      this.options.log.warn({ node: this.name, call_id: relayId, error: (error as Error).message }, 'rtpengine.session.left');
    });
  }

  close(): void {
    this.#cancelRound?.();
    this.node.close();
  }

  async #free(relayId: string): Promise<RelayFigures | null> {
    const { clock, log } = this.options;
    for (const delayMs of DELETE_RETRIES_MS) {
      if (!this.isAlive) return this.#freeLater(relayId);
      try {
        return await this.#delete(this.options.callIdOf(relayId));
      } catch (error) {
        if (error instanceof RtpengineError && error.kind === 'closed') break;
        log.warn({ node: this.name, call_id: relayId, error: (error as Error).message }, 'rtpengine.delete.retry');
        // It may have died meanwhile.
        if (this.#health.isAlive) await new Promise<void>((resolve) => void clock.setTimer(delayMs, resolve));
      }
    }
    throw new MediaUnavailableError('rtpengine did not confirm that the session is freed');
  }

  async #delete(callId: string): Promise<RelayFigures | null> {
    const before = this.#deleteTells ? null : await this.node.command('query', { 'call-id': callId }).then(figuresOf, () => null);
    for (const tag of ['carrier', 'agent'] as const) {
      const reply = await this.#heed(this.node.command('delete', deleteCommand(callId, tag)));
      // With a wrong tag rtpengine frees nothing, and responds ok with a warning.
      if ('warning' in reply) continue;
      // Ports are free again.
      this.#fullUntilMs = -Infinity;
      this.#deleteTells = hasTags(reply);
      return this.#deleteTells ? figuresOf(reply) : (before ?? figuresOf(reply));
    }
    await this.node.command('delete', deleteCommand(callId, null));
    return null;
  }

  #freeLater(relayId: string): null {
    if (this.#waiting.size < MAX_WAITING) this.#waiting.add(relayId);
    else this.options.log.warn({ node: this.name, call_id: relayId, error: 'too many wait' }, 'rtpengine.session.left');
    return null;
  }

  #nextRound(): void {
    const { clock } = this.options;
    const dueMs = clock.nowMs() + ROUND_MS;
    this.#cancelRound = clock.setTimer(ROUND_MS, () => {
      // If our process stalled, the response may wait in the socket.
      const isLate = clock.nowMs() - dueMs > ROUND_MS;
      this.#nextRound();
      if (!this.#isAsking) this.#ask();
      else if (!isLate) this.#step({ type: 'unanswered' });
    });
  }

  #ask(): void {
    this.#isAsking = true;
    const { clock } = this.options;
    const name = this.#round % ROUNDS_PER_UPTIME === 0 ? 'statistics' : 'ping';
    this.#round += 1;
    this.node.probe(name, ROUNDS_TO_LOSE * ROUND_MS + ROUND_MS / 2).then(
      (reply) => {
        this.#isAsking = false;
        this.#step({ type: 'answered' });
        const sessions = sessionsOf(reply);
        if (sessions !== null) this.#othersSessions = Math.max(0, sessions - this.sessions);
        const uptimeS = uptimeOf(reply);
        if (uptimeS === null) return;
        const uptimeMs = uptimeS * 1_000;
        this.#step({ type: 'uptime', startedAtMs: clock.nowMs() - uptimeMs, uptimeMs });
      },
      (error: unknown) => {
        this.#isAsking = false;
        // A refusal is a response too.
        if (error instanceof RtpengineError && error.kind === 'refused') this.#step({ type: 'answered' });
      },
    );
  }

  #step(event: HealthEvent): void {
    const { health, change } = stepHealth(this.#health, event);
    this.#health = health;
    if (change === 'lost') this.#onLost();
    else if (change === 'back') this.#onBack();
    else if (change === 'restarted') this.findForgotten();
  }

  #onLost(): void {
    this.options.log.warn({ node: this.name, calls: this.assigned.size }, 'rtpengine.node.lost');
    this.node.abandon();
    this.owner.onLost(this, [...this.assigned]);
  }

  #onBack(): void {
    this.options.log.info({ node: this.name, to_free: this.#waiting.size }, 'rtpengine.node.back');
    for (const relayId of [...this.#waiting]) {
      this.#waiting.delete(relayId);
      // A call that left and returned frees its session at its own end.
      if (!this.assigned.has(relayId)) this.freeQuietly(relayId);
    }
    this.owner.onBack(this);
  }

  /** Reports as lost the calls that the node does not have: it has restarted. */
  async #reportForgotten(relayIds: readonly string[]): Promise<void> {
    const isForgotten = (relayId: string): Promise<boolean> =>
      this.node.command('query', { 'call-id': this.options.callIdOf(relayId) }).then(
        () => false,
        (error: unknown) => error instanceof RtpengineError && error.kind === 'refused',
      );
    const forgotten = await Promise.all(relayIds.map(isForgotten));
    const lost = relayIds.filter((relayId, index) => forgotten[index] === true && this.assigned.has(relayId));
    if (lost.length === 0) return;
    this.options.log.warn({ node: this.name, calls: lost.length }, 'rtpengine.node.forgot');
    this.owner.onLost(this, lost);
  }
}

interface Statistics {
  readonly totalstatistics?: { readonly uptime?: unknown };
  readonly currentstatistics?: { readonly sessionsown?: unknown };
}

/** Uptime in seconds, a text in rtpengine's `statistics`. */
function uptimeOf(reply: NgReply): number | null {
  return figureOf((reply['statistics'] as Statistics | undefined)?.totalstatistics?.uptime);
}

/** All sessions of the node, those of other gateways included. */
function sessionsOf(reply: NgReply): number | null {
  return figureOf((reply['statistics'] as Statistics | undefined)?.currentstatistics?.sessionsown);
}

function figureOf(value: unknown): number | null {
  const figure = Number(value ?? Number.NaN);
  return Number.isFinite(figure) ? figure : null;
}
