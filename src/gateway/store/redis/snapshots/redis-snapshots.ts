import type { CallSnapshot } from '../../../model/call-snapshot.js';
import { StoreUnavailableError, type SnapshotStore } from '../../../ports/ports.js';
import type { CancelTimer, Clock } from '../../../../lib/clock.js';
import { PassingMap } from '../../../../lib/passing-map.js';
import { errorText } from '../../../../lib/result.js';
import type { Log } from '../../../../lib/log.js';
import { callKey, gatewayAnswersKey, gatewayCallsKey } from '../keys.js';
import type { RedisCommand, RedisConnection } from '../redis.js';
import type { TurnWrites } from '../turn-writes.js';

const RETRY_MS = 1_000;
const WRITTEN_AT_ONCE = 500;
/** A call that Redis has is written again when it has come to rest: it changes several times as its session does. The rest can wait. */
const KEEP_AFTER_MS = { session: 10, rest: 100 };
const EXPIRE_EVERY_MS = 3_600_000;
/** Longer than the longest call; what an instance left that never came back goes then. */
const KEPT_S = 2 * 86_400;

export interface SnapshotParts {
  readonly redis: RedisConnection;
  readonly writes: TurnWrites;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Records that an earlier process could not write are written, before its calls are looked at: one with a record is not left behind. */
  beforeLeft(): Promise<void>;
  /** Calls left behind are in progress again. */
  onLeft(calls: readonly CallSnapshot[]): Promise<void>;
  onForgotten(callId: string): void;
}

/**
 * The answered calls of one gateway instance in one Redis hash. A call has two values at most that wait to be written; so a Redis that is
 * away costs no more memory than the calls in progress.
 */
export class RedisSnapshotStore implements SnapshotStore {
  /** For the next write. `null`: to be forgotten. */
  readonly #waiting = new PassingMap<string, CallSnapshot | null>();
  /** Changes of calls that Redis has, for when they have come to rest. */
  readonly #changed = new PassingMap<string, CallSnapshot>();
  /** Calls that Redis has, or may have. */
  readonly #written = new Set<string>();
  #writing: Promise<void> | undefined;
  #cancelRetry: CancelTimer | undefined;
  #cancelKeep: CancelTimer | undefined;
  /** When all that waits is written. */
  #keepAtMs = Infinity;
  #expiresSetMs = -Infinity;

  constructor(private readonly parts: SnapshotParts) {}

  /** Calls that are kept, or about to be. */
  get size(): number {
    return new Set([...this.#written, ...this.#waiting.keys()]).size;
  }

  /** A call that Redis does not have is written at once: killed before that, it would be lost. */
  persist(snapshot: CallSnapshot, mayWait = false): void {
    if (this.#written.has(snapshot.call_id) && !this.#waiting.has(snapshot.call_id)) {
      this.#changed.set(snapshot.call_id, snapshot);
      return this.#writeAfter(mayWait ? KEEP_AFTER_MS.rest : KEEP_AFTER_MS.session);
    }
    this.#waiting.set(snapshot.call_id, snapshot);
    void this.#write();
  }

  written(): Promise<void> {
    return this.#writing ?? Promise.resolve();
  }

  #writeAfter(afterMs: number): void {
    const atMs = this.parts.clock.nowMs() + afterMs;
    if (atMs >= this.#keepAtMs) return;
    this.#cancelKeep?.();
    this.#keepAtMs = atMs;
    this.#cancelKeep = this.parts.clock.setTimer(afterMs, () => void this.flush());
  }

  delete(callId: string): void {
    this.parts.onForgotten(callId);
    if (!this.#written.has(callId)) {
      this.#waiting.delete(callId);
      return;
    }
    this.#waiting.set(callId, null);
    this.#changed.delete(callId);
    // One whose record is written is not taken up again.
    this.#writeAfter(KEEP_AFTER_MS.rest);
  }

  async orphaned(): Promise<readonly CallSnapshot[]> {
    const { writes, instance } = this.parts;
    await this.parts.beforeLeft();
    writes.flush();
    const { kept, going } = await this.#read(instance, (callId) => this.#written.add(callId));
    const isGoing = new Set(going);
    for (const snapshot of kept) if (!isGoing.has(snapshot)) this.delete(snapshot.call_id);
    await this.parts.onLeft(going);
    return going;
  }

  async ahead(): Promise<readonly CallSnapshot[]> {
    return (await this.#read(this.parts.instance, () => undefined)).going;
  }

  async take(instance: string): Promise<readonly CallSnapshot[]> {
    const { going } = await this.#read(instance, () => undefined);
    for (const snapshot of going) this.persist(snapshot);
    await this.flush();
    // Not before they are written here.
    if (this.#waiting.size > 0) throw new StoreUnavailableError('calls of a lost gateway could not be written');
    await this.parts.writes.write([gatewayCallsKey(instance), gatewayAnswersKey(instance)].map((key) => ['del', key]));
    await this.parts.onLeft(going);
    return going;
  }

  /** What an instance left, and of that the calls without a record. */
  async #read(instance: string, onFound: (callId: string) => void): Promise<Record<'kept' | 'going', readonly CallSnapshot[]>> {
    const { redis } = this.parts;
    const fields = await redis.run((client) => client.hgetall(gatewayCallsKey(instance)));
    for (const callId of Object.keys(fields)) onFound(callId);
    const kept = Object.entries(fields).flatMap(([callId, text]) => this.#decode(callId, text));
    const recorded = await redis.pipeline(kept.map(({ org_id: orgId, call_id: callId }) => ['exists', callKey(orgId, callId)]));
    return { kept, going: kept.filter((_snapshot, index) => recorded[index] === 0) };
  }

  async flush(): Promise<void> {
    this.#cancelKeep?.();
    this.#keepAtMs = Infinity;
    for (const [callId, snapshot] of this.#changed) this.#waiting.set(callId, snapshot);
    this.#changed.clear();
    await this.#write();
  }

  /** Ends the retries. What still waits is lost. */
  close(): void {
    this.#cancelRetry?.();
    this.#cancelKeep?.();
    this.#waiting.clear();
    this.#changed.clear();
  }

  /** One write at a time: what comes meanwhile waits for the next, the latest of each call. */
  #write(): Promise<void> {
    if (this.#cancelRetry !== undefined || this.#waiting.size === 0) return this.#writing ?? Promise.resolve();
    this.#writing ??= this.#writeAll();
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      // The last field that goes takes its key along, and the next one makes it anew.
      if (this.#written.size === 0) this.#expiresSetMs = -Infinity;
      const batch = [...this.#waiting].slice(0, WRITTEN_AT_ONCE);
      for (const [callId] of batch) {
        this.#waiting.delete(callId);
        this.#written.add(callId);
      }
      if (!(await this.#send(batch))) break;
    }
    this.#writing = undefined;
  }

  async #send(batch: readonly [string, CallSnapshot | null][]): Promise<boolean> {
    const { writes, instance, clock, log } = this.parts;
    const [key, answersKey] = [gatewayCallsKey(instance), gatewayAnswersKey(instance)];
    try {
      // What goes first, then what is kept: one command each.
      const changes = [
        ...batch.flatMap(([callId, snapshot]): RedisCommand[] =>
          snapshot === null ? [key, answersKey].map((one) => ['hdel', one, callId]) : [],
        ),
        ...batch.flatMap(([callId, snapshot]): RedisCommand[] => {
          if (snapshot === null) return [];
          const change: RedisCommand = ['hset', key, callId, JSON.stringify(snapshot)];
          return snapshot.answer === null ? [change] : [change, ['hset', answersKey, callId, JSON.stringify(snapshot.answer)]];
        }),
      ];
      await writes.write([...changes, ...this.#expiry([key, answersKey])]);
      for (const [callId, snapshot] of batch) if (snapshot === null && !this.#waiting.has(callId)) this.#written.delete(callId);
      return true;
    } catch (error) {
      this.#expiresSetMs = -Infinity;
      // Not over what came meanwhile, which is later.
      for (const [callId, snapshot] of batch) if (!this.#waiting.has(callId)) this.#waiting.set(callId, snapshot);
      log.debug({ error: errorText(error) }, 'call.snapshot.not_written');
      this.#cancelRetry = clock.setTimer(RETRY_MS, () => {
        this.#cancelRetry = undefined;
        void this.#write();
      });
      return false;
    }
  }

  /** Now and then: the time that they are kept is far longer. */
  #expiry(keys: readonly string[]): RedisCommand[] {
    const nowMs = this.parts.clock.nowMs();
    if (nowMs - this.#expiresSetMs < EXPIRE_EVERY_MS) return [];
    this.#expiresSetMs = nowMs;
    return keys.map((key) => ['expire', key, KEPT_S]);
  }

  #decode(callId: string, text: string): CallSnapshot[] {
    try {
      const read = JSON.parse(text) as CallSnapshot;
      // An earlier version knows only calls that came in.
      return [{ ...read, call: { ...read.call, direction: read.dial == null ? 'inbound' : 'outbound' } }];
    } catch {
      this.parts.log.warn({ call_id: callId }, 'call.snapshot.unreadable');
      this.delete(callId);
      return [];
    }
  }
}
