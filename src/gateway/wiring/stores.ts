import { join } from 'node:path';
import { ensureDataDir } from '../../config/data-dir.js';
import { workerName, type GatewayWorker } from '../../config/gateway-worker.js';
import { confirmingReplicas, sentinelOf, type Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { CallSpool } from '../store/files/call-spool.js';
import { openRedisStores, type RedisStores } from '../store/redis/redis-stores.js';

/** Where ended calls are kept in the data directory. */
export function callsDirectory(config: Config): string {
  return join(ensureDataDir(config), 'calls');
}

interface GatewayStores {
  readonly stores: RedisStores;
  /** Opens the file of records that Redis could not take: no other process has it any more. Never rejects. */
  readonly openSpool: () => Promise<void>;
}

export function openStores(config: Config, instance: string, worker: GatewayWorker, clock: Clock, log: Log): GatewayStores {
  const spool = new CallSpool(join(callsDirectory(config), `waiting.${workerName(worker.index)}`));
  const url = config.redis.url ?? `redis://127.0.0.1:${String(config.redis.port)}`;
  const { retention_days: days, trace_retention_days: traceDays, max_stored_mb: maxMb, stale_route_ms: staleRouteMs } = config.calls;
  const batchRetention = { days: config.batches.retention_days, maxEntries: config.batches.max_entries };
  const stores = openRedisStores({
    url,
    cluster: config.redis.cluster,
    sentinel: sentinelOf(config.redis),
    clock,
    log,
    instance,
    staleRouteMs,
    callRetention: { days, traceDays, maxBytes: maxMb * (1 << 20) },
    spool,
    batchRetention,
    confirmedBy: confirmingReplicas(config),
  });
  const openSpool = (): Promise<void> =>
    spool
      .open()
      .catch((error: unknown) =>
        log.error({ error: errorText(error), hint: 'call records are lost while Redis is unavailable' }, 'call.spool.not_opened'),
      );
  return { stores, openSpool };
}
