import type { CallSnapshot } from '../../../model/call-snapshot.js';
import { parseE164, type E164 } from '../../../model/e164.js';
import type { BeginningCall } from '../../../model/live-calls.js';
import type { Route } from '../../../model/records.js';
import { NO_USAGE, type ConcurrentUsage } from '../../../admission/admission.js';
import type { Clock } from '../../../../lib/clock.js';

const SECOND_MS = 1_000;

/** Whose limits a call counts against. */
export interface CountedCall {
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
