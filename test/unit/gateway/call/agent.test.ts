import { OPERATOR as PLAIN } from '../../../support/providers.js';
import { describe, expect, it } from 'vitest';
import type { AgentDescription } from '../../../../src/gateway/model/agent.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import type { ProviderKeys } from '../../../../src/gateway/model/provider.js';
import type { ToolDefinition } from '../../../../src/gateway/model/tool-definition.js';
import { describeAgent, type CallFactsForAgent, type OperatorAgent } from '../../../../src/gateway/call/agent.js';
import { callerIdentity } from '../../../../src/gateway/admission/parties.js';
import { NUMBER, ROUTE } from '../../../support/route.js';
import { TOOL } from '../../../support/tool.js';

const CALL_ID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const ORG_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const NO_OPERATOR = PLAIN;
const OPERATOR: OperatorAgent = { ...PLAIN, url: 'wss://operator.example/bot', bearerToken: 'operator-token' };
const STREAM = { url: 'wss://customer.example/bot', format: 'pcm16-8000', bearer_token: null } as const;

const HEADERS: Readonly<Record<string, string>> = {
  From: '"Ann" <sip:+15550100200@carrier>;tag=1',
  'X-Account': '7',
  'P-Asserted-Identity': '<sip:+15550100200@carrier>',
};

function call(settings: Partial<AgentRecord> | null, headers = HEADERS, tools: readonly ToolDefinition[] = []): CallFactsForAgent {
  const base = { ...DEFAULT_AGENT_SETTINGS, agent_id: 'agent-1', org_id: ORG_ID, name: '', created_at: '', updated_at: '' };
  const agent = settings === null ? null : { ...base, ...settings };
  const route = { ...ROUTE, org: { ...ROUTE.org, org_id: ORG_ID, twilio_token: 'signing-key' }, agent };
  const caller = callerIdentity({ get: (name) => headers[name], names: Object.keys(headers) });
  const before = { resumed: 0, conversation: [], marks: [], unheardSinceMs: null };
  return { callId: CALL_ID, to: NUMBER, caller, identity: null, route, tools, codec: null, ...before };
}

function stream(agent: AgentDescription): Extract<AgentDescription, { kind: 'stream' }> {
  if (agent.kind !== 'stream') throw new Error('the agent is the test line');
  return agent;
}

describe('who talks to the caller', () => {
  it.each([
    ['no agent, no default of the operator', NO_OPERATOR, null, 'test-line'],
    ['no agent', OPERATOR, null, OPERATOR.url],
    ['an agent that says nothing', OPERATOR, { stream: null }, OPERATOR.url],
    ['an agent that says nothing, no default', NO_OPERATOR, { stream: null }, 'test-line'],
    ['an agent that wants the test line', OPERATOR, { stream: 'test-line' }, 'test-line'],
    ['an agent with an address of its own', OPERATOR, { stream: STREAM }, STREAM.url],
  ] as const)('%s', (_what, operator, settings, expected) => {
    const { agent } = describeAgent(operator, call(settings), 'own');
    expect(agent.kind === 'stream' ? agent.url : agent.kind).toBe(expected);
  });

  it('is the test line with the agent’s sentence when it stands in', () => {
    const { agent } = describeAgent(OPERATOR, call({ stream: STREAM, first_sentence: 'Hello.', language: 'GER' }), 'test-line');
    expect(agent).toEqual({ kind: 'test-line', firstSentence: 'Hello.', language: 'GER', voice: null, pronunciationGuide: [] });
  });

  it('never sends the operator’s token to a customer’s address', () => {
    expect(stream(describeAgent(OPERATOR, call(null), 'own').agent).bearerToken).toBe('operator-token');
    expect(stream(describeAgent(OPERATOR, call({ stream: STREAM }), 'own').agent).bearerToken).toBeNull();
    const own = { ...STREAM, bearer_token: 'own' };
    expect(stream(describeAgent(OPERATOR, call({ stream: own }), 'own').agent).bearerToken).toBe('own');
  });

  it('has the ids in the form of Twilio’s, the key of the organization and the patience of the agent', () => {
    const agent = stream(describeAgent(OPERATOR, call({ stream: STREAM, interruption_threshold: 180 }), 'own').agent);
    expect(agent).toMatchObject({
      accountSid: 'AC7c9e6679742540de944be07fc1f90ae7',
      callSid: 'CA0f8fad5bd9cb469fa16570867728950e',
      signatureKey: 'signing-key',
      endOfSpeechMs: 180,
      mayPress: true,
      format: 'pcm16-8000',
    });
  });
});

describe('what an agent is told', () => {
  const told = (facts: CallFactsForAgent): Readonly<Record<string, string>> =>
    stream(describeAgent(OPERATOR, facts, 'own').agent).customParameters;

  it('is what the signature over the caller is worth, where one was verified', () => {
    const identity = { verdict: 'valid', detail: null, attestation: 'A', origid: null, signer: null } as const;
    expect(told({ ...call(null), identity })).toMatchObject({ stir_verdict: 'valid', stir_attestation: 'A' });
    expect(Object.keys(told(call(null))).filter((name) => name.startsWith('stir'))).toEqual([]);
  });

  it('is the call and the settings, as texts, without what is not set', () => {
    expect(told(call({ prompt: 'Be kind.', metadata: { a: 1 }, transfer_list: ['+15550100300'] }))).toEqual({
      from: '+15550100200',
      to: NUMBER,
      from_number: '+15550100200',
      to_number: NUMBER,
      call_id: CALL_ID,
      org_id: ORG_ID,
      agent_id: 'agent-1',
      caller_name: 'Ann',
      prompt: 'Be kind.',
      language: 'ENG',
      model: 'base',
      max_duration: '30',
      interruption_threshold: '100',
      metadata: '{"a":1}',
      transfer_list: '["+15550100300"]',
      sip_headers: '{"headers":{"x-account":"7"},"user_to_user":null,"asserted":["sip:+15550100200@carrier"],"diversions":[],"history":[]}',
    });
    expect(told(call(null))['agent_id']).toBe('');
  });

  it('knows that an earlier process of the gateway had the call', () => {
    const before = { resumed: 2, marks: ['a'], unheardSinceMs: 1_000 };
    const { agent } = describeAgent(OPERATOR, { ...call({}), ...before }, 'own');
    expect(stream(agent)).toMatchObject({ marks: ['a'], unheardSinceMs: 1_000, customParameters: { reconnects: '2' } });
  });

  it('has the texts of the metadata under their own names, where those are free: 50 of 500 bytes', () => {
    const metadata = {
      ...{ FirstName: 'Ann', empty: '', age: 7, nested: { a: 'b' } },
      ...{ from: 'me', prompt: 'no', stir_verdict: 'valid', reconnects: '9', tools: 'none' },
      ...{ fits: 'x'.repeat(496), tooLong: 'x'.repeat(494) },
    };
    const parameters = told(call({ metadata }));
    expect(parameters).toMatchObject({ FirstName: 'Ann', empty: '', fits: metadata.fits, from: '+15550100200' });
    expect(JSON.parse(parameters['metadata'] ?? '')).toEqual(metadata);
    for (const name of ['age', 'nested', 'prompt', 'stir_verdict', 'reconnects', 'tools', 'tooLong'])
      expect(parameters).not.toHaveProperty(name);
    const many = told(call({ metadata: Object.fromEntries(Array.from({ length: 60 }, (_, serial) => [`n${String(serial)}`, 'x'])) }));
    expect(Object.keys(many).filter((name) => /^n\d+$/.test(name))).toHaveLength(50);
  });

  it('has of the tools what the agent needs to choose one, and neither address nor keys', () => {
    const { tools } = told(call({}, HEADERS, [TOOL]));
    expect(JSON.parse(tools ?? '')).toEqual([{ name: 'book', description: 'Books a table.', input_schema: TOOL.input_schema }]);
  });

  it('[3323] has nothing of a caller who wants to stay unknown', () => {
    const all = JSON.stringify(told(call({}, { ...HEADERS, Privacy: 'user;id' })));
    expect(all).toContain('anonymous');
    expect(all).not.toContain('15550100200');
    expect(all).not.toContain('Ann');
  });

  it('leaves out the largest of what it may, until 64 KiB are enough', () => {
    const facts = call({ prompt: 'p'.repeat(40_000), metadata: { long: 'é'.repeat(20_000) }, dynamic_data: { short: 'd'.repeat(20_000) } });
    const { agent, dropped } = describeAgent(OPERATOR, facts, 'own');
    const { customParameters } = stream(agent);
    expect(dropped).toEqual(['metadata']);
    expect(Object.keys(customParameters)).toEqual(expect.arrayContaining(['from', 'call_id', 'prompt', 'dynamic_data']));
    expect(Buffer.byteLength(JSON.stringify(customParameters))).toBeLessThan(65_536);
  });
});

describe('who says what a provider cannot say word for word', () => {
  const own = { model: null, url: null, audio: 'g711', api_key: 'own' } as const;
  const ALL = { deepgram: 'dg', elevenlabs: 'el', 'openai-realtime': 'sk' };
  const speaker = (provider: Partial<AgentRecord['provider']>, keys: ProviderKeys) => {
    const facts = call({ provider: { ...own, ...provider } as AgentRecord['provider'], voice: 'marin' });
    const { agent } = describeAgent(
      OPERATOR,
      { ...facts, route: { ...facts.route!, org: { ...facts.route!.org, provider_keys: keys } } },
      'own',
    );
    if (agent.kind !== 'provider') throw new Error(agent.kind);
    return agent.speech === null ? null : [agent.speech.voice, agent.speech.services[agent.speech.voice.provider].apiKey];
  };

  it.each([
    ['openai-realtime', ALL, [{ provider: 'openai', voice: 'marin' }, 'sk']],
    ['elevenlabs', ALL, [{ provider: 'elevenlabs', voice: 'marin' }, 'el']],
    ['elevenlabs', { deepgram: 'dg' }, null],
    ['gemini-live', ALL, [{ provider: 'deepgram', voice: null }, 'dg']],
    ['gemini-live', { 'openai-realtime': 'sk' }, [{ provider: 'openai', voice: null }, 'sk']],
    ['gemini-live', {}, null],
    ['deepgram', ALL, null],
  ] as const)('%s with the keys %j: %j', (name, keys, expected) => {
    expect(speaker({ name }, keys)).toEqual(expected);
  });

  it.each(['openai-realtime', 'elevenlabs', 'gemini-live'] as const)('nobody for an agent at another address (%s)', (name) => {
    expect(speaker({ name, url: 'wss://own.example/' }, ALL)).toBeNull();
  });
});
