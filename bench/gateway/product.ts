import { cpus } from 'node:os';
import { RunningGateway } from '../../test/support/gateway.js';
import { childrenOf } from '../../test/support/processes.js';
import { RELAY_PORTS, type Subject } from './subject.js';

/**
 * The whole product as `npm run up` starts it: Redis, rtpengine, SIP server, gateways; the test line answers. Every check is done and
 * every limit counted; those of one source are set so high that one generator is let through.
 */
export async function productSubject(settings: Readonly<Record<string, string>>): Promise<Subject> {
  const product = await RunningGateway.start({
    TRUNKLINE_GATEWAY_WORKERS: String(Math.max(1, cpus().length - 1)),
    TRUNKLINE_MEDIA_PORT_MIN: '20000',
    TRUNKLINE_MEDIA_PORT_MAX: '20199',
    TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: '100000',
    TRUNKLINE_RTPENGINE_PORT_MIN: String(RELAY_PORTS.min),
    TRUNKLINE_RTPENGINE_PORT_MAX: String(RELAY_PORTS.max),
    ...settings,
  });
  return {
    target: { port: product.sipPort, transport: 'TLS', ca: product.ca, messages: 'carrier' },
    processes: () => childrenOf(product.ready.pid),
    own: ['sip-server', 'gateway'],
    close: () => product.destroy(),
  };
}
