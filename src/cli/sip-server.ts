import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { httpAddress, type Config } from '../config/schema.js';
import { SipServer } from '../sip-server/server.js';
import { createLogger } from '../observability/log/logger.js';
import { controlSecret, ensureDataDir } from '../config/data-dir.js';
import { openMetricsServer } from '../observability/metrics/metrics-server.js';
import { serveMetrics } from '../observability/metrics/peers.js';
import { watchProcess } from '../observability/metrics/process-metrics.js';
import { Metrics } from '../observability/metrics/registry.js';
import { collectSipServer } from '../sip-server/sip-server-metrics.js';
import { maxOpenFiles } from '../lib/open-files.js';
import { residentMb } from '../observability/metrics/resident-memory.js';
import { systemClock } from '../lib/system-clock.js';
import { serverTls, sipHost } from '../tls/tls-material.js';
import { TlsReloader } from '../tls/tls-reloader.js';
import { DnsNames } from '../sip/transport/dns-names.js';
import { onHangUp, onStopSignal, tellReady } from './process.js';

/** For listeners, logs, certificates that are read anew, names that are looked up, and what Node.js itself has open. */
const HANDLES_KEPT_BACK = 48;
/** A peer that connects in order to speak has spoken by then. */
const STRANGER_TIMEOUT_MS = 5_000;

/** `trunkline sip-server`: the embedded SIP server in the foreground. */
export async function runSipServer(config: Config): Promise<void> {
  const log = createLogger('sip-server', config.log.level);
  const { sip, drachtio } = config;
  const tls = sip.tls_port === null ? null : await serverTls(config);
  const files = maxOpenFiles();
  const server = new SipServer({
    bindAddress: config.bind_address,
    externalHost: sipHost(config) === config.bind_address ? null : sipHost(config),
    ports: { tls: sip.tls_port, tcp: sip.tcp_port, udp: sip.udp_port },
    tls: tls?.material ?? null,
    passClientIdentity: sip.pass_client_identity,
    passTls: sip.pass_tls,
    trust: { proxyProtocolFrom: sip.proxy_protocol_from },
    outgoingTls: { ca: tls?.caFile == null ? null : await readFile(resolve(tls.caFile), 'utf8'), verify: sip.verify_peers },
    control: { address: '127.0.0.1', port: drachtio.port, secret: controlSecret(config) },
    timers: { t1Ms: sip.t1_ms, t2Ms: sip.t2_ms, t4Ms: sip.t4_ms },
    limits: {
      maxHeaders: sip.max_headers,
      maxHeaderBytes: sip.max_header_bytes,
      maxHeadBytes: sip.max_head_bytes,
      maxBodyBytes: sip.max_body_bytes,
      maxTransactions: sip.max_transactions,
      maxConnections: sip.max_connections,
      maxConnectionsPerSource: sip.max_connections_per_source,
      maxHandles: files === null ? null : Math.max(1, files - HANDLES_KEPT_BACK - drachtio.max_applications),
      strangerTimeoutMs: STRANGER_TIMEOUT_MS,
      handshakeTimeoutMs: sip.handshake_timeout_ms,
      messageTimeoutMs: sip.message_timeout_ms,
      idleTimeoutMs: sip.idle_timeout_ms,
      maxUnsentBytes: sip.max_unsent_bytes,
      connectTimeoutMs: sip.connect_timeout_ms,
      dnsMaxTtlMs: sip.dns_max_ttl_ms,
      maxRequestsPerSecondPerSource: sip.max_requests_per_second_per_source,
      dropAboveFactor: sip.drop_above_factor,
      scannerUserAgents: sip.scanner_user_agents,
      scannerAction: sip.scanner_action,
      maxDialogs: sip.max_dialogs,
      maxMemoryMb: sip.max_memory_mb,
      maxFrameBytes: drachtio.max_frame_bytes,
      maxUnsentFrameBytes: drachtio.max_unsent_bytes,
      maxApplications: drachtio.max_applications,
      authenticateTimeoutMs: drachtio.authenticate_timeout_ms,
    },
    resolver: new DnsNames(),
    optionsUserAgents: sip.options_user_agents,
    silenceTimeoutMs: sip.silence_timeout_ms,
    graceMs: drachtio.grace_ms,
    residentMb,
    clock: systemClock,
    log,
  });
  await server.listen();
  const metrics = new Metrics('sip-server');
  let certificates = tls?.facts ?? [];
  collectSipServer(metrics, server, () => certificates);
  watchProcess(metrics, systemClock);
  const unserve = serveMetrics(metrics, ensureDataDir(config), log);
  const metricsServer = await openOwnMetrics(config, metrics);
  if (sip.tcp_port !== null || sip.udp_port !== null) {
    log.warn({ hint: 'keys of the media encryption travel in clear over TCP and UDP' }, 'sip.transport.cleartext');
  }
  log.info({ tls: sip.tls_port, tcp: sip.tcp_port, udp: sip.udp_port, control: drachtio.port }, 'sip_server.ready');
  const reloader =
    tls === null
      ? undefined
      : new TlsReloader(
          {
            read: () => serverTls(config),
            apply: (material, facts) => {
              server.setTls(material);
              certificates = facts;
            },
            clock: systemClock,
            log,
          },
          tls,
        );
  const stop = onStopSignal(log, () => {
    reloader?.close();
    metricsServer?.close();
    unserve();
    return server.close();
  });
  onHangUp(() => void reloader?.reload(), stop);
  tellReady({});
}

/** For Prometheus, where no gateway of this machine shows them. */
function openOwnMetrics(config: Config, own: Metrics): Promise<{ close(): void }> | null {
  const { metrics } = config;
  if (metrics.sip_server_port === null) return null;
  const access = { allowedSources: metrics.allowed_sources, bearerToken: metrics.bearer_token };
  return openMetricsServer(own, { host: httpAddress(config), port: metrics.sip_server_port }, access);
}
