import type { AgentRecord, ToolRecord } from '../model/agent-record.js';
import type { AuditEntry } from '../model/audit-entry.js';
import type { BatchRecord } from '../model/batch-log.js';
import type { CallRecord } from '../model/call-record.js';
import type { TraceEntry } from '../model/call-trace.js';
import type { DeadLetter } from '../model/delivery.js';
import type { CallInProgress } from '../model/live-calls.js';
import type { NumberRecord } from '../model/records.js';
import type { Throughput } from '../model/throughput.js';
import { liveMemberOf, recordMember } from '../ports/listing.js';
import {
  NO_ORG,
  type CallPage,
  type CallQuery,
  type DeadLetterPage,
  type ListQuery,
  type Page,
  type RecordPage,
  type Scope,
  type Stores,
} from '../ports/stores.js';

// What is read of one organization, or of all of them by an operator. Lists of all are read organization by organization.

/** Organizations that are asked at a time. */
const ASKED_AT_ONCE = 20;
/** Organizations that one page of a list goes through. */
const WALKED = 200;
const DEFAULT_LIMIT = 50;
/** Below every member of an index. */
const FIRST = `${'0'.repeat(15)}:00000000-0000-0000-0000-000000000000`;

export type ReadStores = Pick<
  Stores,
  'orgs' | 'agents' | 'tools' | 'numbers' | 'batches' | 'audit' | 'calls' | 'live' | 'outbox' | 'throughput'
>;

export class ScopedReads {
  constructor(private readonly stores: ReadStores) {}

  agents(scope: Scope, query: ListQuery): Promise<RecordPage<AgentRecord>> {
    return this.#walk(scope, query, (orgId, part) => this.stores.agents.list(orgId, part));
  }

  tools(scope: Scope, query: ListQuery): Promise<RecordPage<ToolRecord>> {
    return this.#walk(scope, query, (orgId, part) => this.stores.tools.list(orgId, part));
  }

  /** Sorted by number, those of each organization by themselves. */
  async numbers(scope: Scope, { take, skip }: Page): Promise<readonly NumberRecord[]> {
    if (scope !== null) return this.stores.numbers.list(scope, { take, skip });
    const found: NumberRecord[] = [];
    let toSkip = skip;
    for (const orgId of await this.#orgIds()) {
      if (found.length >= take) break;
      const count = toSkip === 0 ? 0 : await this.stores.numbers.count(orgId);
      if (toSkip > 0 && count <= toSkip) {
        toSkip -= count;
        continue;
      }
      found.push(...(await this.stores.numbers.list(orgId, { take: take - found.length, skip: toSkip })));
      toSkip = 0;
    }
    return found;
  }

  /** Newest first. */
  async batches(scope: Scope, { take, skip }: Page): Promise<readonly BatchRecord[]> {
    if (scope !== null) return this.stores.batches.list(scope, { take, skip });
    const found = (await this.#ofEach((orgId) => this.stores.batches.list(orgId, { take: skip + take, skip: 0 }))).flat();
    return found.sort((a, b) => (a.created_at < b.created_at ? 1 : -1)).slice(skip, skip + take);
  }

  /** Newest first. Of all organizations a page may have some more than `take`, where several changed something at the same moment. */
  async audit(scope: Scope, query: { readonly take: number; readonly before?: string }): Promise<readonly AuditEntry[]> {
    const read = async (orgId: string): Promise<AuditEntry[]> =>
      (await this.stores.audit.list(orgId, query)).map((entry) => ({ ...entry, org_id: orgId }));
    if (scope !== null) return read(scope);
    // Operators' own changes, such as the making of their keys, are of none.
    const all = [...(await this.#ofEach(read)), await read(NO_ORG)];
    const found = all.flat().sort((a, b) => compareIds(b.id, a.id));
    const last = found[query.take - 1];
    return last === undefined ? found : found.filter((entry) => compareIds(entry.id, last.id) >= 0);
  }

  async deadLetters(scope: Scope, limit: number, before: string | null): Promise<DeadLetterPage> {
    if (scope !== null) return this.stores.outbox.dead(scope, limit, before);
    const pages = await this.#ofEach((orgId) => this.stores.outbox.dead(orgId, limit, before));
    const { items, next } = merged(
      pages.map((page) => ({ items: page.letters, next: page.next })),
      limit,
      (letter: DeadLetter) => recordMember(letter.died_at, letter.delivery_id),
    );
    return { letters: items, next };
  }

  calls(scope: Scope, query: CallQuery): Promise<CallPage> {
    return this.stores.calls.list(scope, query);
  }

  async liveCalls(scope: Scope, query: CallQuery): Promise<CallPage<CallInProgress>> {
    if (scope !== null) return this.stores.live.list(scope, query);
    const pages = await this.#ofEach((orgId) => this.stores.live.list(orgId, query));
    const { items, next } = merged(
      pages.map((page) => ({ items: page.calls, next: page.next })),
      query.limit,
      liveMemberOf,
    );
    return { calls: items, next };
  }

  liveCall(scope: Scope, callId: string): Promise<CallInProgress | null> {
    return this.#first(scope, (orgId) => this.stores.live.get(orgId, callId));
  }

  endingCall(scope: Scope, callId: string): Promise<CallInProgress | null> {
    return this.#first(scope, (orgId) => this.stores.live.ending(orgId, callId));
  }

  call(scope: Scope, callId: string): Promise<CallRecord | null> {
    return this.#first(scope, (orgId) => this.stores.calls.get(orgId, callId));
  }

  trace({ org_id: orgId, call_id: callId }: CallRecord): Promise<readonly TraceEntry[]> {
    return this.stores.calls.trace(orgId ?? NO_ORG, callId);
  }

  async throughput(scope: Scope): Promise<Throughput> {
    if (scope !== null) return this.stores.throughput.read(scope);
    const all = await this.#ofEach((orgId) => this.stores.throughput.read(orgId));
    return all.reduce(sumOf, await this.stores.throughput.read(NO_ORG));
  }

  /** One organization after the other; a cursor names the one that it stands in. */
  async #walk<T>(
    scope: Scope,
    { limit, before }: ListQuery,
    read: (orgId: string, query: ListQuery) => Promise<RecordPage<T>>,
  ): Promise<RecordPage<T>> {
    if (scope !== null)
      return read(scope, {
        ...(limit === undefined ? {} : { limit }),
        ...(before === undefined ? {} : { before: partsOf(before).member }),
      });
    const most = limit ?? DEFAULT_LIMIT;
    const start = before === undefined ? null : partsOf(before);
    const orgIds = (await this.#orgIds()).filter((orgId) => start === null || orgId >= start.orgId);
    const records: T[] = [];
    for (const [index, orgId] of orgIds.entries()) {
      if (records.length >= most || index >= WALKED) return { records, next: `${FIRST}:${orgId}` };
      const from = orgId === start?.orgId ? { before: start.member } : {};
      const page = await read(orgId, { limit: most - records.length, ...from });
      records.push(...page.records);
      if (page.next !== null) return { records, next: `${page.next}:${orgId}` };
    }
    return { records, next: null };
  }

  async #first<T>(scope: Scope, read: (orgId: string) => Promise<T | null>): Promise<T | null> {
    if (scope !== null) return read(scope);
    const orgIds = [...(await this.#orgIds()), NO_ORG];
    for (let start = 0; start < orgIds.length; start += ASKED_AT_ONCE) {
      const found = await Promise.all(orgIds.slice(start, start + ASKED_AT_ONCE).map(read));
      const one = found.find((record) => record !== null);
      if (one !== undefined) return one;
    }
    return null;
  }

  async #ofEach<T>(read: (orgId: string) => Promise<T>): Promise<T[]> {
    const orgIds = await this.#orgIds();
    const all: T[] = [];
    for (let start = 0; start < orgIds.length; start += ASKED_AT_ONCE)
      all.push(...(await Promise.all(orgIds.slice(start, start + ASKED_AT_ONCE).map(read))));
    return all;
  }

  async #orgIds(): Promise<string[]> {
    return (await this.stores.orgs.list()).map((org) => org.org_id).sort();
  }
}

/** A cursor of a walk: a member, and the organization that it stands in. */
function partsOf(cursor: string): { readonly member: string; readonly orgId: string } {
  const [time = '', id = '', orgId = ''] = cursor.split(':');
  return { member: `${time}:${id}`, orgId };
}

/** Pages of several lists, newest first, as one: no further down than the list of which the least was read. */
function merged<T>(
  pages: readonly { readonly items: readonly T[]; readonly next: string | null }[],
  limit: number,
  memberOf: (item: T) => string,
): { readonly items: readonly T[]; readonly next: string | null } {
  const read = pages.reduce<string | null>((least, { next }) => (next !== null && (least === null || next > least) ? next : least), null);
  const all = pages
    .flatMap(({ items }) => items.map((item) => ({ member: memberOf(item), item })))
    .filter(({ member }) => read === null || member >= read)
    .sort((a, b) => (a.member < b.member ? 1 : -1));
  const page = all.slice(0, limit);
  return { items: page.map(({ item }) => item), next: all.length > limit ? (page.at(-1)?.member ?? null) : read };
}

/** Ids of streams: milliseconds, and a count within one. */
function compareIds(a: string, b: string): number {
  const [aMs = 0, aCount = 0] = a.split('-').map(Number);
  const [bMs = 0, bCount = 0] = b.split('-').map(Number);
  return aMs - bMs || aCount - bCount;
}

function sumOf(a: Throughput, b: Throughput): Throughput {
  return {
    inProgress: a.inProgress + b.inProgress,
    intervals: a.intervals.map((interval, index) => {
      const other = b.intervals[index];
      if (other === undefined) return interval;
      return {
        ...interval,
        begun: interval.begun + other.begun,
        ended: interval.ended + other.ended,
        refused: interval.refused + other.refused,
      };
    }),
  };
}
