import { fileURLToPath } from 'node:url';
import { sipServerName } from '../../config/cells.js';
import { isFirstWorker, workerName, type GatewayWorker } from '../../config/gateway-worker.js';
import { httpAddress, type Config } from '../../config/schema.js';
import { packageVersion } from '../../config/version.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { metricsRefusal } from '../../observability/metrics/access.js';
import { gatherMetrics } from '../../observability/metrics/peers.js';
import { METRICS_CONTENT_TYPE, type Metrics } from '../../observability/metrics/registry.js';
import { languageOfVoice, supportedLanguages, supportedVoices } from '../model/espeak-voices.js';
import type { MetricsSource } from '../api/routes/metrics.js';
import { batchReader } from '../api/batch-reader.js';
import { createApiServer, type ApiOptions } from '../api/server.js';
import type { Inbound } from '../drachtio/inbound.js';
import { agentUrlRefusal, isAllowedHost } from '../net/guarded-lookup.js';
import type { ToolRunner } from '../ports/ports.js';
import type { RelayPool } from '../relay/pool.js';
import { redisWarnings } from '../store/redis/redis-health.js';
import type { RedisStores } from '../store/redis/redis-stores.js';
import { callDryRun } from './dry-run.js';
import { callPlacer } from './place-call.js';
import { inboundOptions, operatorAgent } from './inbound-options.js';

/** Beside the compiled gateway. */
const CONSOLE_DIRECTORY = fileURLToPath(new URL('../../console/', import.meta.url));

export interface ApiParts {
  readonly stores: RedisStores;
  readonly relay: RelayPool;
  readonly inbound: Inbound;
  readonly toolRunner: ToolRunner;
  readonly metrics: Metrics;
  readonly worker: GatewayWorker;
}

/** The first gateway process serves the API, and the metrics of all. `port: null`: this one has no API. */
export async function openApi(
  config: Config,
  clock: Clock,
  log: Log,
  parts: ApiParts,
): Promise<{ readonly port: number | null; close(): Promise<void> }> {
  const { stores, relay, inbound, toolRunner, metrics, worker } = parts;
  if (!isFirstWorker(worker) || worker.isRetired) return { port: null, close: () => Promise.resolve() };
  const server = await createApiServer(
    {
      stores,
      clock,
      log,
      check: callDryRun(stores.checkedRoutes, inbound, {
        operator: operatorAgent(config),
        standIn: inboundOptions(config).standIn,
        usage: (orgId) => stores.providerUsage.usage(orgId),
        urlRefusal: (url) => agentUrlRefusal(url, config.agents.allow_private),
      }),
      placeCall: callPlacer(inbound),
      liveCalls: inbound,
      toolRunner,
      readBatch: batchReader(clock),
      metrics: metricsSource(config, metrics, worker),
      readiness: async () => {
        const redis = await stores.health();
        return {
          parts: { redis: redis.refusal ?? true, rtpengine: relay.isUp, sip_server: inbound.isConnected, ...drainState(inbound) },
          warnings: redis.refusal === null ? redisWarnings(redis) : [],
        };
      },
    },
    {
      allowPlain: config.media.allow_plain,
      version: packageVersion(),
      agents: agentPolicy(config),
      rateLimits: rateLimits(config),
      consoleDirectory: CONSOLE_DIRECTORY,
    },
  );
  const { port } = await server.listen({ host: httpAddress(config), port: config.http.port });
  return { port, close: () => server.close() };
}

/** A part of its own only while it counts: a gateway that shuts down answers calls with 503, and should get none. */
const drainState = ({ isDraining }: Pick<Inbound, 'isDraining'>): { readonly gateway?: string } =>
  isDraining ? { gateway: 'it is shutting down and takes no new calls' } : {};

function metricsSource(config: Config, metrics: Metrics, worker: GatewayWorker): MetricsSource {
  const access = { allowedSources: config.metrics.allowed_sources, bearerToken: config.metrics.bearer_token };
  const { count } = worker;
  const peers = Array.from({ length: count }, (_, at) => [workerName(at + 1), workerName(at + 1 + count)]);
  if (config.drachtio.url === null) peers.push(...Array.from({ length: count }, (_, at) => [sipServerName(at + 1)]));
  return {
    contentType: METRICS_CONTENT_TYPE,
    render: () => gatherMetrics(metrics, config.data_dir, peers, ['supervisor']),
    refusal: (address, authorization) => metricsRefusal(access, address, authorization),
  };
}

function rateLimits({ http }: Config): ApiOptions['rateLimits'] {
  return {
    total: http.max_requests_per_minute,
    perAddress: http.max_requests_per_minute_per_address,
    perKey: http.max_requests_per_minute_per_key,
  };
}

/** What customers may set of their agents. */
function agentPolicy({ agents, calls, webhooks }: Config): ApiOptions['agents'] {
  const names = [...new Set([...supportedVoices(), ...agents.voices])];
  return {
    languages: supportedLanguages(),
    voices: names.map((name) => ({ name, language: languageOfVoice(name) })),
    maxDurationMinutes: calls.max_duration_minutes,
    isWebhookHost: (host) => isAllowedHost(host, webhooks.allow_private),
    agentUrlRefusal: (url) => agentUrlRefusal(url, agents.allow_private),
  };
}
