import { hash } from 'node:crypto';
import { recentlyUsed } from '../../../../lib/recently-used.js';
import { isRefusedInbound, type CallRecord } from '../../../model/call-record.js';
import type { TraceEntry } from '../../../model/call-trace.js';
import type { EndedCall } from '../../../ports/ports.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import { callDetailKey, callKey, CALLS_KEY, orgCallsKey, orgRefusedCallsKey, sipCallsKey, traceKey } from '../keys.js';
import { callIndexTime, idOfMember, recordMember } from '../../../ports/listing.js';
import { decodeRecord, type RedisCommand, type RedisConnection } from '../redis.js';
import type { TurnWrites } from '../turn-writes.js';
import { readPage } from '../call-page.js';
import { packTrace, unpackTrace } from './packed-trace.js';
import { StoredCalls, type StoredKind, type StoredPart } from './stored-calls.js';
import {
  MAX_CALLS_OF_ALL,
  MAX_CALLS_OF_SIP_CALL_ID,
  NO_ORG,
  type CallLog,
  type CallPage,
  type CallQuery,
  type CallRetention,
  type FoundAnalysis,
  type Scope,
} from '../../../ports/stores.js';

// What Redis needs beside names and values: its own structures for a key that expires, and for the indexes and lists that a call is in.
const BYTES_A_KEY = 250;
const BYTES_A_CALL = 900;
const DAY_MS = 86_400_000;
const DAY_S = 86_400;
// Calls evicted at once, so that one write stays short. More than were added since, so later writes evict the rest.
const EVICT_AT_ONCE = 100;
// Share of a limit by which stored calls may exceed it before the oldest go.
const TIDY_EACH_SHARE = 0.001;
const TIDY_EACH_MAX = 50;
const TIDIED_ORGS = 10_000;

export class RedisCallLog implements CallLog {
  readonly #tidyEach: number;
  /** Calls written since the oldest ones of an organization went the last time. */
  readonly #untidied = recentlyUsed<string, number>(TIDIED_ORGS);

  readonly #stored: StoredCalls;

  constructor(
    private readonly redis: RedisConnection,
    private readonly writes: TurnWrites,
    private readonly clock: Clock,
    log: Log,
    private readonly retention: CallRetention,
  ) {
    this.#stored = new StoredCalls(
      redis,
      { maxBytes: retention.maxBytes, expireS: Math.max(retention.days, retention.traceDays) * DAY_S },
      (kind, parts) => this.#drop(kind, parts),
      clock,
      log,
    );
    this.#tidyEach = Math.max(1, Math.min(TIDY_EACH_MAX, Math.floor(retention.maxPerOrg * TIDY_EACH_SHARE)));
  }

  get stored(): Pick<StoredCalls, 'bytes' | 'evicted'> {
    return this.#stored;
  }

  async close(): Promise<void> {
    await this.#stored.close();
  }

  async get(orgId: string, callId: string): Promise<CallRecord | null> {
    const [text, detail] = await this.redis.run((client) => client.mget(callKey(orgId, callId), callDetailKey(orgId, callId)));
    const record = decodeCall(text);
    if (record === null || typeof detail !== 'string') return record;
    return { ...record, ...(JSON.parse(detail) as Pick<CallRecord, 'transcript' | 'samples'>) };
  }

  async trace(orgId: string, callId: string): Promise<readonly TraceEntry[]> {
    const packed = await this.redis.run((client) => client.getBuffer(traceKey(orgId, callId)));
    return packed === null ? [] : unpackTrace(packed);
  }

  list(scope: Scope, query: CallQuery): Promise<CallPage> {
    const index = indexOf(scope, query);
    return readPage(query, async ({ from, to }, count) => {
      const members = await this.redis.run((client) =>
        client.zrange(index, to === null ? '+' : `(${to}`, from === '' ? '-' : `[${from}`, 'BYLEX', 'REV', 'LIMIT', 0, count),
      );
      const calls = members.map((member) => partsOf(member, scope));
      const texts = await this.redis.getMany(calls.map(({ orgId, callId }) => callKey(orgId, callId)));
      return calls.map(({ orgId, position }, at) => {
        const text = texts[at] ?? null;
        const isShown = scope === null || orgId === scope;
        return { member: position, record: isShown ? decodeCall(text) : null, bytes: text?.length ?? 0 };
      });
    });
  }

  async addAnalysis(orgId: string, callId: string, found: FoundAnalysis): Promise<boolean> {
    const key = callKey(orgId, callId);
    const record = decodeCall(await this.redis.run((client) => client.get(key)));
    if (record === null) return false;
    // Nobody else changes a record; it may have expired since.
    return (await this.redis.run((client) => client.set(key, JSON.stringify({ ...record, ...found }), 'KEEPTTL', 'XX'))) !== null;
  }

  async write({ record, trace, transcriptDays }: EndedCall): Promise<void> {
    const orgId = record.org_id ?? NO_ORG;
    const expireS = Math.ceil((this.retention.days * DAY_MS) / 1000);
    const { transcript, samples } = record;
    const recordText = JSON.stringify({ ...record, transcript: [], samples: [] });
    // Apart, so that a list of calls need not read what was said in each.
    const detail = transcript.length + samples.length === 0 ? null : JSON.stringify({ transcript, samples });
    const packedTrace = trace.length === 0 ? null : packTrace(trace);
    const traceExpireS = this.retention.traceDays * DAY_S;
    const member = recordMember(record.started_at, record.call_id);
    const callId = record.call_id;
    const listed = `${member}:${orgId}`;
    const sipCalls = sipCallsKey(digestOf(record.sip_call_id));
    const writes: RedisCommand[] = [
      ['set', callKey(orgId, callId), recordText, 'EX', expireS],
      ['zadd', orgCallsKey(orgId), 0, member],
      ...(isRefused(record) ? [['zadd', orgRefusedCallsKey(orgId), 0, member] as const] : []),
      ['zadd', CALLS_KEY, 0, listed],
      // A stranger chooses the Call-ID: only the newest calls of one are kept.
      ['zadd', sipCalls, 0, listed],
      ['zremrangebyrank', sipCalls, 0, -MAX_CALLS_OF_SIP_CALL_ID - 1],
      ['expire', sipCalls, expireS],
    ];
    // The samples go with the transcript.
    const detailExpireS = Math.min(expireS, (transcriptDays ?? Infinity) * DAY_S);
    if (detail !== null) writes.push(['set', callDetailKey(orgId, callId), detail, 'EX', detailExpireS]);
    if (packedTrace !== null) writes.push(['set', traceKey(orgId, callId), packedTrace, 'EX', traceExpireS]);
    await this.writes.write(writes);
    const note = (kind: StoredKind, bytes: number, seconds: number): void =>
      this.#stored.note({ kind, orgId, member, bytes, expiresMs: this.clock.wallMs() + seconds * 1_000 });
    note('record', BYTES_A_CALL + BYTES_A_KEY + Buffer.byteLength(recordText) + sizeOf(detail), expireS);
    if (packedTrace !== null) note('trace', BYTES_A_KEY + packedTrace.length, traceExpireS);
    const untidied = (this.#untidied.get(orgId) ?? this.#tidyEach) + 1;
    this.#untidied.set(orgId, untidied > this.#tidyEach ? 1 : untidied);
    if (untidied > this.#tidyEach) await this.#tidy(orgId, expireS);
  }

  /** The oldest go: those past their time, and those over the number that is kept. */
  async #tidy(orgId: string, expireS: number): Promise<void> {
    const [index, refusedIndex] = [orgCallsKey(orgId), orgRefusedCallsKey(orgId)];
    const oldest = `(${callIndexTime(this.clock.wallMs() - this.retention.days * DAY_MS)}`;
    const [, , count, refused] = await this.redis.run((client) =>
      Promise.all([
        client.zremrangebylex(index, '-', oldest),
        client.zremrangebylex(refusedIndex, '-', oldest),
        client.zcard(index),
        client.zcard(refusedIndex),
        client.expire(index, expireS),
        client.expire(refusedIndex, expireS),
        client.zremrangebyrank(CALLS_KEY, 0, -MAX_CALLS_OF_ALL - 1),
        client.expire(CALLS_KEY, expireS),
      ]),
    );
    const { maxUnrouted, maxPerOrg, maxRefusedPerOrg } = this.retention;
    const overRefused = orgId === NO_ORG ? 0 : refused - maxRefusedPerOrg;
    if (overRefused > 0) await this.#evict(orgId, refusedIndex, Math.min(overRefused, EVICT_AT_ONCE));
    const over = orgId === NO_ORG ? count - maxUnrouted : count - refused - maxPerOrg;
    if (over > 0) await this.#evict(orgId, index, Math.min(over, EVICT_AT_ONCE));
  }

  async #evict(orgId: string, index: string, count: number): Promise<void> {
    const popped = await this.redis.run((client) => client.zpopmin(index, count));
    // Members and scores in turn.
    await this.#remove(
      orgId,
      popped.filter((_value, index) => index % 2 === 0),
    );
  }

  /** All that is kept of calls of one organization, by their members of its index. */
  async #remove(orgId: string, members: readonly string[]): Promise<void> {
    if (members.length === 0) return;
    const callIds = members.map(idOfMember);
    const texts = await this.redis.getMany(callIds.map((callId) => callKey(orgId, callId)));
    const keys = callIds.flatMap((callId) => [callKey(orgId, callId), callDetailKey(orgId, callId), traceKey(orgId, callId)]);
    await this.redis.run((client) =>
      Promise.all([
        client.unlink(...keys),
        client.zrem(orgCallsKey(orgId), ...members),
        client.zrem(orgRefusedCallsKey(orgId), ...members),
        client.zrem(CALLS_KEY, ...members.map((member) => `${member}:${orgId}`)),
        ...members.flatMap((member, at) => {
          const record = decodeCall(texts[at]);
          return record === null ? [] : [client.zrem(sipCallsKey(digestOf(record.sip_call_id)), `${member}:${orgId}`)];
        }),
      ]),
    );
  }

  async #drop(kind: StoredKind, parts: readonly Pick<StoredPart, 'orgId' | 'member'>[]): Promise<void> {
    for (const orgId of new Set(parts.map((part) => part.orgId))) {
      const members = parts.filter((part) => part.orgId === orgId).map(({ member }) => member);
      if (kind === 'record') await this.#remove(orgId, members);
      else await this.redis.run((client) => client.unlink(...members.map((member) => traceKey(orgId, idOfMember(member)))));
    }
  }
}

/** Also where several share the record. */
function isRefused(record: CallRecord): boolean {
  return isRefusedInbound({ ...record, summed_calls: null });
}

function sizeOf(detail: string | null): number {
  return detail === null ? 0 : BYTES_A_KEY + Buffer.byteLength(detail);
}

/** `null` also for a record of a version before there was a caller in it. */
function decodeCall(text: string | null | undefined): CallRecord | null {
  const record = decodeRecord('call', text);
  return record !== null && 'caller' in record ? record : null;
}

/** Where the calls of a query are listed. */
function indexOf(scope: Scope, { sipCallId }: CallQuery): string {
  if (sipCallId !== undefined) return sipCallsKey(digestOf(sipCallId));
  return scope === null ? CALLS_KEY : orgCallsKey(scope);
}

/** What a member of one of these indexes says; those of one organization leave it out. */
function partsOf(member: string, scope: Scope): { readonly position: string; readonly callId: string; readonly orgId: string } {
  const [time = '', callId = '', orgId = scope ?? NO_ORG] = member.split(':');
  return { position: `${time}:${callId}`, callId, orgId };
}

/** 128 bits: a collision harms nothing, for the record has the Call-ID in full. */
function digestOf(sipCallId: string): string {
  return hash('sha256', sipCallId, 'base64url').slice(0, 22);
}
