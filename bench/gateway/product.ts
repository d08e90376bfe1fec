import { RunningGateway } from '../../test/support/gateway.js';
import { childrenOf } from '../../test/support/processes.js';
import type { LoadTarget } from '../sip-server/generator.js';

/** What is measured: where its SIP is, and its processes by name. */
export interface Subject {
  readonly target: LoadTarget;
  /** Process ids by name; several processes of one name are summed up. */
  readonly processes: () => readonly { readonly name: string; readonly pid: number }[];
  readonly close: () => Promise<void>;
}

/**
 * The whole product as `npm run up` starts it: Redis, rtpengine, SIP server, gateways; the test line answers. Every check is done and
 * every limit counted; those of one source are set so high that one generator is let through.
 */
export async function startProduct(
  settings: Readonly<Record<string, string>> = {},
): Promise<Subject & { readonly product: RunningGateway }> {
  const product = await RunningGateway.start({
    TRUNKLINE_LOG_LEVEL: 'warn',
    TRUNKLINE_SIP_MAX_REQUESTS_PER_SECOND_PER_SOURCE: '100000',
    // A call more is 4 ports more; after a call they rest.
    TRUNKLINE_RTPENGINE_PORT_MIN: '30000',
    TRUNKLINE_RTPENGINE_PORT_MAX: '59999',
    ...settings,
  });
  return {
    product,
    target: { port: product.sipPort, transport: 'TLS', ca: product.ca, messages: 'carrier' },
    processes: () => childrenOf(product.ready.pid),
    close: () => product.destroy(),
  };
}
