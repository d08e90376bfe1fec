import { OPERATOR } from '../../../support/providers.js';
import { expect, it } from 'vitest';
import { callDryRun, type DryRunAgents } from '../../../../src/gateway/wiring/dry-run.js';
import { settingWarnings } from '../../../../src/gateway/api/schemas/agent-rules.js';
import { NO_TUNING } from '../../../../src/gateway/model/provider.js';
import type { AgentSettings } from '../../../../src/gateway/model/agent-record.js';
import type { AgentProviderName } from '../../../../src/gateway/model/provider.js';
import { PROVIDER_FIELDS, type FieldEffect, type ProviderField } from '../../../../src/gateway/model/provider-fields.js';
import { NO_USAGE } from '../../../../src/gateway/admission/admission.js';
import type { RouteStore } from '../../../../src/gateway/ports/ports.js';
import { offerSdp } from '../../../support/sdp.js';
import type { OrgRecord } from '../../../../src/gateway/model/records.js';
import { agentOf } from '../store/store-contract.js';
import { NUMBER, ROUTE } from '../../../support/route.js';

const routes: RouteStore = {
  lookup: () => Promise.resolve({ route: ROUTE, load: NO_USAGE, staleMs: null }),
  release: () => undefined,
  disown: () => undefined,
};
const REFUSED: DryRunAgents = {
  operator: { ...OPERATOR, url: 'ws://127.0.0.1/bot' },
  standIn: null,
  usage: () => Promise.resolve({ sessions: 1, milliseconds: 60_000, tokens: 5 }),
  urlRefusal: ({ hostname }) => `${hostname} is private`,
};

function check(agents: DryRunAgents, relayAddress: string | null = '192.0.2.1') {
  const edge = { notReady: null, relayAddress, isSourceTrusted: () => true };
  return callDryRun(routes, edge, agents)(ROUTE.org.org_id, { number: NUMBER, sourceIp: '203.0.113.7', sdp: offerSdp() });
}

it('the dry run reports an agent at an address that settings refuse, and the test line that would stand in', async () => {
  expect(await check(REFUSED)).toMatchObject({
    sip_status: 480,
    reason: 'AGENT_UNAVAILABLE',
    explanation: 'The agent could not be reached. It is not connected: 127.0.0.1 is private.',
  });
  expect(await check({ ...REFUSED, standIn: 'test-line' })).toMatchObject({
    sip_status: 200,
    explanation: 'The call would be answered. The test line would answer, because the agent is not connected: 127.0.0.1 is private.',
  });
  const fine = { ...REFUSED, urlRefusal: () => null };
  expect((await check(fine)).explanation).toBe('The call would be answered.');
  expect((await check(fine, null)).explanation).toContain('Not checked, because unknown: whether the media relay');
});

const CELLS = (Object.entries(PROVIDER_FIELDS) as [AgentProviderName, Record<ProviderField, FieldEffect>][]).flatMap(([name, fields]) =>
  (Object.entries(fields) as [ProviderField, FieldEffect][]).flatMap(([field, { by }]) => (by === 'none' ? [[name, field] as const] : [])),
);
const SET: Partial<AgentSettings> = {
  interruption_threshold: 60,
  model: 'turbo',
  tools: ['TL-1'],
  transfer_list: { sales: '+15551234567' },
};

it.each([...CELLS, ['deepgram', 'dynamic_data'] as const, ['gemini-live', 'pathway_id'] as const])(
  'an agent at %s gets a warning when it is saved, and from the dry run, that %s has no effect',
  async (name, field) => {
    const provider = {
      name,
      model: null,
      url: name === 'conversation-relay' ? 'wss://app.example/' : null,
      audio: 'g711',
      ...NO_TUNING,
      api_key: 'k',
    } as const;
    const value = { dynamic_data: { guest: 'Ann' }, pathway_id: 'p-1', ...SET }[field as string];
    expect(value).toBeDefined();
    const agent = agentOf(ROUTE.org.org_id, { provider, prompt: 'x', [field]: value });
    const policy = {
      maxDurationMinutes: 60,
      agentUrlRefusal: () => null,
      languages: ['ENG'],
      voices: [],
      isWebhookHost: () => true,
    } as never;
    expect(settingWarnings(agent, policy).map(({ path }) => path)).toContain(field);
    const org = { ...ROUTE.org, operator_keys: true };
    const stored: RouteStore = {
      ...routes,
      lookup: () => Promise.resolve({ route: { ...ROUTE, org, agent }, load: NO_USAGE, staleMs: null }),
    };
    const edge = { notReady: null, relayAddress: '192.0.2.1', isSourceTrusted: () => true };
    const listen = { ...OPERATOR.speech.listen, apiKey: 'dg' };
    const operator = { ...OPERATOR, speech: { ...OPERATOR.speech, listen } };
    const fine = { ...REFUSED, operator, urlRefusal: () => null };
    const result = await callDryRun(stored, edge, fine)(ROUTE.org.org_id, { number: NUMBER, sourceIp: '203.0.113.7', sdp: offerSdp() });
    expect(result.explanation).toContain(field);
  },
);

it.each([
  ['ws://example.com/', true],
  ['ws://bot:8080/', true],
  ['ws://10.0.0.1/', false],
  ['ws://localhost:8080/', false],
  ['wss://example.com/', false],
])('the API warns when an agent at %s is saved that only its name decides whether it is connected without TLS: %s', (url, isWarned) => {
  const stream = { url, format: 'twilio', bearer_token: null } as const;
  const policy = { maxDurationMinutes: 60, agentUrlRefusal: () => null } as never;
  const notes = settingWarnings(agentOf(ROUTE.org.org_id, { stream }), policy).filter(({ path }) => path === 'stream.url');
  expect(notes.map(({ message }) => message)).toEqual(isWarned ? [expect.stringContaining('its name has a private address')] : []);
});

it.each([
  [{ max_provider_sessions: 1 }, 'ORG_SESSION_LIMIT'],
  [{ max_provider_minutes_per_day: 1 }, 'ORG_MINUTE_LIMIT'],
  [{ max_provider_tokens_per_day: 5 }, 'ORG_TOKEN_LIMIT'],
  [{ max_provider_sessions: 2, max_provider_minutes_per_day: 2, max_provider_tokens_per_day: 6 }, null],
] as const)('the dry run reports a limit on providers: %j', async (limits: Partial<OrgRecord>, reason) => {
  const provider = { name: 'deepgram', model: null, url: null, audio: 'g711', api_key: 'k', ...NO_TUNING } as const;
  const route = { ...ROUTE, org: { ...ROUTE.org, ...limits }, agent: agentOf(ROUTE.org.org_id, { provider }) };
  const limited = { lookup: () => Promise.resolve({ route, load: NO_USAGE, staleMs: null }) };
  const edge = { notReady: null, relayAddress: '192.0.2.1', isSourceTrusted: () => true };
  const fine = { ...REFUSED, urlRefusal: () => null };
  const result = await callDryRun(limited, edge, fine)(ROUTE.org.org_id, { number: NUMBER, sourceIp: '203.0.113.7', sdp: offerSdp() });
  expect([result.reason, result.sip_status]).toEqual([reason, reason === null ? 200 : 486]);
});
