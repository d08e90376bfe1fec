import type { RedisHealth } from './redis-health.js';
import type { BatchWork, DialAllowance, DoNotCallList } from '../../ports/batches.js';
import type { CallStore, DialLedger, ProviderSessions, RouteStore, ToolDirectory } from '../../ports/ports.js';
import { isoNow, type Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import { meteredCalls, meteredRoutes, RedisThroughput } from './throughput/redis-throughput.js';
import type { CallSpool } from '../files/call-spool.js';
import type { StoredKind } from './calls/stored-calls.js';
import { newDelivery } from '../new-records.js';
import { Heartbeat } from './heartbeat/heartbeat.js';
import { InvalidationChannel } from './invalidation-channel.js';
import { RedisGatewayBus } from './gateway-bus.js';
import { gatewayChannel } from './keys.js';
import { Endings } from './leases/endings.js';
import { Leases, LocalCallRegistry } from './leases/leases.js';
import { RedisProviderSessions } from './leases/provider-sessions.js';
import { scheduleSweep } from './numbers/number-sweep-schedule.js';
import { RedisAgentStore } from './agents/redis-agents.js';
import { RedisAuditLog } from './audit/redis-audit.js';
import { RedisDialLedger } from './dials/redis-dials.js';
import { DialRecords } from './dials/dial-records.js';
import { RedisPlacements } from './dials/redis-placements.js';
import { RedisBatchLog } from './batches/redis-batches.js';
import { RedisBatchRuns } from './batches/redis-batch-runs.js';
import { RedisRegistrations } from './registrations/redis-registrations.js';
import { RedisDoNotCallList } from './dials/redis-do-not-call.js';
import { RedisToolStore } from './tools/redis-tools.js';
import { RedisApiKeyStore } from './api-keys/redis-api-keys.js';
import { RedisCallLog } from './calls/redis-calls.js';
import { RedisOutbox } from './outbox/redis-outbox.js';
import { RedisLiveCalls } from './live-calls/redis-live-calls.js';
import { RedisNumberStore } from './numbers/redis-numbers.js';
import { RedisOrgStore } from './orgs/redis-orgs.js';
import { RedisRouteStore } from './routes/redis-routes.js';
import { RedisSnapshotStore } from './snapshots/redis-snapshots.js';
import { RecordCache, RouteCache, dropOutdated } from './routes/route-cache.js';
import { RedisConnection, type RedisOptions } from './redis.js';
import { TurnWrites } from './turn-writes.js';
import {
  DEFAULT_BATCH_RETENTION,
  DEFAULT_CALL_RETENTION,
  type BatchRetention,
  type CallLog,
  type CallRetention,
  type Outbox,
  type Stores,
} from '../../ports/stores.js';
import { CallRecordBuffer } from '../files/call-record-buffer.js';

/** As `CLIENT LIST` shows them. */
export const CALLS_CONNECTION = 'trunkline:calls';
export const API_CONNECTION = 'trunkline:api';
const CHANGES_CONNECTION = 'trunkline:changes';
const READY_LIMIT_MS = 5000;
/** The lease of a call's slot, renewed three times within it. */
const LEASE_MS = 30_000;
const CONFIRM_LIMIT_MS = 1_000;
const STALE_ROUTE_MS = 600_000;
const REMEMBERED_ROUTES = 50_000;
const DECODED_RECORDS = 5_000;

export interface RedisStoresOptions extends RedisOptions {
  readonly callRetention?: Partial<CallRetention>;
  readonly batchRetention?: Partial<BatchRetention>;
  /** Replicas that must have an attempt of a batch before its INVITE leaves; left out: none. */
  readonly confirmedBy?: number;
  /** Names this gateway among those of one Redis, and after a restart. Left out by programs that take no calls. */
  readonly instance?: string;
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
  readonly slots: number;
  readonly snapshots: number;
}

export interface RedisStores extends Stores {
  /** What calls read and write, over their connection. */
  readonly ofCalls: Pick<Stores, 'routes' | 'calls' | 'snapshots'> & {
    readonly tools: ToolDirectory;
    readonly sessions: ProviderSessions;
    readonly dials: DialLedger;
    readonly doNotCall: DoNotCallList;
  };
  /** As the control API asks, without a place: over its connection. */
  readonly checkedRoutes: Pick<RouteStore, 'lookup'>;
  /** What gateways do for batches. */
  readonly batchWork: BatchWork;
  readonly dialAllowance: DialAllowance;
  /** Resolves when Redis is usable; rejects with `StoreUnavailableError` when it is not within `limitMs` (5000). */
  ready(limitMs?: number): Promise<void>;
  /** From now on the indexes of numbers are swept every hour, by one gateway of all. */
  startSweeping(): void;
  readonly figures: StoreFigures;
  /** Whether Redis takes writes, how fast, and its memory. Never rejects. */
  health(): Promise<RedisHealth>;
  /** Bytes of the records and traces of calls, of all gateways on this Redis. */
  storedCallBytes(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens all stores, over two connections: one is for the path of a call alone, so that whatever customers ask of the control API,
 * and whatever webhooks wait, no call waits behind it. Returns at once: connections are made in the background and made again whenever they are lost; until then
 * everything rejects with `StoreUnavailableError` at once.
 */
export function openRedisStores(options: RedisStoresOptions): RedisStores {
  const { clock, log, instance = 'none' } = options;
  const redis = new RedisConnection({ ...options, connectionName: CALLS_CONNECTION });
  // A program that takes no calls has nothing to keep apart.
  const api =
    options.instance === undefined
      ? redis
      : new RedisConnection({ ...options, connectionName: API_CONNECTION, log: log.child({ connection: 'api' }) });
  const retention = { ...DEFAULT_CALL_RETENTION, ...options.callRetention };
  const numbers = new RedisNumberStore(api, clock, log);
  const writes = new TurnWrites(redis);
  const records = new RedisCallLog(redis, writes, clock, log, retention);
  const waiting = new CallRecordBuffer(withOutbox(records, new RedisOutbox(redis, clock), clock), options.spool ?? null, clock, log);
  const { routes, checkedRoutes, snapshots, sessions, dials, dialRecords, providerUsage, bus, stop, figures } = openCalls(
    { redis, writes, api, instance, waiting },
    options,
  );
  const throughput = new RedisThroughput(redis, api, clock);
  const written = meteredCalls(waiting, (orgId, kind, calls) => throughput.count(orgId, kind, calls));
  let stopSweeping = (): void => undefined;
  const calls = withWriter(new RedisCallLog(api, writes, clock, log, retention), written);
  const meteredRouteStore = meteredRoutes(routes, (orgId, kind) => throughput.count(orgId, kind));
  const batchRetention = { ...DEFAULT_BATCH_RETENTION, ...options.batchRetention };
  const batchRuns = new RedisBatchRuns({
    redis: api,
    instance,
    retention: batchRetention,
    confirmedBy: options.confirmedBy ?? 0,
    clock,
    log,
  });
  return {
    numbers,
    callers: { get: async (orgId, number) => (await dialRecords.read(orgId, number)).number },
    orgs: new RedisOrgStore(api, clock),
    keys: new RedisApiKeyStore(api, clock),
    agents: new RedisAgentStore(api, clock),
    tools: new RedisToolStore(api),
    ofCalls: {
      routes: meteredRouteStore,
      calls,
      snapshots,
      tools: new RedisToolStore(redis),
      sessions,
      dials,
      doNotCall: new RedisDoNotCallList(redis, clock),
    },
    providerUsage,
    batches: new RedisBatchLog(api, clock, batchRetention),
    batchRuns,
    batchWork: batchRuns,
    dialAllowance: dials,
    doNotCall: new RedisDoNotCallList(api, clock),
    audit: new RedisAuditLog(api, clock),
    calls,
    live: new RedisLiveCalls(api),
    throughput,
    placements: new RedisPlacements(api),
    registrations: new RedisRegistrations(api, instance),
    routes: meteredRouteStore,
    checkedRoutes,
    snapshots,
    outbox: new RedisOutbox(api, clock),
    ping: () => redis.ping(),
    health: () => redis.health(),
    bus,
    ready: async (limitMs = READY_LIMIT_MS) => {
      await Promise.all([redis.ready(limitMs), api.ready(limitMs)]);
    },
    get figures(): StoreFigures {
      return { isUp: redis.isUp, connects: redis.connects, waitingRecords: waiting.size, evicted: records.stored.evicted, ...figures() };
    },
    storedCallBytes: () => records.stored.bytes(),
    startSweeping: () => {
      stopSweeping();
      stopSweeping = scheduleSweep({ redis: api, numbers, instance, clock, log });
    },
    close: async () => {
      stopSweeping();
      await waiting.close();
      await records.close();
      // The last calls have their records now.
      await snapshots.flush();
      await throughput.close();
      await stop();
      writes.flush();
      await redis.close();
      if (api !== redis) await api.close();
    },
  };
}

interface CallParts {
  readonly redis: RedisConnection;
  readonly writes: TurnWrites;
  readonly api: RedisConnection;
  readonly instance: string;
  readonly waiting: CallRecordBuffer;
}

/** What counts and remembers calls: routes and snapshots, the renewal of leases, and the subscription to changes. */
function openCalls(
  { redis, writes, api, instance, waiting }: CallParts,
  options: RedisStoresOptions,
): Pick<RedisStores, 'routes' | 'checkedRoutes' | 'snapshots' | 'providerUsage' | 'bus'> & {
  readonly sessions: RedisProviderSessions;
  readonly dials: RedisDialLedger;
  readonly dialRecords: DialRecords;
  readonly stop: () => Promise<void>;
  readonly figures: () => Pick<StoreFigures, 'slots' | 'snapshots'>;
} {
  const { clock, log } = options;
  // Without an instance there is no subscription: what changed since would not be known.
  const staleRouteMs = options.instance === undefined ? 0 : (options.staleRouteMs ?? STALE_ROUTE_MS);
  const own = new LocalCallRegistry(clock);
  const endings = new Endings(writes, LEASE_MS, clock);
  const leases = new Leases(redis, writes, endings, LEASE_MS, instance, clock, log);
  const remembered = new RouteCache(options.maxRememberedRoutes ?? REMEMBERED_ROUTES);
  const heartbeat = new Heartbeat(redis, api, instance, clock);
  const routing = { own, remembered, records: new RecordCache(DECODED_RECORDS), freshness: heartbeat, clock, staleRouteMs };
  const routes = new RedisRouteStore({ ...routing, leases });
  const apiWrites = api === redis ? writes : new TurnWrites(api);
  const checkedEndings = new Endings(apiWrites, LEASE_MS, clock);
  const checkedRoutes = new RedisRouteStore({
    ...routing,
    leases: new Leases(api, apiWrites, checkedEndings, LEASE_MS, instance, clock, log),
  });
  const sessions = new RedisProviderSessions(redis, writes, LEASE_MS, clock, log);
  const providerUsage = new RedisProviderSessions(api, apiWrites, LEASE_MS, clock, log);
  // Apart: it remembers no agents.
  const dialled = new RouteCache(options.maxRememberedRoutes ?? REMEMBERED_ROUTES);
  const dialRecords = new DialRecords(redis, dialled, routing.records, heartbeat, clock);
  const dials = new RedisDialLedger(redis, dialRecords, writes, endings, LEASE_MS, instance, clock, log);
  const snapshots = new RedisSnapshotStore({
    redis,
    writes,
    instance,
    clock,
    log,
    beforeLeft: () => waiting.begin(),
    onLeft: async (calls) => {
      for (const call of calls)
        if (call.dial == null) own.resume(call);
        else dials.resume(call, call.dial);
      await Promise.all([leases.renew(own.all), dials.renew()]);
    },
    onForgotten: (callId) => routes.release(callId),
  });
  const onChange = (key: string): void => {
    for (const cache of [remembered, dialled]) cache.onChange(key);
    leases.onChange(key);
  };
  const bus = new RedisGatewayBus(api, instance, onChange, clock, log);
  const figures = () => ({ slots: own.all.size, snapshots: snapshots.size });
  const opened = { routes, checkedRoutes, snapshots, sessions, dials, dialRecords, providerUsage, bus, figures };
  const waitForAll = (): Promise<void> => new Promise((resolve) => clock.setTimer(CONFIRM_LIMIT_MS, resolve));
  if (options.instance === undefined) {
    // Nothing can be confirmed to a program without a channel: after this time nobody uses what was before.
    api.onChanged = async () => {
      if ((await heartbeat.others().catch(() => [''])).length > 0) await waitForAll();
    };
    return {
      ...opened,
      stop: () => {
        endings.close();
        snapshots.close();
        return Promise.resolve();
      },
    };
  }

  // One node passes on what is published on any.
  const connection = new RedisConnection({
    ...options,
    cluster: false,
    connectionName: CHANGES_CONNECTION,
    log: log.child({ connection: 'changes' }),
  });
  const onGap = (): void => {
    for (const cache of [remembered, dialled]) cache.onGap();
    heartbeat.begin();
    Promise.all([remembered, dialled].map((cache) => dropOutdated(redis, cache))).catch((error: unknown) =>
      log.warn({ error: errorText(error) }, 'redis.invalidation.unchecked'),
    );
  };
  const also = {
    channel: gatewayChannel(instance),
    take: (message: string) => {
      if (!heartbeat.take(message)) bus.take(message);
    },
  };
  const subscription = new InvalidationChannel(connection, { onChange, onGap, onLost: () => heartbeat.stop(), also }, clock, log);
  api.onChanged = async (key) => {
    onChange(key);
    try {
      const others = (await heartbeat.gateways()).filter((one) => one !== instance);
      await Promise.all(others.map((one) => bus.confirm(one, key, CONFIRM_LIMIT_MS)));
    } catch (error) {
      // Who is to confirm is not known: after this time nobody uses what was before.
      log.warn({ error: errorText(error) }, 'redis.invalidation.unconfirmed');
      await waitForAll();
    }
  };
  let isRenewing = false;
  const renew = (): (() => void) =>
    clock.setTimer(LEASE_MS / 3, () => {
      cancel = renew();
      subscription.check();
      // One that Redis does not answer is not followed by more.
      if (isRenewing) return;
      isRenewing = true;
      Promise.all([leases.renew(own.all), sessions.renew(), dials.renew()])
        .catch((error: unknown) => log.debug({ error: errorText(error) }, 'call.leases.not_renewed'))
        .finally(() => (isRenewing = false));
    });
  let cancel = renew();
  return {
    ...opened,
    stop: async () => {
      cancel();
      api.onChanged = undefined;
      await heartbeat.close();
      bus.close();
      endings.close();
      snapshots.close();
      await subscription.close();
    },
  };
}

/**
 * A call whose record is written twice, because the first answer was lost, is told once: the outbox knows it. The record comes last, for
 * a call that has one is not taken up again by the next process.
 */
function withOutbox(records: CallStore, outbox: Outbox, clock: Clock): CallStore {
  return {
    write: async (call) => {
      const { record, completion } = call;
      const isTold = completion !== null && record.org_id !== null;
      if (isTold) await outbox.add(newDelivery(record.org_id, record.call_id, completion, isoNow(clock)));
      await records.write(call);
    },
  };
}

function withWriter(records: CallLog, writer: CallStore): CallLog {
  return {
    write: (call) => writer.write(call),
    get: (orgId, callId) => records.get(orgId, callId),
    trace: (orgId, callId) => records.trace(orgId, callId),
    list: (scope, query) => records.list(scope, query),
    addAnalysis: (orgId, callId, found) => records.addAnalysis(orgId, callId, found),
  };
}
