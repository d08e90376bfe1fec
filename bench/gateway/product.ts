import { resolve } from 'node:path';
import { loadConfig } from '../../src/config/load.js';
import { RunningGateway } from '../../test/support/gateway.js';
import { childrenOf } from '../../test/support/processes.js';
import { testCertificates } from '../../test/support/certificates.js';
import type { PlacingOrder } from './carrier.js';
import { relayPorts, type Share, type Subject } from './subject.js';

/**
 * The whole product as `npm run up` starts it: Redis, rtpengine, SIP server, gateways; the test line answers. Its configuration is the
 * default one, but for addresses and ports.
 *
 * @param firstSentence of the test line, which echoes after it; without it a greeting of 11 s
 * @param checkout a directory with a build
 */
export async function productSubject(
  settings: Readonly<Record<string, string>>,
  {
    firstSentence,
    share = 'all',
    checkout = '.',
  }: { readonly firstSentence?: string; readonly share?: Share; readonly checkout?: string } = {},
): Promise<Product> {
  const relay = relayPorts(share);
  const firstMediaPort = share === 'second' ? 20_200 : 20_000;
  const defaults = loadConfig({ environment: {} });
  const environment = {
    // What the tests' gateways have otherwise. A checkout of November 2026 knows no start timeout.
    TRUNKLINE_START_TIMEOUT_MS: undefined,
    TRUNKLINE_GATEWAY_WORKERS: 'null',
    TRUNKLINE_ADMISSION_MAX_EVENT_LOOP_DELAY_MS: String(defaults.admission.max_event_loop_delay_ms),
    TRUNKLINE_ADMISSION_MAX_MEDIA_DELAY_MS: String(defaults.admission.max_media_delay_ms),
    TRUNKLINE_ADMISSION_MAX_CPU_PERCENT: String(defaults.admission.max_cpu_percent),
    TRUNKLINE_ADMISSION_MAX_RELAY_DELAY_MS: String(defaults.admission.max_relay_delay_ms),
    TRUNKLINE_SIP_MAX_APPLICATION_DELAY_MS: String(defaults.sip.max_application_delay_ms),
    TRUNKLINE_MEDIA_PORT_MIN: String(firstMediaPort),
    TRUNKLINE_MEDIA_PORT_MAX: String(firstMediaPort + 199),
    TRUNKLINE_RTPENGINE_PORT_MIN: String(relay.min),
    TRUNKLINE_RTPENGINE_PORT_MAX: String(relay.max),
    ...settings,
  };
  const product = await RunningGateway.start(environment, resolve(checkout, 'dist/cli/main.js'));
  if (firstSentence !== undefined) await product.api('POST', `/v1/agents/${product.ready.agent_id}`, { first_sentence: firstSentence });
  return {
    target: { port: product.sipPort, transport: 'TLS', ca: product.ca, messages: 'carrier' },
    processes: () => childrenOf(product.ready.pid),
    own: ['sip-server', 'gateway'],
    close: () => product.destroy(),
    placing: async (trunkPort) => {
      const { org_id: orgId, api_key: key, http } = product.ready;
      const limits = ['--max-calls-per-second', '10000', '--max-concurrent-calls', '100000', '--max-calls-per-day', '10000000'];
      const allowed = ['--prices', '+49=0.0001', '--callers', FROM, ...limits, '--max-cost-per-day', '1000000'];
      const { code, stderr } = await product.cli('org', 'set-dialling', orgId, ...allowed);
      const directions = [{ type: 'outbound', sip_endpoint: `127.0.0.1:${String(trunkPort)}` }];
      const { status } = await product.api('POST', '/sip/attach', { phone_number: FROM, directions, service: 'sip' });
      if (code !== 0 || status !== 200) throw new Error(`nothing may be dialled: ${stderr}${String(status)}`);
      return { port: Number(new URL(http).port), key, from: FROM };
    },
  };
}

const FROM = '+15550100555';

/** As many requests a minute as the API may get from one key and address: each places a call. */
const REQUESTS = '1000000';

/** Settings under which it may call a carrier on this machine, as often as it can. */
export async function placingSettings(): Promise<Readonly<Record<string, string>>> {
  const { caFile } = await testCertificates();
  return {
    TRUNKLINE_CA_FILE: caFile,
    TRUNKLINE_TRUNKS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE: REQUESTS,
    TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE_PER_ADDRESS: REQUESTS,
    TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE_PER_KEY: REQUESTS,
  };
}

export interface Product extends Subject {
  /** Lets it dial over the trunk at this port; what the API needs for it. */
  readonly placing: (trunkPort: number) => Promise<Pick<PlacingOrder, 'port' | 'key' | 'from'>>;
}
