import { BatchDialler, type BatchServices } from '../../src/gateway/batches/batch-dialler.js';
import type { BatchPlan } from '../../src/gateway/model/batch.js';
import type { Dialling } from '../../src/gateway/model/dialling.js';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import { parseE164, type E164 } from '../../src/gateway/model/e164.js';
import type { PlaceRequest } from '../../src/gateway/ports/place-call.js';
import type { Reason } from '../../src/gateway/model/reasons.js';
import type { CallInProgress } from '../../src/gateway/model/live-calls.js';
import type { RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { makeBatch } from '../../src/gateway/api/new-batch.js';
import { newUuid } from '../../src/lib/ids.js';
import { silentLog } from '../../src/lib/log.js';
import { callOf } from '../unit/gateway/store/store-contract.js';
import type { VirtualClock } from './virtual-clock.js';

export const BATCH_FROM = '+15550100555' as E164;

export const PLAN: BatchPlan = {
  from: BATCH_FROM,
  agent_id: null,
  calls_per_second: 100,
  max_concurrent_calls: 100,
  hours: { from: '00:00', to: '24:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] },
  retries: {},
  do_not_call_digit: null,
  ring_timeout: 30,
  detect_answerer: false,
  max_duration: 1,
  metadata: null,
  webhook: null,
};

/** When a gateway dies: in which call of a store or of the trunk, counted from the beginning, and whether that still takes effect. */
export interface Death {
  readonly afterCalls: number;
  readonly takesEffect: boolean;
}

interface OpenCall {
  readonly callId: string;
  readonly to: E164;
  readonly gateway: BatchGateway;
}

/** A gateway's work on batches, which may be killed anywhere. */
export class BatchGateway {
  readonly dialler: BatchDialler;
  isDead = false;
  /** It stands still before its INVITEs leave. */
  isStill = false;
  #calls = 0;
  readonly #leaving = new Map<string, () => Promise<void>>();

  constructor(
    private readonly world: BatchWorld,
    readonly instance: string,
    private readonly death: Death | null,
  ) {
    const { stores, clock } = world;
    const services: BatchServices = {
      work: stores.batchWork,
      allowance: stores.dialAllowance,
      doNotCall: stores.doNotCall,
      orgs: stores.orgs,
      numbers: stores.numbers,
      agents: stores.agents,
      calls: { get: (_orgId, callId) => Promise.resolve(world.records.get(callId) ?? null) },
      live: {
        get: (_orgId, callId) => Promise.resolve(world.open.has(callId) ? ({ call_id: callId } as CallInProgress) : null),
        ending: () => Promise.resolve(null),
      },
      placeCall: {
        kept: () => Promise.resolve(),
        fromRefusal: () => null,
        priceOf: () => ({ ok: true, value: 0.01 }),
        refusal: () => null,
        place: (request) => {
          this.#leaving.set(request.callId, () => this.#invite(request));
          return { ok: true, value: request.callId };
        },
      },
      isHere: (callId) => this.#leaving.has(callId) || world.open.get(callId)?.gateway === this,
      instance,
      longestMinutes: 120,
      clock,
      log: silentLog,
    };
    this.dialler = new BatchDialler({
      ...services,
      work: this.#mortal(services.work),
      placeCall: this.#mortal(services.placeCall),
      doNotCall: this.#mortal(services.doNotCall),
    });
  }

  /** @param standsStill the INVITEs do not leave yet */
  async tick(standsStill = false): Promise<void> {
    if (!this.isDead) await this.dialler.tick().catch(() => undefined);
    this.isStill = standsStill;
    if (!standsStill) await this.wake();
  }

  /** Its INVITEs leave, if they still may. */
  async wake(): Promise<void> {
    this.isStill = false;
    for (const leave of [...this.#leaving.values()]) if (!this.isDead) await leave();
  }

  async #invite({ callId, to, confirm }: PlaceRequest): Promise<void> {
    const mayLeave = await confirm?.().catch(() => false);
    this.#leaving.delete(callId);
    if (this.isDead) return;
    if (mayLeave === true) this.world.invited(to, callId, this);
    else this.world.refused(to, callId, this);
  }

  #mortal<T extends object>(services: T): T {
    return new Proxy(services, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        return (...args: unknown[]): unknown => {
          this.#calls += 1;
          const dies = !this.isDead && this.death !== null && this.#calls > this.death.afterCalls;
          if (this.isDead || (dies && !this.death.takesEffect)) {
            this.isDead = true;
            throw new Error('the gateway is dead');
          }
          if (!dies) return method.apply(target, args);
          this.isDead = true;
          const answer = method.apply(target, args);
          const gone = (): never => {
            throw new Error('the gateway is dead');
          };
          return answer instanceof Promise ? answer.then(gone) : gone();
        };
      },
    });
  }
}

interface BatchOptions {
  /** Of its numbers. */
  readonly zone?: string;
  readonly batchId?: string;
  readonly start?: boolean;
}

/** An organization that may dial, numbers, a trunk that counts INVITEs, and gateways. */
export class BatchWorld {
  readonly invites = new Map<E164, number>();
  readonly open = new Map<string, OpenCall>();
  readonly records = new Map<string, CallRecord>();
  /** Numbers of which nobody knows whether they were called, and those of them that were dialled again. */
  readonly inDoubt = new Set<E164>();
  readonly dialledInDoubt: E164[] = [];
  /** INVITEs that could not leave any more. */
  tooLate = 0;

  private constructor(
    readonly stores: RedisStores,
    readonly clock: VirtualClock,
    readonly orgId: string,
  ) {}

  static async open(stores: RedisStores, clock: VirtualClock, limits: Partial<Dialling> = {}): Promise<BatchWorld> {
    const { org_id: orgId } = await stores.orgs.create({ name: 'one', sip_enabled: true });
    const dialling = { prices: { '+49': 0.01 }, callers: [BATCH_FROM], max_calls_per_second: 1_000, max_concurrent_calls: 1_000 };
    await stores.orgs.change(orgId, { dialling: { ...dialling, max_calls_per_day: 100_000, max_cost_per_day: 100_000, ...limits } });
    await stores.numbers.attach(orgId, BATCH_FROM, { outbound: { sip_endpoint: 'trunk.example' } });
    return new BatchWorld(stores, clock, orgId);
  }

  async close(): Promise<void> {
    await this.stores.numbers.detach(this.orgId, BATCH_FROM, ['outbound']);
  }

  gateway(instance: string, death: Death | null = null): BatchGateway {
    return new BatchGateway(this, instance, death);
  }

  async batch(
    count: number,
    plan: Partial<BatchPlan> = {},
    { zone, batchId = newUuid(), start = true }: BatchOptions = {},
  ): Promise<string> {
    const given = Array.from({ length: count }, (_, row) => ({ row, phone_number: numberAt(row), time_zone: zone }));
    const batch = { orgId: this.orgId, batchId, name: 'Batch', plan: { ...PLAN, ...plan }, given: [given], count };
    const terms = { doNotCall: this.stores.doNotCall, priceOf: () => ({ ok: true, value: 0.01 }) as const, minutes: 30 };
    await makeBatch(this.stores, { ...batch, terms, unreadable: [], start, keep: () => Promise.resolve(true) }, this.clock);
    return batchId;
  }

  async run(batchId: string) {
    const [run] = await this.stores.batchRuns.read(null, [batchId]);
    if (run == null) throw new Error('no such batch');
    return run;
  }

  async log(batchId: string) {
    return (await this.stores.batches.read(null, batchId, { take: 1_000, skip: 0, direction: 'asc' })) ?? [];
  }

  invited(to: E164, callId: string, gateway: BatchGateway): void {
    this.invites.set(to, (this.invites.get(to) ?? 0) + 1);
    if (this.inDoubt.has(to)) this.dialledInDoubt.push(to);
    this.open.set(callId, { callId, to, gateway });
  }

  /** Ends a call; the record is there before its gateway learns of it, if that lives. */
  end(callId: string, reason: Reason, fields: Partial<CallRecord> = {}): void {
    const call = this.open.get(callId);
    if (call === undefined) return;
    this.open.delete(callId);
    if (reason === 'DIAL_AMBIGUOUS') this.inDoubt.add(call.to);
    const isAnswered = reason === 'CALLEE_HANGUP' || reason === 'AGENT_HANGUP';
    const record = callOf(this.orgId, this.clock.wallMs(), {
      call_id: callId,
      reason,
      direction: 'outbound',
      answered_at: isAnswered ? new Date(this.clock.wallMs()).toISOString() : null,
      ...fields,
    });
    this.records.set(callId, record);
    const placed = { isDialled: reason !== 'DIAL_NOT_ALLOWED', silentMs: isAnswered ? 100 : null };
    if (!call.gateway.isDead) call.gateway.dialler.onEnded({ record, placed });
  }

  /** Its INVITE did not leave. */
  refused(to: E164, callId: string, gateway: BatchGateway): void {
    this.tooLate += 1;
    this.open.set(callId, { callId, to, gateway });
    this.end(callId, 'DIAL_NOT_ALLOWED');
  }

  /** The call is gone with its gateway, and left no record. */
  lose(callId: string): void {
    const call = this.open.get(callId);
    if (call !== undefined) this.inDoubt.add(call.to);
    this.open.delete(callId);
  }
}

export function numberAt(index: number): E164 {
  const number = parseE164(`+4930${String(1_000_000 + index)}`);
  if (number === undefined) throw new Error('no number');
  return number;
}
