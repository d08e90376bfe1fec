import type { E164 } from '../../../model/e164.js';
import type { BeginningCall } from '../../../model/live-calls.js';
import { brokenLimit, NO_USAGE } from '../../../admission/admission.js';
import { StoreUnavailableError, type Lookup, type RouteStore } from '../../../ports/ports.js';
import type { Clock } from '../../../../lib/clock.js';
import { limitedNumber, limitedOrg, type Leases, type Limited, type Slot, type LocalCallRegistry } from '../leases/leases.js';
import { LEASED_AHEAD_MS, type Claim } from '../leases/slots-ahead.js';
import { type RecordCache, routeOf, type RouteCache, type Watch } from './route-cache.js';

export interface RouteStoreParts {
  readonly leases: Leases;
  readonly own: LocalCallRegistry;
  readonly remembered: RouteCache;
  readonly records: RecordCache;
  /** Whether all changes until now were told. */
  readonly freshness: { readonly isFresh: boolean };
  readonly clock: Clock;
  /** How old an answer may be that stands in for a store that is away; 0: none does. */
  readonly staleRouteMs: number;
}

const NOT_ATTACHED: Lookup = { route: null, load: NO_USAGE, staleMs: null };

/** A look-up under way. */
interface Looking {
  readonly number: E164;
  readonly call: BeginningCall | null;
  readonly watch: Watch;
  /** Where a place was asked for. */
  readonly asked: Limited[];
  /** The call ended before its look-up did. */
  isReleased: boolean;
}

/** What a look-up found in Redis. */
interface Found {
  readonly numberSlot: Slot;
  readonly orgSlot: Slot | null;
  readonly orgId: string | null;
  readonly agent: string | null;
  /** On whom a slot was taken. */
  readonly taken: readonly Limited[];
}

/** Between two questions for a slot that another gateway leased ahead. */
const ASK_AGAIN_MS = LEASED_AHEAD_MS / 10;

/**
 * What a call needs: without a round trip to Redis where the route is remembered, no change was missed and its limits are not near; in one
 * otherwise, of a cluster in two when the number is unknown.
 */
export class RedisRouteStore implements RouteStore {
  readonly #looking = new Map<string, Looking>();

  constructor(private readonly parts: RouteStoreParts) {}

  async lookup(number: E164, call: BeginningCall | null): Promise<Lookup> {
    const known = call === null ? null : this.#remembered(number, call);
    if (known !== null) return known;
    const { remembered } = this.parts;
    const looking: Looking = { number, call, watch: remembered.watch(), asked: [], isReleased: false };
    if (call !== null) this.#looking.set(call.call_id, looking);
    try {
      for (;;) {
        const claim = this.parts.leases.ask();
        const found = this.#settle(looking, await this.#read(looking), claim);
        if (found !== null) return found;
        await new Promise<void>((resolve) => this.parts.clock.setTimer(ASK_AGAIN_MS, resolve));
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      return this.#lastKnown(looking, error);
    } finally {
      remembered.endWatch(looking.watch);
      if (call !== null) this.#looking.delete(call.call_id);
    }
  }

  release(callId: string, wasRefused = false): void {
    const looking = this.#looking.get(callId);
    if (looking !== undefined) looking.isReleased = true;
    const counted = this.parts.own.remove(callId, !wasRefused);
    if (counted === undefined) return;
    const { number, orgId, call } = counted;
    if (wasRefused) this.parts.leases.giveBack([limitedNumber(number), limitedOrg(orgId)], call);
    else this.parts.leases.end(counted);
  }

  disown(callId: string): void {
    this.parts.own.remove(callId);
  }

  /** `null`: Redis has to be asked. */
  #remembered(number: E164, call: BeginningCall): Lookup | null {
    const { leases, own, remembered, records, freshness, clock } = this.parts;
    if (!freshness.isFresh) return null;
    const known = remembered.getTrue(number, clock.nowMs());
    const route = known === undefined ? null : routeOf(known.texts, records);
    if (route === null || !leases.admit(route, call)) return null;
    own.add(call, route);
    return { route, load: NO_USAGE, staleMs: null };
  }

  async #read({ number, call, asked }: Looking): Promise<Found> {
    const { leases, remembered } = this.parts;
    const hint = remembered.get(number);
    const limited = [limitedNumber(number), ...(hint === undefined ? [] : [limitedOrg(hint.orgId)])] as const;
    const counted = call === null ? null : { number, call };
    asked.push(...limited);
    const first = leases.canFollow ? await leases.follow(limited[0], counted) : await leases.take(limited, counted, hint?.agentId ?? null);
    const [numberSlot, orgSlot = null] = first.slots;
    if (numberSlot === undefined) throw new Error('the number was not asked for');
    const record = this.parts.records.decode('number', numberSlot.record);
    const { org_id: orgId = null, inbound = null } = record ?? {};
    const org = orgId === null || inbound === null ? null : limitedOrg(orgId);
    if (org === null || leases.canFollow) {
      const taken = [...(numberSlot.isTaken ? [limited[0]] : []), ...(org !== null && orgSlot?.isTaken === true ? [org] : [])];
      return { numberSlot, orgSlot, orgId, agent: first.agent, taken };
    }
    const taken = limited.filter((_one, index) => first.slots[index]?.isTaken === true);
    const agentId = inbound?.agent_id ?? null;
    if (hint?.orgId === orgId && hint.agentId === agentId) return { numberSlot, orgSlot, orgId, agent: first.agent, taken };
    asked.push(org);
    const second = await leases.take([org], numberSlot.isTaken ? counted : null, agentId);
    const isTaken = second.slots[0]?.isTaken === true;
    return { numberSlot, orgSlot: second.slots[0] ?? null, orgId, agent: second.agent, taken: isTaken ? [...taken, org] : taken };
  }

  /**
   * Keeps both slots or none: a call that one of the two refuses takes nothing of the other. `null`: what is left is leased ahead by other
   * gateways, which use it or lose it at once.
   */
  #settle(looking: Looking, { numberSlot, orgSlot, orgId, agent, taken }: Found, claim: Claim): Lookup | null {
    const { leases, own, remembered, clock } = this.parts;
    const { number, call, watch, isReleased } = looking;
    const texts = { number: numberSlot.record, org: orgSlot?.record ?? null, agent };
    const route = routeOf(texts, this.parts.records);
    const isCounted = route !== null && !isReleased && numberSlot.isTaken && orgSlot?.isTaken === true;
    if (call !== null) {
      const kept = isCounted ? [limitedNumber(number).recordKey, limitedOrg(orgId ?? '').recordKey] : [];
      if (isCounted) {
        own.add(call, route);
        leases.learn(route, call, [numberSlot, orgSlot], claim);
      }
      leases.giveBack(
        taken.filter(({ recordKey }) => !kept.includes(recordKey)),
        call,
      );
    }
    if (route === null || texts.number === null || texts.org === null) {
      remembered.forget(number);
      return NOT_ATTACHED;
    }
    const load = {
      numberCalls: numberSlot.calls,
      numberCallsLastSecond: numberSlot.lastSecond,
      orgCalls: orgSlot?.calls ?? 0,
      orgCallsLastSecond: orgSlot?.lastSecond ?? 0,
    };
    if (call !== null && !isCounted && !isReleased && brokenLimit(route, load) === null) return null;
    remembered.keep(route, { ...texts, number: texts.number, org: texts.org }, clock.nowMs(), watch);
    return { route, load, staleMs: null };
  }

  /** The store is away: the answer of before, if it is not too old, under the load that this process knows of. */
  #lastKnown({ number, call, asked, isReleased }: Looking, error: StoreUnavailableError): Lookup {
    const { leases, own, remembered, clock, staleRouteMs } = this.parts;
    const known = remembered.get(number);
    const staleMs = known === undefined ? Infinity : clock.nowMs() - known.atMs;
    const route = known === undefined || staleMs >= staleRouteMs ? null : routeOf(known.texts, this.parts.records);
    if (call !== null) own.remove(call.call_id, false);
    const load = own.load(route);
    if (call !== null) {
      if (route !== null && !isReleased && brokenLimit(route, load) === null) own.add(call, route);
      // Redis may have taken the places and been too late to say so.
      else leases.giveBack(asked, call);
    }
    if (route === null) throw error;
    return { route, load, staleMs };
  }
}
