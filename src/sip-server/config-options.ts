import type { Config } from '../config/schema.js';
import { DnsNames } from '../sip/transport/dns-names.js';
import { maxOpenFiles } from '../lib/open-files.js';
import { ALLOWED_METHODS } from '../lib/sip-methods.js';
import { systemClock } from '../lib/system-clock.js';
import { sipHost } from '../tls/tls-material.js';
import type { SipServerOptions } from './server.js';

/** For listeners, logs, certificate reloads, DNS, and Node.js itself. */
const HANDLES_KEPT_BACK = 48;
/** A legitimate peer has sent a message by then. */
const STRANGER_TIMEOUT_MS = 5_000;

/** The SIP server's options from the configuration; the rest comes from files or the caller. */
export function configOptions(config: Config): Omit<SipServerOptions, 'tls' | 'outgoingTls' | 'control' | 'journal' | 'cell' | 'log'> {
  const { sip, drachtio, calls } = config;
  const files = maxOpenFiles();
  return {
    bindAddress: config.bind_address,
    externalHost: sipHost(config) === config.bind_address ? null : sipHost(config),
    ports: { tls: sip.tls_port, tcp: sip.tcp_port, udp: sip.udp_port },
    passClientIdentity: sip.pass_client_identity,
    passTls: sip.pass_tls,
    trust: { proxyProtocolFrom: sip.proxy_protocol_from },
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
      maxApplicationDelayMs: sip.max_application_delay_ms,
      maxFrameBytes: drachtio.max_frame_bytes,
      maxUnsentFrameBytes: drachtio.max_unsent_bytes,
      maxApplications: drachtio.max_applications,
      authenticateTimeoutMs: drachtio.authenticate_timeout_ms,
    },
    resolver: new DnsNames(),
    optionsUserAgents: sip.options_user_agents,
    allow: ALLOWED_METHODS,
    silenceTimeoutMs: sip.silence_timeout_ms,
    graceMs: drachtio.grace_ms,
    parkMs: calls.park_ms,
    memory: process.memoryUsage,
    clock: systemClock,
  };
}
