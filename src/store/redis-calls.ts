import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { CallRecord } from '../contracts/call-record.js';
import type { TraceEntry } from '../contracts/call-trace.js';
import type { EndedCall } from '../gateway/ports.js';
import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { callDetailKey, callKey, orgCallsKey, traceKey, UNROUTED_CALLS_KEY } from './keys.js';
import { LruMap } from '../lib/lru.js';
import { callIndexMember, callIndexTime } from './ordering.js';
import { decodeRecord, type RedisConnection } from './redis.js';
import { readPage } from './call-page.js';
import { StoredCalls, type StoredKind, type StoredPart } from './stored-calls.js';
import type { CallLog, CallPage, CallQuery, CallRetention } from './stores.js';

const deflated = promisify(deflateRaw);
const inflated = promisify(inflateRaw);

// What Redis needs beside names and values: its own structures for a key that expires, and for a member of an index and of two lists.
const BYTES_A_KEY = 250;
const BYTES_A_CALL = 450;
const DAY_MS = 86_400_000;
const DAY_S = 86_400;
// Evicted at most at a time, so that one write stays short; more than calls were added since, so the rest goes with the next ones.
const EVICT_AT_ONCE = 100;
// Of a limit: so many calls more may be kept before the oldest go.
const TIDY_EACH_SHARE = 0.001;
const TIDY_EACH_MAX = 50;
const TIDIED_ORGS = 10_000;

export class RedisCallLog implements CallLog {
  readonly #redis: RedisConnection;
  readonly #clock: Clock;
  readonly #retention: CallRetention;
  readonly #tidyEach: number;
  /** Calls written since the oldest ones of an organization went the last time. */
  readonly #untidied = new LruMap<string, number>(TIDIED_ORGS);

  readonly #stored: StoredCalls;

  constructor(redis: RedisConnection, clock: Clock, log: Log, retention: CallRetention) {
    this.#redis = redis;
    this.#clock = clock;
    this.#stored = new StoredCalls(redis, retention.maxBytes, (kind, parts) => this.#drop(kind, parts), clock, log);
    this.#retention = retention;
    this.#tidyEach = Math.max(1, Math.min(TIDY_EACH_MAX, Math.floor(retention.maxPerOrg * TIDY_EACH_SHARE)));
  }

  get stored(): Pick<StoredCalls, 'bytes' | 'evicted'> {
    return this.#stored;
  }

  async close(): Promise<void> {
    await this.#stored.close();
  }

  async write({ record, trace }: EndedCall): Promise<void> {
    if (record.org_id === null) await this.#writeUnrouted(record);
    else await this.#writeRouted(record.org_id, record, trace);
  }

  async get(orgId: string, callId: string): Promise<CallRecord | null> {
    const [text, detail] = await this.#redis.run((client) => client.mget(callKey(orgId, callId), callDetailKey(orgId, callId)));
    const record = decodeCall(text);
    if (record === null || typeof detail !== 'string') return record;
    return { ...record, ...(JSON.parse(detail) as Pick<CallRecord, 'transcript' | 'samples'>) };
  }

  async trace(orgId: string, callId: string): Promise<readonly TraceEntry[]> {
    const bytes = await this.#redis.run((client) => client.getBuffer(traceKey(orgId, callId)));
    return bytes === null ? [] : (JSON.parse((await inflated(bytes)).toString()) as TraceEntry[]);
  }

  list(orgId: string, query: CallQuery): Promise<CallPage> {
    return readPage(query, async ({ from, to }, count) => {
      const members = await this.#redis.run((client) =>
        client.zrange(orgCallsKey(orgId), to === null ? '+' : `(${to}`, from === '' ? '-' : `[${from}`, 'BYLEX', 'REV', 'LIMIT', 0, count),
      );
      if (members.length === 0) return [];
      const texts = await this.#redis.run((client) => client.mget(members.map((member) => callKey(orgId, callIdOf(member)))));
      return members.map((member, index) => ({ member, record: decodeCall(texts[index]) }));
    });
  }

  async listUnrouted(limit: number): Promise<readonly CallRecord[]> {
    const texts = await this.#redis.run((client) => client.lrange(UNROUTED_CALLS_KEY, 0, limit - 1));
    return texts.map(decodeCall).filter((record) => record !== null);
  }

  async #writeUnrouted(record: CallRecord): Promise<void> {
    await this.#redis.run((client) =>
      Promise.all([
        client.lpush(UNROUTED_CALLS_KEY, JSON.stringify(record)),
        client.ltrim(UNROUTED_CALLS_KEY, 0, this.#retention.maxUnrouted - 1),
        client.expire(UNROUTED_CALLS_KEY, Math.ceil((this.#retention.days * DAY_MS) / 1000)),
      ]),
    );
  }

  async #writeRouted(orgId: string, record: CallRecord, trace: readonly TraceEntry[]): Promise<void> {
    const expireS = Math.ceil((this.#retention.days * DAY_MS) / 1000);
    const { transcript, samples } = record;
    const recordText = JSON.stringify({ ...record, transcript: [], samples: [] });
    // Apart, so that a list of calls need not read what was said in each.
    const detail = transcript.length + samples.length === 0 ? null : JSON.stringify({ transcript, samples });
    const traceBytes = trace.length === 0 ? null : await deflated(JSON.stringify(trace));
    const traceExpireS = this.#retention.traceDays * DAY_S;
    const member = callIndexMember(record.started_at, record.call_id);
    await this.#redis.run((client) =>
      Promise.all([
        client.set(callKey(orgId, record.call_id), recordText, 'EX', expireS),
        client.zadd(orgCallsKey(orgId), 0, member),
        ...(detail === null ? [] : [client.set(callDetailKey(orgId, record.call_id), detail, 'EX', expireS)]),
        ...(traceBytes === null ? [] : [client.set(traceKey(orgId, record.call_id), traceBytes, 'EX', traceExpireS)]),
      ]),
    );
    const note = (kind: StoredKind, bytes: number, seconds: number): void =>
      this.#stored.note({ kind, orgId, member, bytes, expiresMs: this.#clock.wallMs() + seconds * 1_000 });
    note('record', BYTES_A_CALL + BYTES_A_KEY + Buffer.byteLength(recordText) + sizeOf(detail), expireS);
    if (traceBytes !== null) note('trace', BYTES_A_KEY + traceBytes.length, traceExpireS);
    const untidied = (this.#untidied.get(orgId) ?? this.#tidyEach) + 1;
    this.#untidied.set(orgId, untidied > this.#tidyEach ? 1 : untidied);
    if (untidied > this.#tidyEach) await this.#tidy(orgId, expireS);
  }

  /** The oldest go: those past their time, and those over the number that is kept. */
  async #tidy(orgId: string, expireS: number): Promise<void> {
    const index = orgCallsKey(orgId);
    const oldestMs = this.#clock.wallMs() - this.#retention.days * DAY_MS;
    const [, count] = await this.#redis.run((client) =>
      Promise.all([client.zremrangebylex(index, '-', `(${callIndexTime(oldestMs)}`), client.zcard(index), client.expire(index, expireS)]),
    );
    if (count > this.#retention.maxPerOrg) await this.#evict(orgId, Math.min(count - this.#retention.maxPerOrg, EVICT_AT_ONCE));
  }

  async #evict(orgId: string, count: number): Promise<void> {
    const popped = await this.#redis.run((client) => client.zpopmin(orgCallsKey(orgId), count));
    // Members and scores in turn.
    const keys = popped.filter((_value, index) => index % 2 === 0).flatMap((member) => callKeys(orgId, callIdOf(member)));
    if (keys.length > 0) await this.#redis.run((client) => client.unlink(...keys));
  }

  async #drop(kind: StoredKind, parts: readonly Pick<StoredPart, 'orgId' | 'member'>[]): Promise<void> {
    await this.#redis.run((client) =>
      Promise.all(
        parts.flatMap(({ orgId, member }) =>
          kind === 'trace'
            ? [client.unlink(traceKey(orgId, callIdOf(member)))]
            : [client.unlink(...callKeys(orgId, callIdOf(member))), client.zrem(orgCallsKey(orgId), member)],
        ),
      ),
    );
  }
}

function callKeys(orgId: string, callId: string): string[] {
  return [callKey(orgId, callId), callDetailKey(orgId, callId), traceKey(orgId, callId)];
}

function sizeOf(detail: string | null): number {
  return detail === null ? 0 : BYTES_A_KEY + Buffer.byteLength(detail);
}

/** `null` also for a record of a version before there was a caller in it. */
function decodeCall(text: string | null | undefined): CallRecord | null {
  const record = decodeRecord('call', text);
  return record !== null && 'caller' in record ? record : null;
}

/** The call id in an index member. */
function callIdOf(member: string): string {
  return member.slice(member.indexOf(':') + 1);
}
