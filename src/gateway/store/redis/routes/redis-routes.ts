import type { E164 } from '../../../model/e164.js';
import type { BeginningCall } from '../../../model/live-calls.js';
import { brokenLimit, NO_USAGE } from '../../../admission/admission.js';
import { StoreUnavailableError, type Lookup, type RouteStore } from '../../../ports/ports.js';
import type { Clock } from '../../../../lib/clock.js';
import { limitedNumber, limitedOrg, type Leases, type Limited, type Slot, type LocalCallRegistry } from '../leases/leases.js';
import { type RecordCache, routeOf, type RouteCache, type Watch } from './route-cache.js';

export interface RouteStoreParts {
  readonly leases: Leases;
  readonly own: LocalCallRegistry;
  readonly remembered: RouteCache;
  readonly records: RecordCache;
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

/** What both round trips of a look-up found. */
interface Found {
  readonly numberSlot: Slot;
  readonly orgSlot: Slot | null;
  readonly orgId: string | null;
  readonly agent: string | null;
  /** On whom a place was taken. */
  readonly taken: readonly Limited[];
}

/** What a call needs, in one round trip when the last look-up of the number tells what to ask for, and in two when it does not. */
export class RedisRouteStore implements RouteStore {
  readonly #looking = new Map<string, Looking>();

  constructor(private readonly parts: RouteStoreParts) {}

  async lookup(number: E164, call: BeginningCall | null): Promise<Lookup> {
    const { remembered } = this.parts;
    const looking: Looking = { number, call, watch: remembered.watch(), asked: [], isReleased: false };
    if (call !== null) this.#looking.set(call.call_id, looking);
    try {
      return this.#settle(looking, await this.#read(looking));
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

  async #read({ number, call, asked }: Looking): Promise<Found> {
    const { leases, remembered } = this.parts;
    const hint = remembered.get(number);
    const limited = [limitedNumber(number), ...(hint === undefined ? [] : [limitedOrg(hint.orgId)])];
    asked.push(...limited);
    const counted = call === null ? null : { number, call };
    const first = await leases.take(limited, counted, hint?.agentId ?? null);
    const [numberSlot, orgSlot = null] = first.slots;
    if (numberSlot === undefined) throw new Error('the number was not asked for');
    const taken = limited.filter((_one, index) => first.slots[index]?.isTaken === true);
    const record = this.parts.records.decode('number', numberSlot.record);
    if (record === null || record.inbound === null) return { numberSlot, orgSlot: null, orgId: null, agent: null, taken };
    const { org_id: orgId } = record;
    const { agent_id: agentId } = record.inbound;
    if (hint?.orgId === orgId && hint.agentId === agentId) return { numberSlot, orgSlot, orgId, agent: first.agent, taken };
    const org = limitedOrg(orgId);
    asked.push(org);
    const second = await leases.take([org], numberSlot.isTaken ? counted : null, agentId);
    const isTaken = second.slots[0]?.isTaken === true;
    return { numberSlot, orgSlot: second.slots[0] ?? null, orgId, agent: second.agent, taken: isTaken ? [...taken, org] : taken };
  }

  /** Keeps both places or none: a call that one of the two refuses takes nothing of the other. */
  #settle(looking: Looking, { numberSlot, orgSlot, orgId, agent, taken }: Found): Lookup {
    const { leases, own, remembered, clock } = this.parts;
    const { number, call, watch, isReleased } = looking;
    const texts = { number: numberSlot.record, org: orgSlot?.record ?? null, agent };
    const route = routeOf(texts, this.parts.records);
    if (call !== null) {
      const isCounted = route !== null && !isReleased && numberSlot.isTaken && orgSlot?.isTaken === true;
      const kept = isCounted ? [limitedNumber(number).recordKey, limitedOrg(orgId ?? '').recordKey] : [];
      if (isCounted) own.add(call, route);
      leases.giveBack(
        taken.filter(({ recordKey }) => !kept.includes(recordKey)),
        call,
      );
    }
    if (route === null || texts.number === null || texts.org === null) {
      remembered.forget(number);
      return NOT_ATTACHED;
    }
    remembered.keep(route, { ...texts, number: texts.number, org: texts.org }, clock.nowMs(), watch);
    const load = {
      numberCalls: numberSlot.calls,
      numberCallsLastSecond: numberSlot.lastSecond,
      orgCalls: orgSlot?.calls ?? 0,
      orgCallsLastSecond: orgSlot?.lastSecond ?? 0,
    };
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
