import { mayLeave, type Door } from '../../../admission/dial-guard.js';
import {
  costMicros,
  dialPermit,
  limitedTrunk,
  microsOf,
  type DialLimits,
  type DialPermit,
  type Dialling,
} from '../../../model/dialling.js';
import type { E164 } from '../../../model/e164.js';
import type { OutboundTrunk } from '../../../model/records.js';
import type { CallSnapshot } from '../../../model/call-snapshot.js';
import { liveEntry } from '../../../ports/listing.js';
import type { DialHeadroom } from '../../../ports/batches.js';
import type { DialLedger, DialRefusal, DialRequest, PermittedDial } from '../../../ports/ports.js';
import { isOf } from '../../../ports/stores.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import { err, errorText, ok, type Result } from '../../../../lib/result.js';
import {
  numberKey,
  orgDialDayKey,
  orgDoNotCallKey,
  orgDialsKey,
  orgLeasesKey,
  orgLiveCallsKey,
  orgLiveKey,
  orgRecentDialsKey,
} from '../keys.js';
import { decodeRecord, RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import { endOfCall, type Endings } from '../leases/endings.js';
import type { TurnWrites } from '../turn-writes.js';
import type { DialRecords } from './dial-records.js';
import { PLACEMENT_KEPT_S, placementKey } from './redis-placements.js';

const RESERVE = new RedisScript('dials/reserve');
const RENEW_SLOTS = new RedisScript('leases/renew-slots');
const LIST_AGAIN = new RedisScript('leases/list-again');
/** A call may end a day after the day that it began in. */
const DAY_KEPT_MS = 3 * 86_400_000;

interface Own extends Pick<DialRequest, 'orgId' | 'call' | 'isReferred'> {
  readonly to: string;
  readonly permit: DialPermit;
}

/** Whatever the list and the operator name needs no reservation. */
const NOTHING_NAMED = { transferList: null, prefixes: [], hosts: [] };

const LIMITS: Readonly<Record<string, string>> = {
  second: 'the organization places as many calls a second as the operator allows',
  'at once': 'the organization has as many placed calls in progress as the operator allows',
  day: 'the organization has placed as many calls today as the operator allows',
  cost: 'the cost of this call would exceed what the operator allows for today',
  'trunk second': 'the trunk gets as many calls a second as the operator allows for each trunk',
  'trunk at once': 'the trunk has as many placed calls in progress as the operator allows for each trunk',
  'trunk day': 'the trunk got as many calls today as the operator allows for each trunk',
  claim: 'the claim of its idempotency-key has expired',
};

/** As reserve.lua answers. */
const ON_LIST = 'do not call';

/** Placed calls under the limits of their organizations. A slot lives `leaseMs` and is renewed; a cost that is never settled stays reserved for its day. */
export class RedisDialLedger implements DialLedger {
  readonly #own = new Map<string, Own>();

  constructor(
    private readonly redis: RedisConnection,
    private readonly records: DialRecords,
    private readonly writes: TurnWrites,
    private readonly endings: Endings,
    private readonly leaseMs: number,
    private readonly instance: string,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async reserve(request: DialRequest): Promise<Result<PermittedDial, DialRefusal>> {
    const { orgId, from, to, endpoint, call, isReferred = false, maxDurationMs, idempotencyKey } = request;
    const { number, org } = await this.records.read(orgId, from);
    if (org === null || number === null) return refused(`${from} is not a number of the organization`);
    const door: Door = endpoint === null ? { door: 'transfer', org, ...NOTHING_NAMED } : { door: 'placed-call', from: { org, number } };
    const grant = mayLeave({ kind: 'number', number: to }, door);
    if (!grant.ok) return refused(grant.error);
    const { dialling } = org;
    // mayLeave refused it.
    if (dialling === null || grant.value.by !== 'price') return refused('the organization may place no calls');
    const trunk = endpoint === null ? undefined : limitedTrunk(dialling, endpoint);
    const permit = dialPermit(grant.value.price, maxDurationMs, this.clock.wallMs(), trunk);
    const own = { orgId, to, call, isReferred, permit };
    const reached = await this.#reserve(own, dialling, idempotencyKey);
    if (reached === ON_LIST) return err({ reason: 'DO_NOT_CALL', detail: `${to} is on the do-not-call list` });
    if (reached !== '') return refused(LIMITS[reached] ?? 'a limit of the organization is reached');
    this.#own.set(call.call_id, own);
    return ok({ number, org, permit });
  }

  async headroom(orgId: string, dialling: Dialling, endpoint: string): Promise<DialHeadroom> {
    const nowMs = this.clock.wallMs();
    const trunk = limitedTrunk(dialling, endpoint);
    const read = (of?: string): RedisCommand[] => [
      ['zcount', orgDialsKey(orgId, of), nowMs, '+inf'],
      ['zcount', orgRecentDialsKey(orgId, of), nowMs - 1_000, '+inf'],
      ['hmget', orgDialDayKey(orgId, new Date(nowMs).toISOString().slice(0, 10), of), 'calls', 'micros'],
    ];
    const used = await this.redis.pipeline([...read(), ...(trunk === undefined ? [] : read(trunk))]);
    const [, micros] = used[2] as readonly (string | null)[];
    const left = Math.min(callsLeft(dialling, used), trunk === undefined ? Infinity : callsLeft(dialling.per_trunk ?? {}, used.slice(3)));
    return { calls: Math.max(0, left), micros: microsOf(dialling.max_cost_per_day) - Number(micros ?? 0) };
  }

  async trunkOf(orgId: string, from: E164): Promise<OutboundTrunk | null> {
    const [text = null] = await this.redis.getMany([numberKey(from)]);
    const number = decodeRecord('number', text);
    return isOf(orgId, number) ? number.outbound : null;
  }

  settle(callId: string, talkedMs: number): void {
    const own = this.#own.get(callId);
    if (own === undefined) return;
    this.#own.delete(callId);
    const { orgId, permit, isReferred } = own;
    this.endings.write([
      ...(isReferred === true ? [] : endOfCall(orgId, liveEntry(own.call, own.to, this.instance))),
      ...dialsKeys(own).map((key) => ['zrem', key, callId] as const),
    ]);
    const spent = costMicros(permit.microsPerMinute, talkedMs) - permit.reservedMicros;
    this.writes
      .write([['hincrby', orgDialDayKey(orgId, permit.day), 'micros', spent]])
      // Not written again, for Redis may have it: the day has the whole reservation.
      .catch((error: unknown) => this.log.warn({ call_id: callId, error: errorText(error) }, 'dial.not_settled'));
  }

  withdraw(callId: string): void {
    const own = this.#own.get(callId);
    if (own === undefined) return;
    this.settle(callId, 0);
    const { orgId, permit } = own;
    const counted = [undefined, ...(permit.trunk === undefined ? [] : [permit.trunk])];
    this.writes
      .write(
        counted.flatMap((trunk) => [
          ['zrem', orgRecentDialsKey(orgId, trunk), callId] as const,
          ['hincrby', orgDialDayKey(orgId, permit.day, trunk), 'calls', -1] as const,
        ]),
      )
      // Not written again: the day has counted a call more.
      .catch((error: unknown) => this.log.warn({ call_id: callId, error: errorText(error) }, 'dial.not_settled'));
  }

  disown(callId: string): void {
    this.#own.delete(callId);
  }

  /** Counts a call of an earlier process. */
  resume({ call, org_id: orgId }: CallSnapshot, dial: NonNullable<CallSnapshot['dial']>): void {
    this.#own.set(call.call_id, { orgId, call, ...dial });
  }

  /** Keeps the slots for another lease; takes again those that Redis lost. */
  async renew(): Promise<void> {
    const withSlot = [...this.#own.values()].filter(({ isReferred }) => isReferred !== true);
    const commands = withSlot.flatMap((own) => {
      const { orgId, to, call } = own;
      const { callId, member, text } = liveEntry(call, to, this.instance);
      const slots = [...dialsKeys(own), orgLeasesKey(orgId)].map((key) =>
        this.redis.scriptCommand(RENEW_SLOTS, [key], [this.leaseMs, callId]),
      );
      const lists = [orgLiveKey(orgId), orgLiveCallsKey(orgId)];
      return [...slots, this.redis.scriptCommand(LIST_AGAIN, lists, [this.leaseMs, member, text])];
    });
    if (commands.length > 0) await this.redis.pipeline(commands);
  }

  async #reserve({ orgId, to, call, isReferred, permit }: Own, dialling: Dialling, idempotencyKey?: string): Promise<string> {
    // What ended in this turn has ended.
    this.writes.flush();
    const { trunk } = permit;
    const { callId, member, text } = liveEntry(call, to, this.instance);
    const keys = [
      ...[orgDialsKey(orgId), orgRecentDialsKey(orgId), orgDialDayKey(orgId, permit.day)],
      ...[orgLeasesKey(orgId), orgLiveKey(orgId), orgLiveCallsKey(orgId), orgDoNotCallKey(orgId)],
      ...(trunk === undefined ? [] : [orgDialsKey(orgId, trunk), orgRecentDialsKey(orgId, trunk), orgDialDayKey(orgId, permit.day, trunk)]),
      ...(idempotencyKey === undefined ? [] : [placementKey(orgId, idempotencyKey)]),
    ];
    const limits = [...limitsOf(dialling), microsOf(dialling.max_cost_per_day)];
    const listed = isReferred === true ? '' : member;
    const ofCall = [this.leaseMs, DAY_KEPT_MS, callId, listed, text, permit.reservedMicros];
    const keptS = idempotencyKey === undefined ? '' : PLACEMENT_KEPT_S;
    const args = [...ofCall, ...limits, to, keptS, ...limitsOf(dialling.per_trunk)];
    const answer = await this.redis.script(RESERVE, keys, args);
    if (typeof answer !== 'string') throw new Error('dials/reserve.lua answered no text');
    return answer;
  }
}

/** Where a call has its slot: among those of its organization, and of its trunk. */
function dialsKeys({ orgId, permit: { trunk } }: Own): readonly string[] {
  return [orgDialsKey(orgId), ...(trunk === undefined ? [] : [orgDialsKey(orgId, trunk)])];
}

/** As reserve.lua takes them; '': no limit. */
function limitsOf(limits: Partial<DialLimits> = {}): readonly (number | string)[] {
  const { max_calls_per_second: rate = '', max_concurrent_calls: calls = '', max_calls_per_day: daily = '' } = limits;
  return [rate, calls, daily];
}

/** @param used calls in progress, of the last second, and of the day: `calls` first */
function callsLeft(limits: Partial<DialLimits>, [open, recent, day]: readonly unknown[]): number {
  const { max_calls_per_second: rate = Infinity, max_concurrent_calls: calls = Infinity, max_calls_per_day: daily = Infinity } = limits;
  const [today] = day as readonly (string | null)[];
  return Math.min(calls - Number(open), rate - Number(recent), daily - Number(today ?? 0));
}

function refused(detail: string): Result<never, DialRefusal> {
  return err({ reason: 'DIAL_NOT_ALLOWED', detail });
}
