import type { SipServer, SipServerOptions } from '../../src/sip-server/server.js';
import { until } from './carrier-call.js';
import { testCertificates } from './certificates.js';
import { SipPeer } from './sip-peer.js';
import { startSipServer } from './sip-server.js';
import { srfApplication, type SrfApplication } from './srf.js';
import { UdpPeer } from './udp-peer.js';
import { VirtualClock } from './virtual-clock.js';

/** The longest that a transaction lingers, and more: 64·T1, and timer I behind timer H. */
const LINGERS_MS = 40_000;

/**
 * A SIP server whose time passes only when a test says so, its drachtio-srf applications and its peers on real sockets; `settled` proves that
 * nothing is left of a test.
 */
export class SipSite {
  readonly #peers: { close(): void }[] = [];
  readonly #applications = new Set<SrfApplication>();

  private constructor(
    readonly server: SipServer,
    private readonly clock: VirtualClock,
  ) {}

  static async start(options: Partial<SipServerOptions> = {}): Promise<SipSite> {
    const clock = new VirtualClock();
    return new SipSite(await startSipServer({ clock, ...options }), clock);
  }

  /** Time of the server's. */
  pass(milliseconds: number): Promise<void> {
    return this.clock.advanceAsync(milliseconds);
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
    await this.#isLeft(nothing);
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
    await this.pass(LINGERS_MS);
    await this.#isLeft(nothing);
    await this.server.close();
  }

  /** Its counts become these. */
  async #isLeft(counts: Partial<SipServer['counts']>): Promise<void> {
    const differing = (): string[] =>
      Object.entries(counts).flatMap(([name, count]) => {
        const found = this.server.counts[name];
        return found === count ? [] : [`${String(found)} ${name}`];
      });
    await until(() => differing().length === 0, 'something is left').catch((error: unknown) => {
      throw new Error(`left: ${differing().join(', ')}`, { cause: error });
    });
  }

  #kept<T extends { close(): void }>(peer: T): T {
    this.#peers.push(peer);
    return peer;
  }
}
