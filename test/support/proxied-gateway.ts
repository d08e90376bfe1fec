import { RunningGateway } from './gateway.js';
import { NgProxy } from './ng-proxy.js';
import { RunningRtpengine } from './rtpengine.js';

/** The whole product with an rtpengine whose replies a test may keep back: a step of a call then lasts for as long as the test wants. */
export class ProxiedGateway {
  private constructor(
    readonly rtpengine: RunningRtpengine,
    readonly proxy: NgProxy,
    readonly gateway: RunningGateway,
  ) {}

  static async start(relayPorts: number, settings: Readonly<Record<string, string>> = {}): Promise<ProxiedGateway> {
    const rtpengine = await RunningRtpengine.start(relayPorts);
    const proxy = await NgProxy.open(rtpengine.port);
    const gateway = await RunningGateway.start({
      TRUNKLINE_RTPENGINE: `127.0.0.1:${String(proxy.port)}`,
      // What is kept back must not be given up.
      TRUNKLINE_RTPENGINE_TIMEOUT_MS: '30000',
      ...settings,
    });
    return new ProxiedGateway(rtpengine, proxy, gateway);
  }

  async stop(): Promise<void> {
    await this.gateway.destroy();
    this.proxy.close();
    await this.rtpengine.stop();
  }
}
