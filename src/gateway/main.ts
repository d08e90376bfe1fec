import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { languageOfVoice, supportedLanguages, supportedVoices } from './agents/languages.js';
import { HttpToolRunner } from './agents/tool-runner.js';
import { createApiServer, type ApiOptions, type ApiServer } from './api/server.js';
import type { MetricsSource } from './api/routes/metrics.js';
import { httpAddress, sentinelOf, type Config } from '../config/schema.js';
import type { AgentConnectionLimits } from './model/agent.js';
import { callDryRun } from './wiring/dry-run.js';
import type { OperatorAgent } from './call/agent.js';
import { answerGateway } from './api/other-gateways.js';
import { Inbound, type InboundOptions, type InboundServices } from './drachtio/inbound.js';
import type { ToolRunner } from './ports/ports.js';
import { createSrfApp } from './drachtio/srf-facade.js';
import type { Clock } from '../lib/clock.js';
import { errorText } from '../lib/error-text.js';
import { formatHostPort } from '../lib/host-port.js';
import type { Log } from '../lib/log.js';
import { traceparentOf } from '../observability/tracing/trace-context.js';
import { createMediaService, type MediaService, type MediaServiceOptions } from './media-thread/media-service.js';
import { generateSrtpKey } from '../srtp/srtp.js';
import { controlSecret, ensureDataDir, gatewayInstance } from '../config/data-dir.js';
import { ensureDemo } from './wiring/demo.js';
import { ONLY_WORKER, workerConfig, workerInstance, workerName, type GatewayWorker } from '../config/gateway-worker.js';
import { HepSender } from '../observability/hep/sender.js';
import { OverloadDetector } from './admission/overload-detector.js';
import {
  beginGateway,
  collectGateway,
  countCall,
  countedEndpoint,
  countedOutbox,
  countedPost,
  countedTools,
  countRedisCommands,
  countRelayCommands,
  countRequest,
} from './wiring/gateway-metrics.js';
import { metricsRefusal } from '../observability/metrics/access.js';
import { gatherMetrics, serveMetrics } from '../observability/metrics/peers.js';
import { watchProcess } from '../observability/metrics/process-metrics.js';
import { Metrics, METRICS_CONTENT_TYPE } from '../observability/metrics/registry.js';
import { resolveHostPort } from '../lib/resolve.js';
import { agentCertificates, sipHost } from '../tls/tls-material.js';
import { callSpans } from './wiring/call-spans.js';
import { openTraceExporter, type TraceExporter } from '../observability/tracing/exporter.js';
import { packageVersion } from '../config/version.js';
import { agentUrlRefusal, isAllowedHost } from './net/guarded-lookup.js';
import { callsOf } from './relay/media-ports.js';
import { maxOpenFiles } from '../lib/open-files.js';
import { openRelayPool, type RelayPool } from './relay/pool.js';
import { Poster } from './webhooks/post.js';
import type { RetrySchedule } from './webhooks/retry-schedule.js';
import { openStirVerifier } from './stir/verifier.js';
import { WebhookSender, type WebhookSenderParts } from './webhooks/sender.js';
import { CallArchive } from './store/files/call-archive.js';
import { CallSpool } from './store/files/call-spool.js';
import { openRedisStores, type RedisStores } from './store/redis/redis-stores.js';

/** For the SIP server to take the gateway; calls of an earlier process connect their agents anew within it too. */
const SERVER_LIMIT_MS = 10_000;
/** Beside this file when it is built. */
const CONSOLE_DIRECTORY = fileURLToPath(new URL('../console/', import.meta.url));
/** For all that a webhook needs beside its receiver. */
const CLAIM_SPARE_MS = 10_000;

/** A running gateway. */
export interface Gateway {
  /** What the supervisor prints and keeps in ready.json. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** New calls are refused, those in progress may go on for the drain time, then get BYE; everything is closed. */
  shutdown(): Promise<void>;
}

/** Wires the adapters to the ports and opens everything. Rejects with a text for a person. */
export async function startGateway(settings: Config, clock: Clock, log: Log, worker: GatewayWorker = ONLY_WORKER): Promise<Gateway> {
  const config = workerConfig(settings, worker);
  const instance = workerInstance(gatewayInstance(config), worker);
  const metrics = new Metrics(workerName(worker.index));
  beginGateway(metrics);
  const observers = await openObservers(config, instance, log, metrics);
  // Callers of an earlier process hear nothing until all this is done: the threads start meanwhile, and the API comes last.
  const opening = openEndpoint(config, log, observers.onRtcp);
  // Should the start fail before it is awaited, that is the failure to tell.
  opening.catch(() => undefined);
  const stores = openStores(config, instance, clock, log, metrics, await openSpool(config, worker, log));
  await stores.ready();
  // Somebody else's Redis gets no demo organization.
  const demo = config.redis.url === null && worker.index === 1 ? await ensureDemo({ stores, dataDir: ensureDataDir(config), clock }) : null;

  // What an earlier process of this gateway left: its calls keep their relay sessions until it is known whether they go on.
  const left = await stores.snapshots.orphaned();
  const relay = await openRelay(config, worker, instance, clock, log, metrics);
  await relay.reconcile(new Set(left.map(({ call_id: callId }) => callId)));

  const endpoint = await opening;
  const load = new OverloadDetector(
    { maxEventLoopDelayMs: config.admission.max_event_loop_delay_ms, maxCpuPercent: config.admission.max_cpu_percent },
    clock,
    log,
  );
  const srf = createSrfApp();
  const toolRunner = new HttpToolRunner({ allowPrivate: config.tools.allow_private, clock });
  const poster = new Poster({ allowPrivate: config.webhooks.allow_private, timeoutMs: config.webhooks.timeout_ms, clock });
  const webhooks = new WebhookSender({
    outbox: countedOutbox(stores.outbox, metrics),
    orgs: stores.orgs,
    post: countedPost(tracedPost(poster, config), metrics, clock),
    schedule: retrySchedule(config),
    claimMs: 2 * config.webhooks.timeout_ms + CLAIM_SPARE_MS,
    clock,
    log,
    chance: Math.random,
  });
  const identities = await openStirVerifier(config.stir, clock);
  const { archive_days: archiveDays } = config.calls;
  const archive = archiveDays === 0 ? null : new CallArchive(callsDirectory(config), archiveDays, clock, log);
  const inbound = new Inbound(
    {
      identities,
      routes: stores.routes,
      calls: {
        write: async (call) => {
          countCall(metrics, call.record);
          archive?.append(call.record);
          const { record, timeline } = call;
          if (timeline !== undefined) observers.traces?.take(record.call_id, () => callSpans(record, timeline));
          await stores.calls.write(call);
          if (call.completion !== null && call.record.org_id !== null) webhooks.kick(call.record.org_id);
        },
      },
      snapshots: stores.snapshots,
      tools: stores.toolsOfCalls,
      toolRunner: countedTools(toolRunner, metrics, clock),
      relay,
      endpoint: countedEndpoint(endpoint, metrics, clock),
      srf,
      clock,
      log,
      newKey: generateSrtpKey,
      operatorAgent: operatorAgent(config),
      isTraced: config.calls.trace,
      ...observers.services,
      agentSideSrtp: config.media.agent_leg === 'srtp',
      referReason: config.sip.refer_status === 405 ? 'METHOD_NOT_ALLOWED' : 'DECLINED',
    },
    inboundOptions(config),
    () => ({ isOverloaded: load.isOverloaded, isRelayUp: relay.isUp, mediaHeadroom: headroomOf(relay, endpoint) }),
    log,
  );
  relay.onNodeLost((_node, callIds) => inbound.relayLost(callIds, config.rtpengine.on_node_loss === 'move' && relay.isUp));
  inbound.adopt(left);
  stores.bus.onRequest((body) => answerGateway(inbound, body));
  const control =
    config.drachtio.url === null ? { address: '127.0.0.1', port: config.drachtio.port } : await resolveHostPort(config.drachtio.url);
  // The tag tells the embedded SIP server whose calls are whose, across connections and restarts.
  srf.connect({ host: control.address, port: control.port, secret: controlSecret(config), tags: [`gw:${instance}`] });

  const at = `${formatHostPort(control.address, control.port)} (${config.drachtio.url === null ? 'drachtio.port' : 'drachtio.url'})`;
  await inbound.whenConnected(SERVER_LIMIT_MS + config.agents.connect_timeout_ms, at);
  collectGateway(metrics, {
    inbound,
    relay,
    endpoint,
    stores,
    headroom: () => Math.min(endpoint.capacity - endpoint.legs, headroomShare(worker, relay)),
    isFirst: worker.index === 1,
  });
  const unwatch = watchProcess(metrics, clock);
  // The first one has the API, and asks the others.
  const unserve = worker.index === 1 ? null : serveMetrics(metrics, ensureDataDir(config), log);
  const api = worker.index === 1 ? await openApi(config, clock, log, stores, relay, inbound, toolRunner, { metrics, worker }) : null;
  load.start();
  stores.startSweeping();
  webhooks.start();
  return {
    facts:
      api === null ? {} : { http: `http://${formatHostPort(httpAddress(config), api.port)}`, sip_tls: inbound.listensOn('tls'), ...demo },
    shutdown: async () => {
      inbound.drain();
      srf.withdraw(['invite', 'options']);
      await Promise.race([inbound.whenIdle(), delay(clock, config.calls.drain_ms)]);
      // A call whose ACK never comes is given up by the SIP server after 64·T1.
      await Promise.race([inbound.endAll(), delay(clock, 64 * config.sip.t1_ms + 1_000)]);
      await api?.server.close();
      unserve?.();
      unwatch();
      srf.disconnect();
      load.stop();
      await toolRunner.close();
      await identities.close();
      await webhooks.close();
      await poster.close();
      await endpoint.shutdown();
      // The last reports of legs come as these close.
      await observers.close();
      relay.close();
      await stores.close();
      await archive?.close();
    },
  };
}

/** Who looks on at calls from outside: a Homer collector, and one of OpenTelemetry. */
async function openObservers(
  config: Config,
  instance: string,
  log: Log,
  metrics: Metrics,
): Promise<{
  readonly services: Pick<InboundServices, 'isTimed' | 'onSipMessage' | 'traceparent'>;
  readonly onRtcp: MediaServiceOptions['onRtcp'];
  readonly traces: TraceExporter | null;
  close(): Promise<void>;
}> {
  const { telemetry, hep } = config;
  const homer =
    hep.address === null
      ? null
      : new HepSender({
          collector: await resolveHostPort(hep.address),
          captureId: hep.capture_id,
          password: hep.password,
          ownAddress: config.public_address ?? config.bind_address,
          counts: metrics,
          log,
        });
  const ratio = telemetry.sample_ratio;
  const traces =
    telemetry.otlp_url === null
      ? null
      : await openTraceExporter({
          url: telemetry.otlp_url,
          ratio,
          instance,
          onSpans: (outcome, spans) => metrics.count('trunkline_trace_spans_total', { outcome }, spans),
          log,
        });
  return {
    services: {
      isTimed: traces !== null,
      ...(homer === null ? {} : { onSipMessage: (message) => homer.send(message) }),
      ...(traces === null ? {} : { traceparent: (callId: string) => traceparentOf(callId, ratio) }),
    },
    onRtcp: homer === null ? undefined : (seen) => homer.sendRtcp(seen),
    traces,
    close: async () => {
      homer?.close();
      await traces?.close();
    },
  };
}

/** A webhook's delivery is named by its call, and uses the trace of the call. */
function tracedPost(poster: Poster, { telemetry }: Config): WebhookSenderParts['post'] {
  if (telemetry.otlp_url === null) return (...given) => poster.post(...given);
  return (url, body, headers, aborted) => {
    const traceparent = traceparentOf(headers['webhook-id'] ?? '', telemetry.sample_ratio);
    return poster.post(url, body, { ...headers, traceparent }, aborted);
  };
}

function retrySchedule({ webhooks }: Config): RetrySchedule {
  return { firstMs: webhooks.retry_first_ms, maxMs: webhooks.retry_max_ms, giveUpMs: webhooks.give_up_ms };
}

function inboundOptions(config: Config): InboundOptions {
  const { admission, agents, calls, drachtio, sip, stir } = config;
  return {
    sipHost: drachtio.url === null ? sipHost(config) : sip.host,
    ringingAfterMs: sip.ringing_after_ms,
    maxDurationMs: calls.max_duration_minutes * 60_000,
    mayFallBack: agents.on_failure === 'test-line',
    refusedVerdicts: stir.refuse,
    relayAddress: config.rtpengine.address === null ? (config.public_address ?? config.bind_address) : null,
    calledNumberFrom: sip.called_number_from,
    edge: {
      allowedSources: admission.allowed_sources,
      allowedIdentities: admission.allowed_identities,
      maxCalls: admission.max_calls,
      maxCallsPerSecond: admission.max_calls_per_second,
    },
  };
}

async function agentLimits(config: Config): Promise<AgentConnectionLimits> {
  const { agents } = config;
  return {
    connectTimeoutMs: agents.connect_timeout_ms,
    reconnectGraceMs: agents.reconnect_grace_ms,
    pingIntervalMs: agents.ping_interval_ms,
    maxQueuedSpeechMs: agents.max_queued_speech_ms,
    maxUnsentAudioMs: agents.max_unsent_audio_ms,
    allowPrivate: agents.allow_private,
    caPem: await agentCertificates(config),
  };
}

async function openEndpoint(config: Config, log: Log, onRtcp: MediaServiceOptions['onRtcp']): Promise<MediaService> {
  const { port_min: portMin, port_max: portMax, workers, timeout_ms: mediaTimeoutMs } = config.media;
  const address = config.rtpengine.address === null ? '127.0.0.1' : config.bind_address;
  return createMediaService({ address, portMin, portMax, workers, mediaTimeoutMs, agents: await agentLimits(config), onRtcp }, log);
}

async function openRelay(
  config: Config,
  worker: GatewayWorker,
  instance: string,
  clock: Clock,
  log: Log,
  metrics: Metrics,
): Promise<RelayPool> {
  const { address, ng_port: ngPort, port_min: min, port_max: max, timeout_ms: timeoutMs } = config.rtpengine;
  const nodes =
    address === null
      ? [{ address: '127.0.0.1', port: ngPort }]
      : await Promise.all(address.split(',').map((node) => resolveHostPort(node.trim())));
  const onCommand = countRelayCommands(
    metrics,
    nodes.map((node) => formatHostPort(node.address, node.port)),
  );
  const shared = { instance, clock, log, timeoutMs, onCommand };
  if (address !== null) {
    const [outside, inside] = config.rtpengine.interfaces?.split(',').map((name) => name.trim()) ?? [];
    const interfaces = outside === undefined || inside === undefined ? null : { outside, inside };
    return openRelayPool({ ...shared, nodes, interfaces, own: null });
  }
  return openRelayPool({
    ...shared,
    nodes,
    interfaces: { outside: 'outside', inside: 'inside' },
    // Several workers have it together: none of them may free what it does not know.
    own: { capacity: callsOf({ min, max }, maxOpenFiles() ?? Infinity), isAlone: worker.count === 1 },
  });
}

/** Calls that there is media for. */
function headroomOf(relay: RelayPool, endpoint: MediaService): number {
  return Math.min(relay.headroom() ?? Infinity, endpoint.capacity - endpoint.legs);
}

/** Several workers have the embedded rtpengine's room together: each counts a part of it, so that the sum is right. */
function headroomShare({ count }: GatewayWorker, relay: RelayPool): number {
  return Math.floor((relay.headroom() ?? Infinity) / count);
}

/** What ended calls leave in the data directory. */
function callsDirectory(config: Config): string {
  return join(ensureDataDir(config), 'calls');
}

async function openSpool(config: Config, worker: GatewayWorker, log: Log): Promise<CallSpool | null> {
  try {
    return await CallSpool.open(join(callsDirectory(config), `waiting.${workerName(worker.index)}`));
  } catch (error) {
    log.error({ error: errorText(error) }, 'call.spool.not_opened: while Redis takes nothing, records of calls are lost');
    return null;
  }
}

function openStores(config: Config, instance: string, clock: Clock, log: Log, metrics: Metrics, spool: CallSpool | null): RedisStores {
  const url = config.redis.url ?? `redis://127.0.0.1:${String(config.redis.port)}`;
  const { retention_days: days, trace_retention_days: traceDays, max_stored_mb: maxMb, stale_route_ms: staleRouteMs } = config.calls;
  const batchRetention = { days: config.batches.retention_days, maxEntries: config.batches.max_entries };
  return openRedisStores({
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
    onCommand: countRedisCommands(metrics),
  });
}

async function openApi(
  config: Config,
  clock: Clock,
  log: Log,
  stores: RedisStores,
  relay: RelayPool,
  inbound: Inbound,
  toolRunner: ToolRunner,
  observed: { readonly metrics: Metrics; readonly worker: GatewayWorker },
): Promise<{ readonly server: ApiServer; readonly port: number }> {
  const server = await createApiServer(
    {
      stores,
      clock,
      log,
      check: callDryRun(stores.checkedRoutes, inbound, {
        operator: operatorAgent(config),
        mayFallBack: config.agents.on_failure === 'test-line',
        urlRefusal: (url) => agentUrlRefusal(url, config.agents.allow_private),
      }),
      liveCalls: inbound,
      toolRunner,
      onServed: (served) => countRequest(observed.metrics, served),
      metrics: metricsSource(config, observed),
      readiness: async () => ({
        redis: await isFine(stores.ping()),
        rtpengine: relay.isUp,
        sip_server: inbound.isConnected,
      }),
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
  return { server, port };
}

function metricsSource(config: Config, { metrics, worker }: { readonly metrics: Metrics; readonly worker: GatewayWorker }): MetricsSource {
  const access = { allowedSources: config.metrics.allowed_sources, bearerToken: config.metrics.bearer_token };
  const others = Array.from({ length: worker.count - 1 }, (_, at) => workerName(at + 2));
  const peers = config.drachtio.url === null ? [...others, 'sip-server'] : others;
  return {
    contentType: METRICS_CONTENT_TYPE,
    render: () => gatherMetrics(metrics, config.data_dir, peers),
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

function operatorAgent({ agents: { url, format, bearer_token: bearerToken } }: Config): OperatorAgent {
  return { url, format, bearerToken };
}

function isFine(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

function delay(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(delayMs, resolve));
}
