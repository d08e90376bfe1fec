import type { CallSnapshot } from '../../../model/call-snapshot.js';
import type { Route } from '../../../model/records.js';
import { NO_USAGE, type ConcurrentUsage } from '../../../admission/admission.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import { errorText } from '../../../../lib/result.js';
import { PassingMap } from '../../../../lib/passing-map.js';
import { TurnBatch } from '../../../../lib/turn-batch.js';
import { type E164, parseE164 } from '../../../model/e164.js';
import type { BeginningCall } from '../../../model/live-calls.js';
import {
  agentKey,
  numberAheadKey,
  numberKey,
  numberLeasesKey,
  numberRecentKey,
  orgAheadKey,
  orgKey,
  orgLeasesKey,
  orgLiveCallsKey,
  orgLiveKey,
  orgRecentKey,
} from '../keys.js';
import { liveEntry, liveMemberOf, type LiveEntry } from '../../../ports/listing.js';
import { RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import type { TurnWrites } from '../turn-writes.js';
import { endOfCall, type Endings } from './endings.js';
import { LEASED_AHEAD_MS, SlotsAhead, type Claim } from './slots-ahead.js';

/** A number or an organization: both have a record with limits and, in the same hash slot, the calls that count against them. */
export interface Limited {
  readonly kind: 'number' | 'org';
  readonly recordKey: string;
  readonly leasesKey: string;
  readonly recentKey: string;
  readonly aheadKey: string;
  /** Where its calls in progress are listed, in the same slot too: the index and what is known of each. Of organizations only. */
  readonly listKeys: readonly [] | readonly [string, string];
}

export function limitedNumber(number: E164): Limited {
  return {
    kind: 'number',
    recordKey: numberKey(number),
    leasesKey: numberLeasesKey(number),
    recentKey: numberRecentKey(number),
    aheadKey: numberAheadKey(number),
    listKeys: [],
  };
}

export function limitedOrg(orgId: string): Limited {
  return {
    kind: 'org',
    recordKey: orgKey(orgId),
    leasesKey: orgLeasesKey(orgId),
    recentKey: orgRecentKey(orgId),
    aheadKey: orgAheadKey(orgId),
    listKeys: [orgLiveKey(orgId), orgLiveCallsKey(orgId)],
  };
}

function keysOf({ recordKey, leasesKey, recentKey, aheadKey, listKeys }: Limited): readonly string[] {
  return [recordKey, leasesKey, recentKey, aheadKey, ...listKeys];
}

/** Names of an agent and of its organization, for the script to put the ids in. */
const FOLLOWED = [agentKey('*'), ...keysOf(limitedOrg('*'))].join(' ');

/** What Redis returned for a number or an organization, without this call. */
export interface Slot {
  /** `null`: there is no record. */
  readonly record: string | null;
  readonly calls: number;
  readonly lastSecond: number;
  readonly isTaken: boolean;
  /** Slots that are left below half of its limits. */
  readonly left: number;
}

const TAKE_SLOTS = new RedisScript('leases/take-slots');
const RENEW_SLOTS = new RedisScript('leases/renew-slots');
const LIST_AGAIN = new RedisScript('leases/list-again');

// In one script or one pipeline: Redis serves nobody else meanwhile.
const RENEWED_AT_ONCE = 500;
const TAKEN_AT_ONCE = 100;
/** Far less than a slot is leased ahead, and about what a call takes to be answered. */
const TAKEN_WITHIN_MS = 10;
/** Numbers and organizations under limits, of which slots are taken ahead. */
const LIMITED_KEYS = 50_000;

/** One slot that is asked for, or was taken ahead. */
interface Taking {
  readonly limited: Limited;
  /** `null`: the record is read, and no slot is taken. */
  readonly entry: LiveEntry | null;
  readonly isAdmitted: boolean;
  /** `null`: there is no limit. */
  readonly claim: Claim | null;
  readonly askedMs: number;
}

/** What the records of a call's number, organization and agent told, as far as they were asked for. */
export interface TakenSlots {
  readonly slots: readonly Slot[];
  readonly agent: string | null;
}

/** Slots of calls in progress, counted and listed over all gateways. One lives `leaseMs` and is renewed, so that those of a gateway that died are free again. */
export class Leases {
  readonly #ahead = new SlotsAhead(LIMITED_KEYS);
  /** Goes out with the next write: that of the call's snapshot, or of its end. */
  readonly #takings: TurnBatch<Taking>;

  /** @param instance names this gateway in the lists of calls in progress */
  constructor(
    private readonly redis: RedisConnection,
    private readonly writes: TurnWrites,
    private readonly endings: Endings,
    private readonly leaseMs: number,
    private readonly instance: string,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.#takings = new TurnBatch(
      (takings) => this.#sendTakings(takings),
      (flush) => clock.setTimer(TAKEN_WITHIN_MS, flush),
    );
    writes.before(() => this.#takings.flush());
  }

  /** Redis can look an organization up whose id is in the number that it looks up: both are on one server. */
  get canFollow(): boolean {
    return !this.redis.isCluster;
  }

  /** Takes both slots of a call without waiting for Redis; false: it has to be asked. */
  admit(route: Route, call: BeginningCall): boolean {
    const nowMs = this.clock.nowMs();
    const slots = limitedSlots(route);
    if (slots.some(({ limited, isLimited }) => isLimited && !this.#ahead.has(limited.recordKey, nowMs))) return false;
    const entry = liveEntry(call, route.number.phone_number, this.instance);
    for (const { limited, isLimited } of slots) {
      const claim = isLimited ? this.#ahead.claim(limited.recordKey, nowMs) : null;
      this.#takings.push({ limited, entry, isAdmitted: true, claim, askedMs: nowMs });
    }
    return true;
  }

  /** Reads records and takes a slot on each that has one left, in one round trip; beside them an agent's record. */
  async take(
    limited: readonly Limited[],
    counted: Pick<CountedCall, 'number' | 'call'> | null,
    agentId: string | null,
  ): Promise<TakenSlots> {
    const takings = this.#asked(limited, counted);
    const [answers, agent] = await Promise.all([
      this.#answersTo(takings),
      agentId === null ? null : this.redis.run((client) => client.get(agentKey(agentId))),
    ]);
    return { slots: answers.map(slotOf), agent };
  }

  /** As `take`, of a number and of the organization and the agent that its record names. */
  async follow(number: Limited, counted: Pick<CountedCall, 'number' | 'call'> | null): Promise<TakenSlots> {
    const answers = await this.#run(this.#asked([number], counted), FOLLOWED);
    const agent = answers[2];
    return { slots: answers.slice(0, 2).map(slotOf), agent: typeof agent === 'string' ? agent : null };
  }

  /** For `learn`: before Redis is asked. */
  ask(): Claim {
    return this.#ahead.ask();
  }

  /** What Redis answered of the limits of a call that has its slots: the next calls may be admitted by it. */
  learn(route: Route, call: BeginningCall, slots: readonly (Slot | null)[], claim: Claim): void {
    limitedSlots(route).forEach(({ limited, isLimited }, index) => {
      const left = slots[index]?.left ?? 0;
      if (isLimited) this.#ahead.answered(limited.recordKey, call.call_id, claim, left, this.clock.nowMs());
    });
  }

  /** The record under this key is another one now. */
  onChange(key: string): void {
    this.#ahead.forget(key);
  }

  /** The call is over: gives its slots back. */
  end({ number, orgId, call }: Pick<CountedCall, 'number' | 'orgId' | 'call'>): void {
    this.endings.write([...endOfCall(orgId, liveEntry(call, number, this.instance)), ['zrem', numberLeasesKey(number), call.call_id]]);
  }

  /** Gives back the slots of a call that did not begin: it does not count as one of the last second. */
  giveBack(limited: readonly Limited[], call: BeginningCall): void {
    const callId = call.call_id;
    const commands = limited.flatMap(({ leasesKey, recentKey, listKeys }): RedisCommand[] => [
      ['zrem', leasesKey, callId],
      ['zrem', recentKey, callId],
      ...(listKeys.length === 0 ? [] : [['zrem', listKeys[0], liveMemberOf(call)] as const, ['hdel', listKeys[1], callId] as const]),
    ]);
    this.endings.write(commands);
  }

  /** Keeps the slots of these calls for another lease; takes again those that Redis lost, and lists them again. */
  async renew(calls: ReadonlyMap<string, CountedCall>): Promise<void> {
    const slots = new Map<string, string[]>();
    const lists = new Map<string, string[]>();
    for (const [callId, { number, orgId, call }] of calls) {
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) append(slots, key, callId);
      const { member, text } = liveEntry(call, number, this.instance);
      append(lists, orgId, member, text);
    }
    const renewals = [
      ...batches(slots, RENEWED_AT_ONCE).map(({ key, chunk }) => ({ script: RENEW_SLOTS, keys: [key], chunk })),
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
          some.map(({ script, keys, chunk }) => this.redis.scriptCommand(script, keys, [this.leaseMs, ...chunk])),
        ),
      ),
    );
  }

  #asked(limited: readonly Limited[], counted: Pick<CountedCall, 'number' | 'call'> | null): readonly Taking[] {
    // Slots that were taken in this turn are taken, those that were given back are free.
    this.#takings.flush();
    this.writes.flush();
    const entry = counted === null ? null : liveEntry(counted.call, counted.number, this.instance);
    return limited.map((one) => ({ limited: one, entry, isAdmitted: false, claim: null, askedMs: 0 }));
  }

  #sendTakings(takings: readonly Taking[]): void {
    for (const some of chunks(takings, TAKEN_AT_ONCE)) void this.#takeAhead(some);
  }

  /** The calls were admitted: what fails is taken at the next renewal. */
  async #takeAhead(takings: readonly Taking[]): Promise<void> {
    try {
      const answers = await this.#answersTo(takings);
      takings.forEach(({ limited, entry, claim, askedMs }, index) => {
        const { left } = slotOf(answers[index]);
        if (claim !== null) this.#ahead.answered(limited.recordKey, entry?.callId ?? '', claim, left, askedMs);
      });
    } catch (error) {
      for (const { limited } of takings) this.#ahead.forget(limited.recordKey);
      this.log.debug({ error: errorText(error) }, 'call.slots.not_taken');
    }
  }

  /** On a cluster, each number and each organization has a node. */
  async #answersTo(takings: readonly Taking[]): Promise<readonly unknown[]> {
    if (!this.redis.isCluster) return this.#run(takings, '');
    return (await Promise.all(takings.map((taking) => this.#run([taking], '')))).flat();
  }

  async #run(takings: readonly Taking[], followed: string): Promise<readonly unknown[]> {
    const keys = takings.flatMap(({ limited }) => keysOf(limited));
    const args: (string | number)[] = [this.leaseMs, LEASED_AHEAD_MS, followed];
    for (const { limited, entry, isAdmitted, claim } of takings) {
      const { callId = '', member = '', text = '' } = entry ?? {};
      const { leased = '', want = 0 } = claim ?? {};
      args.push(limited.kind, callId, isAdmitted ? 'has' : 'ask', leased, want, member, text);
    }
    const answers = await this.redis.script(TAKE_SLOTS, keys, args);
    if (!Array.isArray(answers)) throw new Error('leases/take-slots.lua answered no array');
    return answers as unknown[];
  }
}

/** What limits a call: its number and its organization. */
function limitedSlots({ number, org }: Route): readonly { readonly limited: Limited; readonly isLimited: boolean }[] {
  const { max_concurrent_calls: calls = null, max_calls_per_second: rate = null } = number.inbound?.options ?? {};
  return [
    { limited: limitedNumber(number.phone_number), isLimited: calls !== null || rate !== null },
    { limited: limitedOrg(org.org_id), isLimited: org.max_concurrent_calls !== null || org.max_calls_per_second !== null },
  ];
}

function slotOf(answer: unknown): Slot {
  if (!Array.isArray(answer)) throw new Error('leases/take-slots.lua answered no array');
  const [record, calls, lastSecond, taken, left] = answer as unknown[];
  return {
    record: typeof record === 'string' ? record : null,
    calls: Number(calls),
    lastSecond: Number(lastSecond),
    isTaken: taken === 1,
    left: Number(left),
  };
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
  readonly #calls = new PassingMap<string, CountedCall>();
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
