import { SipServer, type SipServerOptions } from '../../src/sip-server/server.js';
import { silentLog } from '../../src/lib/log.js';
import { DnsNames } from '../../src/sip/transport/dns-names.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { DEFAULT_TIMERS } from '../../src/sip/transaction/timers.js';
import { testCertificates } from './certificates.js';

export const SERVER_LIMITS: SipServerOptions['limits'] = {
  maxHeaders: 200,
  maxHeaderBytes: 16_384,
  maxHeadBytes: 65_536,
  maxBodyBytes: 65_536,
  maxTransactions: 100_000,
  maxConnections: 1_000,
  maxConnectionsPerSource: 1_000,
  maxHandles: null,
  strangerTimeoutMs: 5_000,
  handshakeTimeoutMs: 5_000,
  idleTimeoutMs: 600_000,
  messageTimeoutMs: 5_000,
  maxUnsentBytes: 1 << 20,
  maxUnsentFrameBytes: 1 << 20,
  connectTimeoutMs: 2_000,
  dnsMaxTtlMs: 60_000,
  maxFrameBytes: 262_144,
  maxApplications: 64,
  authenticateTimeoutMs: 5_000,
  maxApplicationDelayMs: 100,
  maxRequestsPerSecondPerSource: 10_000,
  dropAboveFactor: 5,
  scannerUserAgents: ['friendly-scanner', 'sipvicious'],
  scannerAction: 'drop',
  maxDialogs: 10_000,
  maxMemoryMb: 100_000,
};

/** The embedded SIP server on free ports, with TLS, TCP and UDP on. */
export async function startSipServer(overrides: Partial<SipServerOptions> = {}): Promise<SipServer> {
  const { cert, key, ca } = await testCertificates();
  const server = new SipServer({
    bindAddress: '127.0.0.1',
    externalHost: null,
    ports: { tls: 0, tcp: 0, udp: 0 },
    tls: { certificates: [{ cert, key }], minVersion: 'TLSv1.2', ciphers: null, clients: null },
    passClientIdentity: false,
    passTls: false,
    trust: { proxyProtocolFrom: [] },
    outgoingTls: { ca, verify: true, names: [] },
    control: { address: '127.0.0.1', port: 0, secret: 'test-secret' },
    timers: DEFAULT_TIMERS,
    limits: SERVER_LIMITS,
    resolver: new DnsNames(),
    optionsUserAgents: [],
    silenceTimeoutMs: 20_000,
    graceMs: 10_000,
    parkMs: 300_000,
    journal: null,
    cell: null,
    memory: { rss: () => 100 << 20 },
    clock: systemClock,
    log: silentLog,
    ...overrides,
  });
  await server.listen();
  return server;
}
