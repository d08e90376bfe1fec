import { NO_PROVIDERS } from '../../../support/providers.js';
import { expect, it } from 'vitest';
import { callDryRun, type DryRunAgents } from '../../../../src/gateway/wiring/dry-run.js';
import { NO_USAGE } from '../../../../src/gateway/admission/admission.js';
import type { RouteStore } from '../../../../src/gateway/ports/ports.js';
import { offerSdp } from '../../../support/sdp.js';
import { NUMBER, ROUTE } from '../../../support/route.js';

const routes: RouteStore = {
  lookup: () => Promise.resolve({ route: ROUTE, load: NO_USAGE, staleMs: null }),
  release: () => undefined,
  disown: () => undefined,
};
const REFUSED: DryRunAgents = {
  operator: { url: 'ws://127.0.0.1/bot', format: 'twilio', bearerToken: null, providers: NO_PROVIDERS },
  mayFallBack: false,
  urlRefusal: ({ hostname }) => `${hostname} is private`,
};

function check(agents: DryRunAgents, relayAddress: string | null = '192.0.2.1') {
  const edge = { notReady: null, relayAddress, isSourceTrusted: () => true };
  return callDryRun(routes, edge, agents)(ROUTE.org.org_id, { number: NUMBER, sourceIp: '203.0.113.7', sdp: offerSdp() });
}

it('tells of an agent at an address that settings refuse, and of the test line that would stand in', async () => {
  expect(await check(REFUSED)).toMatchObject({
    sip_status: 480,
    reason: 'AGENT_UNAVAILABLE',
    explanation: 'The agent could not be reached. It is not connected: 127.0.0.1 is private.',
  });
  expect(await check({ ...REFUSED, mayFallBack: true })).toMatchObject({
    sip_status: 200,
    explanation: 'The call would be answered. The test line would answer, because the agent is not connected: 127.0.0.1 is private.',
  });
  const fine = { ...REFUSED, urlRefusal: () => null };
  expect((await check(fine)).explanation).toBe('The call would be answered.');
  expect((await check(fine, null)).explanation).toContain('Not checked, because unknown: whether the media relay');
});
