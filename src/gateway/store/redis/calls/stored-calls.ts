import type { CancelTimer, Clock } from '../../../../lib/clock.js';
import { errorText } from '../../../../lib/result.js';
import type { Log } from '../../../../lib/log.js';
import { STORED_CALLS_KEYS } from '../keys.js';
import { RedisScript, type RedisConnection } from '../redis.js';

const NOTE = new RedisScript('calls/note-stored');
const EACH_MS = 1_000;
/** The least number of notes examined for each that is added: what is over the limit goes faster than new calls come. */
const LOOKED_AT_EACH = 4;
const LOOKED_AT_LEAST = 200;
/** Notes that wait while Redis is away. What is over it is kept by Redis until its retention ends, and not counted. */
const MAX_NOTES = 20_000;

export type StoredKind = 'trace' | 'record';

/** One part of what is kept of a call. */
export interface StoredPart {
  readonly kind: StoredKind;
  readonly orgId: string;
  /** The call's member of its organization's index (`recordMember`). */
  readonly member: string;
  /** Its bytes in Redis, keys included, as far as they can be told. */
  readonly bytes: number;
  /** Epoch milliseconds at which Redis drops it by itself. */
  readonly expiresMs: number;
}

/**
 * Keeps what all gateways store of calls within a number of bytes: the oldest traces go first, then the oldest records. Written parts are
 * noted once a second, off the path of calls.
 */
export class StoredCalls {
  readonly #evicted: Record<StoredKind, number> = { trace: 0, record: 0 };
  #notes: StoredPart[] = [];
  #cancel: CancelTimer | undefined;

  /**
   * @param limits `expireS`: the longest that a part is kept
   * @param drop removes these parts; all are of one kind
   */
  constructor(
    private readonly redis: RedisConnection,
    private readonly limits: { readonly maxBytes: number; readonly expireS: number },
    private readonly drop: (kind: StoredKind, parts: readonly Pick<StoredPart, 'orgId' | 'member'>[]) => Promise<void>,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** What this gateway dropped before the end of its retention. */
  get evicted(): Readonly<Record<StoredKind, number>> {
    return this.#evicted;
  }

  /** Bytes that all gateways stored in this Redis. */
  async bytes(): Promise<number> {
    const [, , bytes = ''] = STORED_CALLS_KEYS;
    const values = await this.redis.run((client) => client.hvals(bytes));
    return values.reduce((sum, value) => sum + Number(value), 0);
  }

  note(part: StoredPart): void {
    if (this.#notes.length < MAX_NOTES) this.#notes.push(part);
    this.#cancel ??= this.clock.setTimer(EACH_MS, () => void this.#flushSoon());
  }

  /** Notes what waits, and drops what is over the limit. Rejects with `StoreUnavailableError`; what waits goes on waiting then. */
  async flush(): Promise<void> {
    const notes = this.#notes;
    this.#notes = [];
    const lookedAt = Math.max(LOOKED_AT_LEAST, LOOKED_AT_EACH * notes.length);
    const traces = notes.filter(({ kind }) => kind === 'trace');
    const records = notes.filter(({ kind }) => kind === 'record');
    const args = [
      this.clock.wallMs(),
      this.limits.maxBytes,
      lookedAt,
      this.limits.expireS,
      bytesOf(traces),
      bytesOf(records),
      traces.length,
    ];
    let answer: unknown;
    try {
      answer = await this.redis.script(NOTE, STORED_CALLS_KEYS, [...args, ...[...traces, ...records].map(noteOf)]);
    } catch (error) {
      // They wait for the next time. Parts that were noted and could not be dropped are not noted twice.
      this.#notes = [...notes, ...this.#notes].slice(0, MAX_NOTES);
      throw error;
    }
    const [oldTraces, oldRecords] = answer as [readonly string[], readonly string[]];
    await this.#evict('trace', oldTraces);
    await this.#evict('record', oldRecords);
  }

  async close(): Promise<void> {
    this.#cancel?.();
    await this.#tryFlush();
  }

  async #flushSoon(): Promise<void> {
    await this.#tryFlush();
    this.#cancel = this.#notes.length === 0 ? undefined : this.clock.setTimer(EACH_MS, () => void this.#flushSoon());
  }

  async #tryFlush(): Promise<void> {
    if (this.#notes.length === 0) return;
    try {
      await this.flush();
    } catch (error) {
      this.log.debug({ error: errorText(error) }, 'call.stored.not_noted');
    }
  }

  async #evict(kind: StoredKind, notes: readonly string[]): Promise<void> {
    if (notes.length === 0) return;
    await this.drop(kind, notes.map(partOf));
    this.#evicted[kind] += notes.length;
  }
}

function noteOf({ expiresMs, bytes, orgId, member }: StoredPart): string {
  return `${String(expiresMs)} ${String(bytes)} ${orgId} ${member}`;
}

function bytesOf(parts: readonly StoredPart[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

function partOf(note: string): Pick<StoredPart, 'orgId' | 'member'> {
  const [, , orgId = '', member = ''] = note.split(' ');
  return { orgId, member };
}
