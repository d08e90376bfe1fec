import { loadConfig } from '../../src/config/load.js';
import { RunningGateway } from '../../test/support/gateway.js';
import { childrenOf } from '../../test/support/processes.js';
import { RELAY_PORTS, type Subject } from './subject.js';

/**
 * The whole product as `npm run up` starts it: Redis, rtpengine, SIP server, gateways; the test line answers. Its configuration is the
 * default one, but for addresses and ports.
 */
export async function productSubject(settings: Readonly<Record<string, string>>): Promise<Subject> {
  const defaults = loadConfig({ environment: {} });
  const product = await RunningGateway.start({
    // What the tests' gateways have otherwise.
    TRUNKLINE_GATEWAY_WORKERS: 'null',
    TRUNKLINE_ADMISSION_MAX_EVENT_LOOP_DELAY_MS: String(defaults.admission.max_event_loop_delay_ms),
    TRUNKLINE_ADMISSION_MAX_MEDIA_DELAY_MS: String(defaults.admission.max_media_delay_ms),
    TRUNKLINE_ADMISSION_MAX_CPU_PERCENT: String(defaults.admission.max_cpu_percent),
    TRUNKLINE_MEDIA_PORT_MIN: '20000',
    TRUNKLINE_MEDIA_PORT_MAX: '20199',
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
