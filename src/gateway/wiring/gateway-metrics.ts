import type { TrunkWatch } from '../drachtio/trunk-watch.js';
import type { EndpointCounters } from '../media/endpoint.js';
import type { MediaService } from '../media-thread/media-service.js';
import type { Inbound } from '../drachtio/inbound.js';
import type { CallRecord, StreamQuality } from '../model/call-record.js';
import { REASONS, type Reason } from '../model/reasons.js';
import { CREDENTIALS_VERDICTS } from '../admission/challenge.js';
import { IDENTITY_VERDICTS } from '../model/verified-identity.js';
import { subscribe } from '../ports/events.js';
import type { RelayPool } from '../relay/pool.js';
import type { RedisStores } from '../store/redis/redis-stores.js';
import type { MetricCounts, MetricFigures } from '../../observability/metrics/catalog.js';
import type { Metrics } from '../../observability/metrics/registry.js';

// Figures of a gateway for Prometheus: what it publishes is counted, the rest is read when somebody asks.

const seconds = (ms: number): number => ms / 1_000;
const flag = (isSo: boolean): number => (isSo ? 1 : 0);

/** Begins every series that a gateway can have, at 0. */
export function beginGateway(metrics: Metrics): void {
  metrics.begin();
  for (const [reason, { fault }] of Object.entries(REASONS)) metrics.begin({ reason, fault });
  for (const credentials of CREDENTIALS_VERDICTS) metrics.begin({ credentials });
  for (const verdict of IDENTITY_VERDICTS) metrics.begin({ verdict });
}

/**
 * Counts what the gateway publishes.
 * @returns ends it
 */
export function countEvents(counts: Metrics): () => void {
  const ends = [
    subscribe('call.answered', ({ tookMs }) => counts.observe('trunkline_call_answer_seconds', {}, seconds(tookMs))),
    subscribe('call.challenged', ({ verdict }) => counts.count('trunkline_calls_challenged_total', { credentials: verdict })),
    subscribe('call.ended', ({ record }) => countCall(counts, record)),
    subscribe('agent.connect', ({ agent, isConnected, tookMs }) => {
      counts.count('trunkline_agent_connects_total', { agent, outcome: isConnected ? 'connected' : 'failed' });
      if (isConnected) counts.observe('trunkline_agent_connect_seconds', { agent }, seconds(tookMs));
    }),
    subscribe('tool.run', ({ outcome, tookMs }) => {
      counts.count('trunkline_tool_calls_total', { outcome });
      counts.observe('trunkline_tool_seconds', {}, seconds(tookMs));
    }),
    subscribe('webhook.attempt', ({ outcome, tookMs }) => {
      counts.count('trunkline_webhook_attempts_total', { outcome });
      counts.observe('trunkline_webhook_seconds', {}, seconds(tookMs));
    }),
    subscribe('webhook.dead_letter', () => counts.count('trunkline_webhook_dead_letters_total', {})),
    subscribe('api.request', ({ method, route, status, durationMs }) => {
      const labels = { method: HTTP_METHODS.has(method) ? method : 'other', route: route ?? 'none' };
      counts.count('trunkline_api_requests_total', { ...labels, status: `${String(Math.floor(status / 100))}xx` });
      counts.observe('trunkline_api_request_seconds', {}, seconds(durationMs));
    }),
    subscribe('redis.command', ({ tookMs, isAnswered }) =>
      counts.observe('trunkline_redis_command_seconds', { outcome: isAnswered ? 'ok' : 'failed' }, seconds(tookMs)),
    ),
    subscribe('rtpengine.command', ({ node, command, tookMs, failure }) => {
      if (failure === null) counts.observe('trunkline_relay_command_seconds', { node, command }, seconds(tookMs));
      else counts.count('trunkline_relay_command_failures_total', { node, command, cause: failure });
    }),
  ];
  return () => ends.forEach((end) => end());
}

const HTTP_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** One call that ended, from its record: nothing of it is computed while it lasts. */
function countCall(counts: MetricCounts, record: CallRecord): void {
  const { reason, answered_at, timings, turns, quality, identity, stale_route, resumed, summed_calls: summed } = record;
  const { fault } = REASONS[reason as Reason];
  counts.count(answered_at === null ? 'trunkline_calls_refused_total' : 'trunkline_calls_ended_total', { reason, fault }, summed ?? 1);
  if (timings.first_audio_ms !== null) counts.observe('trunkline_call_first_audio_seconds', {}, seconds(timings.first_audio_ms));
  for (const delayMs of turns.delays_ms) counts.observe('trunkline_call_turn_seconds', {}, seconds(delayMs));
  if (timings.talk_ms !== null) counts.observe('trunkline_call_talk_seconds', {}, seconds(timings.talk_ms));
  if (identity !== null)
    counts.count('trunkline_calls_identity_total', { verdict: identity.verdict, attestation: identity.attestation ?? 'none' });
  countQuality(counts, 'from_carrier', quality.relay?.from_carrier);
  countQuality(counts, 'to_carrier', quality.relay?.from_agent);
  if (stale_route) counts.count('trunkline_calls_stale_route_total', {});
  if (resumed > 0) counts.count('trunkline_calls_resumed_total', {});
}

function countQuality(counts: MetricCounts, direction: string, heard: StreamQuality | undefined): void {
  if (heard === undefined) return;
  const { packets, lost, jitter_ms: jitterMs, mos } = heard;
  if (mos !== null) counts.observe('trunkline_call_mos', { direction }, mos);
  // A packet that came twice is counted against the lost ones (RFC 3550 §6.4.1).
  if (lost !== null && packets > 0)
    counts.observe('trunkline_call_lost_ratio', { direction }, Math.max(0, lost) / (packets + Math.max(0, lost)));
  if (jitterMs !== null) counts.observe('trunkline_call_jitter_seconds', { direction }, seconds(jitterMs));
}

export interface GatewayParts {
  readonly inbound: Inbound;
  readonly relay: RelayPool;
  readonly endpoint: MediaService;
  readonly stores: RedisStores;
  readonly trunks: Pick<TrunkWatch, 'count'>;
  /** Calls that there is still media for. */
  readonly headroom: () => number;
  /** The first process on a machine reports the shared metrics. */
  readonly isFirst: boolean;
}

export function collectGateway(metrics: Metrics, parts: GatewayParts): void {
  const { inbound, trunks, relay, endpoint, stores, headroom, isFirst } = parts;
  metrics.collect((figures) => {
    figures.set('trunkline_calls_in_progress', {}, inbound.callCount);
    figures.set('trunkline_calls_begun_total', {}, inbound.begunCount);
    figures.set('trunkline_call_room', {}, inbound.isRetired ? 0 : Math.max(0, headroom()));
    figures.set('trunkline_taking_calls', {}, flag(inbound.isConnected && inbound.notReady === null && !inbound.isRetired));
    figures.set('trunkline_sip_server_connected', {}, flag(inbound.isConnected));
    const { isUp, connects, waitingRecords, evicted, slots, snapshots } = stores.figures;
    figures.set('trunkline_redis_up', {}, flag(isUp));
    figures.set('trunkline_redis_connects_total', {}, connects);
    figures.set('trunkline_redis_waiting_records', {}, waitingRecords);
    figures.set('trunkline_stored_calls_evicted_total', { kind: 'trace' }, evicted.trace);
    figures.set('trunkline_stored_calls_evicted_total', { kind: 'record' }, evicted.record);
    figures.set('trunkline_call_places', {}, slots);
    figures.set('trunkline_call_snapshots', {}, snapshots);
    for (const state of ['up', 'down'] as const) if (isFirst) figures.set('trunkline_trunks', { state }, trunks.count(state));
    for (const { name: node, isAlive, calls, outstanding } of relay.nodes()) {
      figures.set('trunkline_relay_up', { node }, flag(isAlive));
      figures.set('trunkline_relay_sessions', { node }, calls);
      figures.set('trunkline_relay_outstanding_commands', { node }, outstanding);
    }
  });
  metrics.collect(async (figures) => {
    const { workers, kernelDrops, workerRestarts } = await endpoint.counters();
    const { capacity, delays } = endpoint;
    figures.set('trunkline_media_capacity', {}, capacity);
    figures.set('trunkline_media_delay_seconds', {}, seconds(delays.frameMs));
    figures.set('trunkline_media_arrival_delay_seconds', {}, seconds(delays.arrivalMs));
    figures.set('trunkline_media_worker_restarts_total', {}, workerRestarts);
    if (kernelDrops !== null) figures.set('trunkline_media_kernel_drops_total', {}, kernelDrops);
    workers.forEach((counters, index) => counters !== null && setWorker(figures, String(index + 1), counters));
  });
  if (isFirst) {
    metrics.collect(async (figures) => {
      if (inbound.isRetired) return;
      const { refusal, tookMs, usedBytes, maxBytes } = await stores.health();
      figures.set('trunkline_redis_writable', {}, flag(refusal === null));
      figures.set('trunkline_redis_write_seconds', {}, seconds(tookMs));
      if (usedBytes !== null) figures.set('trunkline_redis_memory_bytes', {}, usedBytes);
      if (maxBytes !== null) figures.set('trunkline_redis_memory_limit_bytes', {}, maxBytes);
    });
    metrics.collect(async (figures) => {
      if (inbound.isRetired) return;
      figures.set('trunkline_stored_calls_bytes', {}, await stores.storedCallBytes());
      figures.set('trunkline_webhooks_waiting', {}, await stores.outbox.waiting());
    });
  }
}

function setWorker(figures: MetricFigures, worker: string, counters: EndpointCounters): void {
  figures.set('trunkline_media_legs', { worker }, counters.legs);
  figures.set('trunkline_media_packets_sent_total', { worker }, counters.packetsSent);
  figures.set('trunkline_media_packets_received_total', { worker }, counters.packetsReceived);
  // What came twice is counted against what was lost (RFC 3550 §6.4.1): a counter does not go below zero.
  figures.set('trunkline_media_packets_lost_total', { worker }, Math.max(0, counters.packetsLost));
  figures.set('trunkline_media_packets_late_total', { worker }, counters.packetsLate);
  figures.set('trunkline_media_srtp_failures_total', { worker }, counters.notAuthenticPackets);
  figures.set('trunkline_media_stray_packets_total', { worker, kind: 'stranger' }, counters.strangerPackets);
  figures.set('trunkline_media_stray_packets_total', { worker, kind: 'malformed' }, counters.malformedPackets);
  figures.set('trunkline_media_stray_packets_total', { worker, kind: 'earlier_call' }, counters.earlierCallPackets);
  figures.set('trunkline_media_send_errors_total', { worker }, counters.sendErrors);
  figures.set('trunkline_media_late_frames_total', { worker }, counters.lateFrames);
  figures.set('trunkline_media_pacing_late_seconds', { worker }, seconds(counters.maxLateMs));
  const { reconnects, droppedInboundMs, droppedOutboundMs } = counters.agents;
  figures.set('trunkline_agent_reconnects_total', { worker }, reconnects);
  figures.set('trunkline_agent_dropped_audio_seconds_total', { worker, direction: 'inbound' }, seconds(droppedInboundMs));
  figures.set('trunkline_agent_dropped_audio_seconds_total', { worker, direction: 'outbound' }, seconds(droppedOutboundMs));
}
