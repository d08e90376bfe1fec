import type { ConnectionOptions } from 'node:tls';
import { beforeAll } from 'vitest';
import { RunningGateway } from './gateway.js';
import type { NgProxy } from './ng-proxy.js';
import { ProxiedGateway } from './proxied-gateway.js';
import type { RunningRtpengine } from './rtpengine.js';
import { SipPeer } from './sip-peer.js';

type Settings = Readonly<Record<string, string>>;
type LateSettings = Settings | (() => Promise<Settings>);

interface GatewaySite {
  readonly gateway: RunningGateway;
  /** A carrier, connected over TLS. */
  readonly peer: SipPeer;
}

interface ProxiedSite extends GatewaySite {
  readonly rtpengine: RunningRtpengine;
  readonly proxy: NgProxy;
}

/** Starts a gateway and a carrier before the tests of a file, hands them to `take`, and stops both after the tests. */
export function withGateway(take: (site: GatewaySite) => void, settings: LateSettings = {}, tls: ConnectionOptions = {}): void {
  beforeAll(async () => {
    const gateway = await RunningGateway.start(typeof settings === 'function' ? await settings() : settings);
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca, tls);
    take({ gateway, peer });
    return async () => {
      peer.close();
      await gateway.destroy();
    };
  });
}

/** The same behind an rtpengine whose replies a test may keep back. */
export function withProxiedGateway(take: (site: ProxiedSite) => void, settings: Settings = {}): void {
  beforeAll(async () => {
    const proxied = await ProxiedGateway.start(100, settings);
    const { rtpengine, proxy, gateway } = proxied;
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
    take({ rtpengine, proxy, gateway, peer });
    return async () => {
      peer.close();
      await proxied.stop();
    };
  });
}
