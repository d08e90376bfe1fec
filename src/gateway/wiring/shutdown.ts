import type { TrunkWatch } from '../drachtio/trunk-watch.js';
import type { Config } from '../../config/schema.js';
import { within, type Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { leaveCounts } from '../../observability/metrics/left-counts.js';
import type { Metrics } from '../../observability/metrics/registry.js';
import type { AwakeGate } from '../call/awake-gate.js';
import type { OverloadDetector } from '../admission/overload-detector.js';
import type { Inbound } from '../drachtio/inbound.js';
import type { TrunkRegistrar } from '../drachtio/trunk-registrar.js';
import type { MediaService } from '../media-thread/media-service.js';
import type { BatchDialling } from './batches.js';
import type { DeafPortWatch } from '../relay/deaf-ports.js';
import type { RelayPool } from '../relay/pool.js';
import type { RedisStores } from '../store/redis/redis-stores.js';

/** A running gateway. */
export interface Gateway {
  /** What the supervisor prints and keeps in ready.json. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly metrics: Metrics;
  /** Refuses new calls; `drain` lets those in progress go on for the drain time and ends them, `park` leaves them to the next process. */
  shutdown(how: 'drain' | 'park'): Promise<void>;
  /** Takes no more calls and gives the control API up to a successor. */
  retire(): Promise<void>;
  /** Resolves when no call is in progress. */
  whenIdle(): Promise<void>;
}

interface Closable {
  close(): Promise<void>;
}

interface GatewayParts {
  readonly gate: Pick<AwakeGate, 'close'> | null;
  readonly inbound: Inbound;
  readonly batches: BatchDialling;
  readonly registrar: Pick<TrunkRegistrar, 'stop'>;
  readonly trunks: Pick<TrunkWatch, 'stop'>;
  readonly overload: OverloadDetector;
  readonly endpoint: MediaService;
  readonly relay: RelayPool;
  readonly deafPorts: Pick<DeafPortWatch, 'stop'>;
  readonly stores: RedisStores;
  readonly api: Closable;
  readonly clients: Closable;
  readonly identities: Closable;
  readonly webhooks: Closable;
  readonly observers: Closable;
  readonly log: Log;
}

const API_CLOSE_MS = 1_000;

/** A call that is set up or ended meanwhile gets so long for it. */
const PARK_MS = 2_000;

export function running(config: Config, clock: Clock, facts: Gateway['facts'], metrics: Metrics, parts: GatewayParts): Gateway {
  return {
    facts,
    metrics,
    shutdown: (how) => shutdownGateway(how, config, metrics, parts),
    retire: () => retireGateway(clock, parts),
    whenIdle: () => parts.inbound.whenIdle(),
  };
}

async function retireGateway(clock: Clock, { inbound, batches, registrar, trunks, api }: GatewayParts): Promise<void> {
  inbound.retire();
  trunks.stop();
  // It listens no more; requests that take longer get their answers meanwhile.
  const closed = within(clock, API_CLOSE_MS, api.close());
  // The successor claims the registrations, which last until then.
  await Promise.all([batches.stop(), registrar.stop(false), closed]);
}

/** Closes everything in order. Parked calls have media until the last. */
async function shutdownGateway(how: 'drain' | 'park', config: Config, metrics: Metrics, parts: GatewayParts): Promise<void> {
  const { gate, inbound, batches, registrar, api, overload, clients, identities, webhooks, endpoint, relay, stores, observers, log } =
    parts;
  parts.deafPorts.stop();
  parts.trunks.stop();
  await batches.stop();
  await registrar.stop(how === 'drain');
  if (how === 'park') {
    await inbound.park(PARK_MS);
    inbound.leave();
    await observers.close();
    await leaveCounts(config.data_dir, metrics, log);
    return endpoint.leave();
  }
  await inbound.drain(config.calls.drain_ms, 64 * config.sip.t1_ms + 1_000);
  gate?.close();
  await api.close();
  inbound.leave();
  overload.stop();
  await batches.close();
  // The last reports of legs come as these close, and observers take them.
  for (const room of [clients, identities, webhooks]) await room.close();
  // Before those are gone whose figures they are.
  await leaveCounts(config.data_dir, metrics, log);
  await endpoint.shutdown();
  relay.close();
  await stores.close();
  await observers.close();
}
