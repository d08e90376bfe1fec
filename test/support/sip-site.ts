import { expect, vi } from 'vitest';
import type { SipServer, SipServerOptions } from '../../src/sip-server/server.js';
import type { Clock } from '../../src/lib/clock.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { testCertificates } from './certificates.js';
import { SipPeer } from './sip-peer.js';
import { SERVER_LIMITS, startSipServer } from './sip-server.js';
import { srfApplication, type SrfApplication } from './srf.js';
import { UdpPeer } from './udp-peer.js';

/** Ten of its seconds are one of ours: 64·T1 lasts 3.2 s, and so does timer D. */
const SPEED = 10;
const FAST_CLOCK: Clock = {
  nowMs: () => systemClock.nowMs() * SPEED,
  wallMs: () => systemClock.wallMs(),
  setTimer: (delayMs, fire) => systemClock.setTimer(delayMs / SPEED, fire),
};
/** What real sockets need keeps its real length. */
const LIMITS = {
  ...SERVER_LIMITS,
  handshakeTimeoutMs: SERVER_LIMITS.handshakeTimeoutMs * SPEED,
  messageTimeoutMs: SERVER_LIMITS.messageTimeoutMs * SPEED,
  connectTimeoutMs: SERVER_LIMITS.connectTimeoutMs * SPEED,
  authenticateTimeoutMs: SERVER_LIMITS.authenticateTimeoutMs * SPEED,
};

/** A SIP server whose time runs fast, its drachtio-srf applications and its peers; `settled` proves that nothing is left of a test. */
export class SipSite {
  readonly #peers: { close(): void }[] = [];
  readonly #applications = new Set<SrfApplication>();

  private constructor(readonly server: SipServer) {}

  static async start(options: Partial<SipServerOptions> = {}): Promise<SipSite> {
    return new SipSite(await startSipServer({ clock: FAST_CLOCK, limits: LIMITS, ...options }));
  }

  async application(prepare?: (srf: SrfApplication) => void, tags?: readonly string[]): Promise<SrfApplication> {
    const srf = await srfApplication(this.server.controlPort, prepare, tags);
    this.#applications.add(srf);
    return srf;
  }

  /** The application goes (drachtio-srf throws when it is told to twice). */
  leave(srf: SrfApplication): void {
    this.#applications.delete(srf);
    srf.disconnect();
  }

  async udp(): Promise<UdpPeer> {
    return this.#kept(await UdpPeer.open(this.server.portOf('UDP')!));
  }

  async tcp(): Promise<SipPeer> {
    return this.#kept(await SipPeer.connectTcp(this.server.portOf('TCP')!));
  }

  async tls(): Promise<SipPeer> {
    return this.#kept(await SipPeer.connect(this.server.portOf('TLS')!, (await testCertificates()).ca));
  }

  /** No request, call or proxied request is left: at the end of each test. Its peers are gone then. */
  async settled(): Promise<void> {
    const nothing = { pending: 0, calls: 0, outgoing: 0, proxied: 0 };
    await vi.waitFor(() => expect(this.server.counts).toMatchObject(nothing), { timeout: 5_000, interval: 10 });
    for (const peer of this.#peers.splice(0)) peer.close();
  }

  /** At the end of all tests: the transactions that linger (RFC 6026) and every timer have gone too. */
  async close(): Promise<void> {
    for (const application of this.#applications) this.leave(application);
    const nothing = {
      pending: 0,
      calls: 0,
      outgoing: 0,
      proxied: 0,
      transactions: 0,
      timers: 0,
      connections: 0,
      dialogs: 0,
      applications: 0,
    };
    await vi.waitFor(() => expect(this.server.counts).toEqual(nothing), { timeout: 8_000, interval: 50 });
    await this.server.close();
  }

  #kept<T extends { close(): void }>(peer: T): T {
    this.#peers.push(peer);
    return peer;
  }
}
