import type { CallStore } from '../gateway/ports.js';
import { isoNow, type Clock } from '../lib/clock.js';
import { errorText } from '../lib/error-text.js';
import { countedCalls, countedRoutes } from './counted-calls.js';
import type { CallSpool } from './call-spool.js';
import type { StoredKind } from './stored-calls.js';
import { newDelivery } from './new-records.js';
import { ChangeSubscription } from './changes.js';
import { RedisGatewayBus } from './gateway-bus.js';
import { gatewayChannel } from './keys.js';
import { Leases } from './leases.js';
import { scheduleSweep } from './number-sweep-schedule.js';
import { OwnCalls } from './own-calls.js';
import { RedisAgentStore } from './redis-agents.js';
import { RedisAuditLog } from './redis-audit.js';
import { RedisBatchLog } from './redis-batches.js';
import { RedisToolStore } from './redis-tools.js';
import { RedisApiKeyStore } from './redis-api-keys.js';
import { RedisCallLog } from './redis-calls.js';
import { RedisOutbox } from './redis-outbox.js';
import { RedisLiveCalls } from './redis-live-calls.js';
import { RedisNumberStore } from './redis-numbers.js';
import { RedisOrgStore } from './redis-orgs.js';
import { RedisRouteStore } from './redis-routes.js';
import { RedisSnapshotStore } from './redis-snapshots.js';
import { RedisThroughput } from './redis-throughput.js';
import { ReadRecords } from './read-records.js';
import { RedisConnection, type RedisOptions } from './redis.js';
import { RememberedRoutes } from './remembered-routes.js';
import { dropOutdated } from './remembered-check.js';
import {
  DEFAULT_BATCH_RETENTION,
  DEFAULT_CALL_RETENTION,
  type BatchRetention,
  type CallLog,
  type CallRetention,
  type Outbox,
  type Stores,
} from './stores.js';
import { WaitingRecords } from './waiting-records.js';

const READY_LIMIT_MS = 5000;
const LEASE_MS = 30_000;
const STALE_ROUTE_MS = 600_000;
const REMEMBERED_ROUTES = 50_000;
const DECODED_RECORDS = 5_000;

export interface RedisStoresOptions extends RedisOptions {
  readonly callRetention?: Partial<CallRetention>;
  readonly batchRetention?: Partial<BatchRetention>;
  /** Names this gateway among those of one Redis, and after a restart. Left out by programs that take no calls. */
  readonly instance?: string;
  /** A call's place is kept for so long unless it is renewed, which is done three times in it. */
  readonly leaseMs?: number;
  /** How old an answer may be that stands in for a Redis that is away; 0: none does. */
  readonly staleRouteMs?: number;
  /** Numbers whose last look-up is remembered. */
  readonly maxRememberedRoutes?: number;
  /** Where ended calls wait for a Redis that takes none; left out by programs that take no calls. The stores close it. */
  readonly spool?: CallSpool | null;
}

/** How the stores stand, for metrics. */
export interface StoreFigures {
  readonly isUp: boolean;
  readonly connects: number;
  readonly waitingRecords: number;
  /** Traces and records of calls that this gateway dropped to stay below `maxBytes`. */
  readonly evicted: Readonly<Record<StoredKind, number>>;
  /** Calls that count under limits. */
  readonly places: number;
  readonly snapshots: number;
}

export interface RedisStores extends Stores {
  /** Resolves when Redis is usable; rejects with `StoreUnavailableError` when it is not within `limitMs` (5000). */
  ready(limitMs?: number): Promise<void>;
  /** From now on the indexes of numbers are swept every hour, by one gateway of all. */
  startSweeping(): void;
  readonly figures: StoreFigures;
  /** Bytes of the records and traces of calls, of all gateways on this Redis. */
  storedCallBytes(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens all stores. Returns at once: the connection is made in the background and made again whenever it is lost; until then
 * everything rejects with `StoreUnavailableError` at once.
 */
export function openRedisStores(options: RedisStoresOptions): RedisStores {
  const redis = new RedisConnection(options);
  const { clock, log, instance = 'none' } = options;
  const numbers = new RedisNumberStore(redis, clock, log);
  const records = new RedisCallLog(redis, clock, log, { ...DEFAULT_CALL_RETENTION, ...options.callRetention });
  const outbox = new RedisOutbox(redis, clock);
  const waiting = new WaitingRecords(withOutbox(records, outbox, clock), options.spool ?? null, clock, log);
  const { routes, snapshots, bus, stop, figures } = openCalls(redis, instance, options);
  const throughput = new RedisThroughput(redis, clock);
  const written = countedCalls(waiting, (orgId, kind) => throughput.count(orgId, kind));
  let stopSweeping = (): void => undefined;
  return {
    numbers,
    orgs: new RedisOrgStore(redis, clock),
    keys: new RedisApiKeyStore(redis, clock),
    agents: new RedisAgentStore(redis, clock),
    tools: new RedisToolStore(redis),
    batches: new RedisBatchLog(redis, clock, { ...DEFAULT_BATCH_RETENTION, ...options.batchRetention }),
    audit: new RedisAuditLog(redis, clock),
    calls: withWriter(records, written),
    live: new RedisLiveCalls(redis),
    throughput,
    routes: countedRoutes(routes, (orgId, kind) => throughput.count(orgId, kind)),
    snapshots,
    outbox,
    ping: () => redis.ping(),
    bus,
    ready: (limitMs = READY_LIMIT_MS) => redis.ready(limitMs),
    get figures(): StoreFigures {
      return { isUp: redis.isUp, connects: redis.connects, waitingRecords: waiting.size, evicted: records.stored.evicted, ...figures() };
    },
    storedCallBytes: () => records.stored.bytes(),
    startSweeping: () => {
      stopSweeping();
      stopSweeping = scheduleSweep({ redis, numbers, instance, clock, log });
    },
    close: async () => {
      stopSweeping();
      await waiting.close();
      await records.close();
      await throughput.close();
      await stop();
      await redis.close();
    },
  };
}

/** What counts and remembers calls: routes and snapshots, the renewal of leases, and the subscription to changes. */
function openCalls(
  redis: RedisConnection,
  instance: string,
  options: RedisStoresOptions,
): Pick<Stores, 'routes' | 'snapshots' | 'bus'> & {
  readonly stop: () => Promise<void>;
  readonly figures: () => Pick<StoreFigures, 'places' | 'snapshots'>;
} {
  const { clock, log, leaseMs = LEASE_MS } = options;
  // Without an instance there is no subscription: what changed since would not be known.
  const staleRouteMs = options.instance === undefined ? 0 : (options.staleRouteMs ?? STALE_ROUTE_MS);
  const own = new OwnCalls(clock);
  const leases = new Leases(redis, leaseMs, instance);
  const remembered = new RememberedRoutes(options.maxRememberedRoutes ?? REMEMBERED_ROUTES);
  const routes = new RedisRouteStore({ leases, own, remembered, records: new ReadRecords(DECODED_RECORDS), clock, staleRouteMs });
  const snapshots = new RedisSnapshotStore({
    redis,
    instance,
    clock,
    log,
    onLeft: async (calls) => {
      for (const call of calls) own.resume(call);
      await leases.renew(own.all);
    },
    onForgotten: (callId) => routes.release(callId),
  });
  const bus = new RedisGatewayBus(redis, instance, clock, log);
  const figures = () => ({ places: own.all.size, snapshots: snapshots.size });
  if (options.instance === undefined)
    return {
      routes,
      snapshots,
      bus,
      figures,
      stop: () => {
        snapshots.close();
        return Promise.resolve();
      },
    };

  // One node tells of what is published on any.
  const { onCommand: _onlyOfTheStores, ...connected } = options;
  const connection = new RedisConnection({ ...connected, cluster: false, log: log.child({ connection: 'changes' }) });
  const onGap = (): void => {
    dropOutdated(redis, remembered).catch((error: unknown) => log.warn({ reason: errorText(error) }, 'redis.changes.unchecked'));
  };
  const also = { channel: gatewayChannel(instance), take: (message: string) => bus.take(message) };
  const subscription = new ChangeSubscription(connection, { onChange: (key) => remembered.onChange(key), onGap, also }, clock, log);
  const renew = (): (() => void) =>
    clock.setTimer(leaseMs / 3, () => {
      cancel = renew();
      subscription.check();
      leases.renew(own.all).catch((error: unknown) => log.debug({ reason: errorText(error) }, 'call.leases.not_renewed'));
    });
  let cancel = renew();
  return {
    routes,
    snapshots,
    bus,
    figures,
    stop: async () => {
      cancel();
      bus.close();
      snapshots.close();
      await subscription.close();
    },
  };
}

/** A call whose record is written twice, because the first answer was lost, is told once: the outbox knows it. */
function withOutbox(records: CallStore, outbox: Outbox, clock: Clock): CallStore {
  return {
    write: async (call) => {
      const { record, completion } = call;
      const isTold = completion !== null && record.org_id !== null;
      await Promise.all([
        records.write(call),
        isTold ? outbox.add(newDelivery(record.org_id, record.call_id, completion, isoNow(clock))) : undefined,
      ]);
    },
  };
}

function withWriter(records: CallLog, writer: CallStore): CallLog {
  return {
    write: (call) => writer.write(call),
    get: (orgId, callId) => records.get(orgId, callId),
    trace: (orgId, callId) => records.trace(orgId, callId),
    list: (orgId, page) => records.list(orgId, page),
    listUnrouted: (limit) => records.listUnrouted(limit),
  };
}
