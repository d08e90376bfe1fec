import type { CallSnapshot } from '../../../model/call-snapshot.js';
import type { Route } from '../../../model/records.js';
import { NO_USAGE, type ConcurrentUsage } from '../../../admission/admission.js';
import type { Clock } from '../../../../lib/clock.js';
import { type E164, parseE164 } from '../../../model/e164.js';
import type { BeginningCall } from '../../../model/live-calls.js';
import {
  agentKey,
  endingCallKey,
  numberKey,
  numberLeasesKey,
  numberRecentKey,
  orgKey,
  orgLeasesKey,
  orgLiveCallsKey,
  orgLiveKey,
  orgRecentKey,
} from '../keys.js';
import { liveEntry, liveMemberOf, type LiveEntry } from '../../../ports/listing.js';
import { isMissingScript, RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import type { TurnWrites } from '../turn-writes.js';

/** A number or an organization: both have a record with limits and, in the same hash slot, the calls that count against them. */
export interface Limited {
  readonly kind: 'number' | 'org';
  readonly recordKey: string;
  readonly leasesKey: string;
  readonly recentKey: string;
  /** Where its calls in progress are listed, in the same slot too: the index and what is known of each. Of organizations only. */
  readonly listKeys: readonly [string, string] | null;
}

export function limitedNumber(number: E164): Limited {
  return {
    kind: 'number',
    recordKey: numberKey(number),
    leasesKey: numberLeasesKey(number),
    recentKey: numberRecentKey(number),
    listKeys: null,
  };
}

export function limitedOrg(orgId: string): Limited {
  return {
    kind: 'org',
    recordKey: orgKey(orgId),
    leasesKey: orgLeasesKey(orgId),
    recentKey: orgRecentKey(orgId),
    listKeys: [orgLiveKey(orgId), orgLiveCallsKey(orgId)],
  };
}

/** What a number or an organization told, this call not counted. */
export interface Slot {
  /** `null`: there is no record. */
  readonly record: string | null;
  readonly calls: number;
  readonly lastSecond: number;
  readonly isTaken: boolean;
}

const ACQUIRE_SLOT = new RedisScript('leases/acquire-slot');
const RENEW_SLOTS = new RedisScript('leases/renew-slots');
const LIST_AGAIN = new RedisScript('leases/list-again');

/** Longer than a record takes to be written, Redis being there. */
const ENDING_S = 30;
// In one script or one pipeline: Redis serves nobody else meanwhile.
const RENEWED_AT_ONCE = 500;

/** Places of calls in progress, counted and listed over all gateways. One lives `leaseMs` and is renewed, so that those of a gateway that died are free again. */
export class Leases {
  /** @param instance names this gateway in the lists of calls in progress */
  constructor(
    private readonly redis: RedisConnection,
    private readonly writes: TurnWrites,
    private readonly leaseMs: number,
    private readonly instance: string,
  ) {}

  /** Reads records and takes a place on each that has one left, in one round trip; beside them an agent's record. */
  async take(
    limited: readonly Limited[],
    counted: Pick<CountedCall, 'number' | 'call'> | null,
    agentId: string | null,
  ): Promise<{ readonly slots: readonly Slot[]; readonly agent: string | null }> {
    const entry = counted === null ? null : liveEntry(counted.call, counted.number, this.instance);
    // Slots that were given back in this turn are free.
    this.writes.flush();
    let answers: readonly unknown[];
    try {
      answers = await this.#ask(limited, entry, agentId, (script) => ['evalsha', script.sha1]);
    } catch (error) {
      if (!isMissingScript(error)) throw error;
      answers = await this.#ask(limited, entry, agentId, (script) => ['eval', script.source]);
    }
    const agent = agentId === null ? null : answers.at(-1);
    return { slots: limited.map((_one, index) => slotOf(answers[index])), agent: typeof agent === 'string' ? agent : null };
  }

  /** The call is over: gives its places back. Until its record is written it is known as one that ends. */
  end({ number, orgId, call }: Pick<CountedCall, 'number' | 'orgId' | 'call'>): void {
    const { text, member, callId } = liveEntry(call, number, this.instance);
    this.#write([
      ['set', endingCallKey(orgId, callId), text, 'EX', ENDING_S],
      ['zrem', orgLeasesKey(orgId), callId],
      ['zrem', orgLiveKey(orgId), member],
      ['hdel', orgLiveCallsKey(orgId), callId],
      ['zrem', numberLeasesKey(number), callId],
    ]);
  }

  /** Gives back the places of a call that did not begin: it does not count as one of the last second. What fails expires by itself. */
  giveBack(limited: readonly Limited[], call: BeginningCall): void {
    const callId = call.call_id;
    const writes = limited.flatMap(({ leasesKey, recentKey, listKeys }): RedisCommand[] => [
      ['zrem', leasesKey, callId],
      ['zrem', recentKey, callId],
      ...(listKeys === null ? [] : [['zrem', listKeys[0], liveMemberOf(call)] as const, ['hdel', listKeys[1], callId] as const]),
    ]);
    this.#write(writes);
  }

  /** Keeps the places of these calls for another lease; takes again those that Redis lost, and lists them again. */
  async renew(calls: ReadonlyMap<string, CountedCall>): Promise<void> {
    const places = new Map<string, string[]>();
    const lists = new Map<string, string[]>();
    for (const [callId, { number, orgId, call }] of calls) {
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) append(places, key, callId);
      const { member, text } = liveEntry(call, number, this.instance);
      append(lists, orgId, member, text);
    }
    const renewals = [
      ...batches(places, RENEWED_AT_ONCE).map(({ key, chunk }) => ({ script: RENEW_SLOTS, keys: [key], chunk })),
      ...batches(lists, 2 * RENEWED_AT_ONCE).map(({ key: orgId, chunk }) => ({
        script: LIST_AGAIN,
        keys: [orgLiveKey(orgId), orgLiveCallsKey(orgId)],
        chunk,
      })),
    ];
    // All pipelines go out at once: a call that is released from now on is released behind them.
    await Promise.all(
      chunks(renewals, RENEWED_AT_ONCE).map((some) =>
        this.redis.pipeline(
          // In full each time: to send it again after NOSCRIPT would bring back a call that was released in between.
          some.map(({ script, keys, chunk }) => ['eval', script.source, keys.length, ...keys, this.leaseMs, ...chunk]),
        ),
      ),
    );
  }

  /** What fails expires by itself. */
  #write(writes: readonly RedisCommand[]): void {
    this.writes.write(writes).catch(() => undefined);
  }

  #ask(
    limited: readonly Limited[],
    entry: LiveEntry | null,
    agentId: string | null,
    call: (script: RedisScript) => ['evalsha' | 'eval', string],
  ): Promise<readonly unknown[]> {
    const [command, script] = call(ACQUIRE_SLOT);
    const places = limited.map(({ kind, recordKey, leasesKey, recentKey, listKeys }): RedisCommand => {
      const keys = [recordKey, leasesKey, recentKey, ...(listKeys ?? [])];
      const listed = listKeys === null || entry === null ? [] : [entry.member, entry.text];
      return [command, script, keys.length, ...keys, kind, entry?.callId ?? '', this.leaseMs, ...listed];
    });
    return this.redis.pipeline(agentId === null ? places : [...places, ['get', agentKey(agentId)]]);
  }
}

function slotOf(answer: unknown): Slot {
  if (!Array.isArray(answer)) throw new Error('leases/acquire-slot.lua answered no array');
  const [record, calls, lastSecond, taken] = answer as unknown[];
  return { record: typeof record === 'string' ? record : null, calls: Number(calls), lastSecond: Number(lastSecond), isTaken: taken === 1 };
}

function append(lists: Map<string, string[]>, key: string, ...values: readonly string[]): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [...values]);
  else list.push(...values);
}

function batches(lists: ReadonlyMap<string, readonly string[]>, size: number): { readonly key: string; readonly chunk: string[] }[] {
  return [...lists].flatMap(([key, values]) => chunks(values, size).map((chunk) => ({ key, chunk })));
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size));
}

const SECOND_MS = 1_000;

/** Whose limits a call counts against. */
interface CountedCall {
  readonly number: E164;
  readonly orgId: string;
  readonly call: BeginningCall;
}

interface Count {
  calls: number;
  /** When calls of the last second were counted, the oldest first. */
  recent: { readonly callId: string; readonly atMs: number }[];
}

/** Calls in progress and of the last second by one key. Keeps nothing of a key that is quiet. */
class Tally {
  readonly #counts = new Map<string, Count>();

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.#counts.size;
  }

  calls(key: string): number {
    return this.#counts.get(key)?.calls ?? 0;
  }

  lastSecond(key: string): number {
    return this.#recent(this.#counts.get(key)).length;
  }

  /** @param rate only a limit makes the times worth keeping, and no more of them than the limit looks at */
  add(key: string, callId: string, rate: number | null): void {
    const count = this.#counts.get(key) ?? { calls: 0, recent: [] };
    count.calls += 1;
    if (rate !== null && rate > 0) count.recent = [...this.#recent(count), { callId, atMs: this.clock.nowMs() }].slice(-rate);
    this.#counts.set(key, count);
  }

  /** @param isRecent false: it is taken out of the last second too */
  remove(key: string, callId: string, isRecent: boolean): void {
    const count = this.#counts.get(key);
    if (count === undefined) return;
    count.calls -= 1;
    if (!isRecent) count.recent = count.recent.filter((one) => one.callId !== callId);
    if (count.calls === 0) this.#forgetWhenQuiet(key, count);
  }

  /** The times of the last second outlive the calls: a key is forgotten when they are over as well. */
  #forgetWhenQuiet(key: string, count: Count): void {
    if (this.#recent(count).length > 0) this.clock.setTimer(SECOND_MS, () => this.#forgetWhenQuiet(key, count));
    else if (count.calls === 0) this.#counts.delete(key);
  }

  #recent(count: Count | undefined): Count['recent'] {
    const sinceMs = this.clock.nowMs() - SECOND_MS;
    return count?.recent.filter(({ atMs }) => atMs > sinceMs) ?? [];
  }
}

/** The calls that this process has in progress: what is renewed in the store, and all that is counted while the store is away. */
export class LocalCallRegistry {
  readonly #calls = new Map<string, CountedCall>();
  readonly #numbers: Tally;
  readonly #orgs: Tally;

  constructor(clock: Clock) {
    this.#numbers = new Tally(clock);
    this.#orgs = new Tally(clock);
  }

  /** What is counted at the moment; zero for numbers and organizations without calls. */
  load(route: Route | null): ConcurrentUsage {
    if (route === null) return NO_USAGE;
    const { phone_number: number, org_id: orgId } = route.number;
    return {
      numberCalls: this.#numbers.calls(number),
      numberCallsLastSecond: this.#numbers.lastSecond(number),
      orgCalls: this.#orgs.calls(orgId),
      orgCallsLastSecond: this.#orgs.lastSecond(orgId),
    };
  }

  /** Calls in progress of an organization. */
  callsOf(orgId: string): number {
    return this.#orgs.calls(orgId);
  }

  /** Counts a call, once. */
  add(call: BeginningCall, route: Route): void {
    const { phone_number: number, org_id: orgId, inbound } = route.number;
    this.#add({ number, orgId, call }, inbound?.options.max_calls_per_second ?? null, route.org.max_calls_per_second);
  }

  /** Counts a call of an earlier process, which began long ago. */
  resume({ call, phone_number, org_id: orgId }: CallSnapshot): void {
    const number = parseE164(phone_number);
    if (number !== undefined) this.#add({ number, orgId, call }, null, null);
  }

  /** Takes a call back; `undefined`: it was not counted. */
  remove(callId: string, isRecent = true): CountedCall | undefined {
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    this.#calls.delete(callId);
    this.#numbers.remove(call.number, callId, isRecent);
    this.#orgs.remove(call.orgId, callId, isRecent);
    return call;
  }

  get all(): ReadonlyMap<string, CountedCall> {
    return this.#calls;
  }

  /** Numbers and organizations that something is kept of. */
  get size(): number {
    return this.#numbers.size + this.#orgs.size;
  }

  #add(counted: CountedCall, numberRate: number | null, orgRate: number | null): void {
    const { call_id: callId } = counted.call;
    this.remove(callId, false);
    this.#calls.set(callId, counted);
    this.#numbers.add(counted.number, callId, numberRate);
    this.#orgs.add(counted.orgId, callId, orgRate);
  }
}
