import { OPERATOR as PLAIN } from '../../../support/providers.js';
import { describe, expect, it } from 'vitest';
import type { AgentDescription } from '../../../../src/gateway/model/agent.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import { DEFAULT_CONVERSATION } from '../../../../src/gateway/model/conversation.js';
import { accountSidOf } from '../../../../src/gateway/model/twilio-ids.js';
import { NO_TUNING, type AgentProvider, type ProviderKeys } from '../../../../src/gateway/model/provider.js';
import { DEFAULT_INBOUND_OPTIONS, type InboundOptions, type OrgRecord } from '../../../../src/gateway/model/records.js';
import type { ToolDefinition } from '../../../../src/gateway/model/tool-definition.js';
import {
  briefingAgent,
  describeAgent,
  providerKey,
  speechOf,
  voiceApplicationOf,
  type CallFactsForAgent,
  type OperatorAgent,
} from '../../../../src/gateway/call/agent.js';
import { callerIdentity } from '../../../../src/gateway/admission/parties.js';
import { NUMBER, ROUTE } from '../../../support/route.js';
import { TOOL } from '../../../support/tool.js';

const CALL_ID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const ORG_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const ACCOUNT = accountSidOf(ORG_ID);
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
  return { direction: 'inbound', callId: CALL_ID, to: NUMBER, caller, identity: null, route, tools, codec: null, ...before };
}

function inOrg(facts: CallFactsForAgent, org: Partial<OrgRecord>): CallFactsForAgent {
  return { ...facts, route: { ...facts.route!, org: { ...facts.route!.org, ...org } } };
}

function stream(agent: AgentDescription): Extract<AgentDescription, { kind: 'stream' }> {
  if (agent.kind !== 'stream') throw new Error('the agent is the test line');
  return agent;
}

describe('the agent of a call', () => {
  it.each([
    ['without agent and default it is the test line', NO_OPERATOR, null, 'test-line'],
    ['without agent it is the operator’s default', OPERATOR, null, OPERATOR.url],
    ['an agent without a stream leaves it to the default', OPERATOR, { stream: null }, OPERATOR.url],
    ['an agent without a stream and no default is the test line', NO_OPERATOR, { stream: null }, 'test-line'],
    ['an agent may choose the test line', OPERATOR, { stream: 'test-line' }, 'test-line'],
    ['an agent may have an address of its own', OPERATOR, { stream: STREAM }, STREAM.url],
  ] as const)('follows the settings: %s', (_what, operator, settings, expected) => {
    const { agent } = describeAgent(operator, call(settings), 'own');
    expect(agent.kind === 'stream' ? agent.url : agent.kind).toBe(expected);
  });

  it('is the test line with the agent’s sentence when it stands in', () => {
    const { agent } = describeAgent(OPERATOR, call({ stream: STREAM, first_sentence: 'Hello.', language: 'GER' }), 'test-line');
    const line = { firstSentence: 'Hello.', language: 'GER', voice: null, pronunciationGuide: [] };
    expect(agent).toEqual({ kind: 'test-line', accountSid: ACCOUNT, ...line });
  });

  it('never gets the operator’s token at a customer’s address', () => {
    expect(stream(describeAgent(OPERATOR, call(null), 'own').agent).bearerToken).toBe('operator-token');
    expect(stream(describeAgent(OPERATOR, call({ stream: STREAM }), 'own').agent).bearerToken).toBeNull();
    const own = { ...STREAM, bearer_token: 'own' };
    expect(stream(describeAgent(OPERATOR, call({ stream: own }), 'own').agent).bearerToken).toBe('own');
  });

  it('gets ids in the form of Twilio’s, the key of the organization and the interruption threshold', () => {
    const { agent } = describeAgent(OPERATOR, call({ stream: STREAM, interruption_threshold: 180 }), 'own');
    expect(agent).toEqual({
      kind: 'stream',
      url: STREAM.url,
      bearerToken: null,
      accountSid: 'AC7c9e6679742540de944be07fc1f90ae7',
      callSid: 'CA0f8fad5bd9cb469fa16570867728950e',
      signatureKey: 'signing-key',
      endOfSpeechMs: 180,
      mayPress: true,
      headersFromAgent: ['User-to-User', 'X-*'],
      format: 'pcm16-8000',
      marks: [],
      customParameters: expect.objectContaining({ call_id: CALL_ID }) as unknown,
    });
  });

  it('may send no digits, transfer or use tools with the model turbo', () => {
    const agent = stream(describeAgent(OPERATOR, call({ model: 'turbo', transfer_list: ['+15550100300'] }, HEADERS, [TOOL]), 'own').agent);
    expect(agent.mayPress).toBe(false);
    expect(Object.keys(agent.customParameters)).not.toContain('tools');
    expect(Object.keys(agent.customParameters)).not.toContain('transfer_list');
  });

  it('is the test line for a call that has no route', () => {
    const standIns = { ...OPERATOR.standIns, secondProvider: 'deepgram' } as const;
    for (const choice of ['own', 'second-provider'] as const)
      expect(describeAgent({ ...OPERATOR, standIns }, { ...call(null), route: null }, choice)).toEqual({
        agent: { kind: 'test-line', accountSid: '', firstSentence: '', language: 'ENG', voice: null, pronunciationGuide: [] },
        dropped: [],
      });
  });
});

describe('a stand-in for an agent', () => {
  const OWN = { name: 'openai-realtime', model: 'own-model', url: null, audio: 'pcm-24000', api_key: 'own', ...NO_TUNING } as const;
  const APPLICATION = { ...OWN, name: 'conversation-relay', url: 'wss://app.example/' } as const;
  const standing = (standIns: Partial<OperatorAgent['standIns']>): OperatorAgent => ({
    ...OPERATOR,
    standIns: { ...OPERATOR.standIns, ...standIns },
  });

  it.each([
    ['sentence', null],
    ['transfer', '+15550100400'],
  ] as const)('of the kind %s speaks the operator’s sentence to its end and then transfers to %s', (choice, transferTo) => {
    const operator = standing({ sentence: 'Pardon.', language: 'FRE', transferTo: '+15550100400' });
    expect(describeAgent(operator, call({ provider: OWN }), choice)).toEqual({
      agent: {
        kind: 'player',
        accountSid: ACCOUNT,
        clips: [
          { kind: 'say', text: 'Pardon.', language: 'FRE', voice: null, loop: 1 },
          { kind: 'pause', ms: 200 },
        ],
        gather: null,
        transferTo,
        speech: null,
      },
      dropped: [],
    });
  });

  it('at the second provider has the agent’s settings, but models, voice and key of its own', () => {
    const settings = { prompt: 'Be kind.', voice: 'marin', provider: OWN };
    const { agent } = describeAgent(standing({ secondProvider: 'deepgram' }), call(settings), 'second-provider');
    expect(agent).toMatchObject({ provider: 'deepgram', model: 'm', prompt: 'Be kind.', voice: null, apiKey: null, audio: 'g711' });
    const { agent: first } = describeAgent(standing({ secondProvider: 'deepgram' }), call(settings), 'own');
    expect(first).toMatchObject({ provider: 'openai-realtime', model: 'own-model', voice: 'marin', apiKey: 'own', audio: 'pcm-24000' });
  });

  it('at the second provider answers for a number without an agent too', () => {
    const { agent } = describeAgent(standing({ secondProvider: 'deepgram' }), call(null), 'second-provider');
    expect(agent).toMatchObject({ kind: 'provider', provider: 'deepgram', prompt: '', language: 'ENG' });
  });

  it('without a second provider is the agent itself', () => {
    const { agent } = describeAgent(standing({ secondProvider: null }), call({ provider: OWN }), 'second-provider');
    expect(agent).toMatchObject({ provider: 'openai-realtime', model: 'own-model' });
  });

  it.each([OWN, APPLICATION])('on the test line replaces $name', (provider) => {
    expect(describeAgent(OPERATOR, call({ provider }), 'test-line').agent.kind).toBe('test-line');
  });
});

it('with a briefing speaks it once, to the callee', () => {
  expect(briefingAgent({ text: 'A caller waits.', language: 'GER' }, call(null))).toEqual({
    kind: 'player',
    accountSid: ACCOUNT,
    clips: [{ kind: 'say', text: 'A caller waits.', language: 'GER', voice: null, loop: 1 }],
    gather: null,
    transferTo: null,
    speech: null,
  });
});

describe('an agent at a provider', () => {
  const provider = { name: 'openai-realtime', model: null, url: null, audio: 'g711', api_key: null, ...NO_TUNING } as const;
  const OPENAI = {
    url: 'wss://operator.example/',
    apiKey: 'operator-key',
    voice: 'alloy',
    model: 'big',
    turboModel: 'small',
    transcriptionModel: 'writer',
  };
  const operator = { ...OPERATOR, providers: { ...OPERATOR.providers, 'openai-realtime': OPENAI } };
  const conversation = [{ speaker: 'caller', text: 'Hello?' }] as const;
  const guide = [{ word: 'ETA', pronunciation: 'E T A', case_sensitive: false, spaced: true }];

  it('takes the operator’s settings where it has none itself', () => {
    expect(describeAgent(operator, { ...call({ provider }, HEADERS, [TOOL]), conversation }, 'own')).toEqual({
      agent: {
        kind: 'provider',
        provider: 'openai-realtime',
        url: 'wss://operator.example/',
        apiKey: null,
        model: 'big',
        transcriptionModel: 'writer',
        prompt: '',
        firstSentence: null,
        waitsForGreeting: false,
        voice: 'alloy',
        language: 'ENG',
        pronunciationGuide: [],
        tuning: NO_TUNING,
        endOfSpeechMs: null,
        speech: null,
        tools: [{ name: 'book', description: 'Books a table.', input_schema: TOOL.input_schema, speech: null }],
        mayTransfer: true,
        headersFromAgent: ['User-to-User', 'X-*'],
        audio: 'g711',
        codec: 'PCMU',
        conversation,
      },
      dropped: [],
    });
  });

  it('uses its own settings, and the call’s codec', () => {
    const tuning = { noise_reduction: 'far_field', semantic_vad: 'low', reasoning_effort: 'minimal' } as const;
    const own = { ...provider, model: 'mine', url: 'wss://mine.example/', audio: 'pcm-24000', api_key: 'key', ...tuning } as const;
    const texts = { prompt: 'Be kind.', first_sentence: 'Hello.', wait_for_greeting: true, voice: 'marin', language: 'GER' };
    const settings = { ...texts, pronunciation_guide: guide, interruption_threshold: 50, provider: own };
    expect(describeAgent(operator, { ...call(settings), codec: 'PCMA' }, 'own').agent).toMatchObject({
      url: 'wss://mine.example/',
      apiKey: 'key',
      model: 'mine',
      audio: 'pcm-24000',
      tuning,
      codec: 'PCMA',
      prompt: 'Be kind.',
      firstSentence: 'Hello.',
      waitsForGreeting: true,
      voice: 'marin',
      language: 'GER',
      pronunciationGuide: guide,
      endOfSpeechMs: 250,
    });
  });

  it('gets a faster model, no tools and no transfers with turbo', () => {
    const { agent } = describeAgent(operator, call({ provider, model: 'turbo' }, HEADERS, [TOOL]), 'own');
    expect(agent).toMatchObject({ model: 'small', tools: [], mayTransfer: false });
  });
});

describe('the key for a provider', () => {
  const OWN_URL = 'wss://own.example/';
  const OPERATORS_URL = 'wss://api.openai.com/v1/realtime';
  const operator: OperatorAgent = {
    ...OPERATOR,
    providers: { ...OPERATOR.providers, 'openai-realtime': { ...OPERATOR.providers['openai-realtime'], apiKey: 'operator-key' } },
    speech: { ...OPERATOR.speech, listen: { ...OPERATOR.speech.listen, apiKey: 'operator-listens' } },
  };
  const ORG: ProviderKeys = { 'openai-realtime': 'org-key', deepgram: 'org-listens' };
  const keyOf = (provider: Partial<AgentProvider> | null, keys: ProviderKeys, mayUseOperators: boolean): string | null => {
    const chosen = provider && {
      name: 'openai-realtime' as const,
      model: null,
      url: null,
      audio: 'g711' as const,
      api_key: null,
      ...NO_TUNING,
      ...provider,
    };
    return providerKey(operator, inOrg(call({ provider: chosen }), { provider_keys: keys, operator_keys: mayUseOperators }).route!);
  };

  it.each([
    ['its own before all others', { api_key: 'own' }, ORG, true, 'own'],
    ['its own, to its own address', { api_key: 'own', url: OWN_URL }, ORG, true, 'own'],
    ['the organization’s before the operator’s', {}, ORG, true, 'org-key'],
    ['the operator’s, where the organization may use it', {}, {}, true, 'operator-key'],
    ['none of the operator’s for an organization that may not use it', {}, {}, false, null],
    ['the organization’s, to the operator’s address by its name', { url: OPERATORS_URL }, ORG, true, 'org-key'],
    ['none of others to an address of its own', { url: OWN_URL }, ORG, true, null],
    [
      'the organization’s for what an application hears, whatever the application’s own',
      { name: 'conversation-relay' as const, api_key: 'own', url: OWN_URL },
      ORG,
      true,
      'org-listens',
    ],
    ['the operator’s for what an application hears', { name: 'conversation-relay' as const }, {}, true, 'operator-listens'],
    ['none without a provider', null, ORG, true, null],
  ])('is %s', (_what, provider, keys, mayUseOperators, expected) => {
    expect(keyOf(provider, keys, mayUseOperators)).toBe(expected);
  });

  it('is none for a number without an agent', () => {
    expect(providerKey(operator, inOrg(call(null), { provider_keys: ORG }).route!)).toBeNull();
  });
});

describe('the speech services of a call', () => {
  const { listen, speech } = PLAIN.speech;
  const services = (names: readonly [string | null, string | null, string | null, string | null]): OperatorAgent['speech'] => ({
    listen: { ...listen, apiKey: names[0] },
    speech: {
      deepgram: { ...speech.deepgram, apiKey: names[1] },
      elevenlabs: { ...speech.elevenlabs, apiKey: names[2] },
      openai: { ...speech.openai, apiKey: names[3] },
    },
  });
  const operator = { ...OPERATOR, speech: services(['hears', 'dg', 'el', 'sk']) };
  const ALL: ProviderKeys = { deepgram: 'own-dg', elevenlabs: 'own-el', 'openai-realtime': 'own-sk' };

  it.each([
    ['the organization’s keys', { provider_keys: ALL, operator_keys: true }, ['own-dg', 'own-dg', 'own-el', 'own-sk']],
    ['the operator’s where it may use them', { provider_keys: {}, operator_keys: true }, ['hears', 'dg', 'el', 'sk']],
    ['none where it may not', { provider_keys: {}, operator_keys: false }, [null, null, null, null]],
  ] as const)('have %s', (_what, org, keys) => {
    expect(speechOf(operator, inOrg(call(null), org).route)).toEqual(services(keys));
  });

  it('have no key in a call that belongs to nobody', () => {
    expect(speechOf(operator, null)).toEqual(services([null, null, null, null]));
  });
});

describe('an application that exchanges text', () => {
  const provider = {
    name: 'conversation-relay',
    model: null,
    url: 'wss://app.example/',
    audio: 'g711',
    api_key: 'app-key',
    ...NO_TUNING,
  } as const;
  const described = (settings: Partial<AgentRecord>, headers?: Readonly<Record<string, string>>) => {
    const { agent } = describeAgent(
      OPERATOR,
      inOrg(call({ provider, ...settings }, headers), { provider_keys: { deepgram: 'dg' } }),
      'own',
    );
    if (agent.kind !== 'conversation') throw new Error(agent.kind);
    return agent;
  };

  it('gets the call, and speaks by the services of the organization', () => {
    const headers = { ...HEADERS, Diversion: '<sip:+15550100777@carrier>;reason=no-answer, <sip:+15550100778@carrier>' };
    const voice = 'ElevenLabs.Rachel';
    expect(described({ first_sentence: 'Hello.', language: 'GER', voice }, headers)).toEqual({
      kind: 'conversation',
      url: 'wss://app.example/',
      bearerToken: 'app-key',
      signatureKey: 'signing-key',
      accountSid: 'AC7c9e6679742540de944be07fc1f90ae7',
      callSid: 'CA0f8fad5bd9cb469fa16570867728950e',
      customParameters: expect.objectContaining({ call_id: CALL_ID, first_sentence: 'Hello.' }) as unknown,
      sessionId: expect.stringMatching(/^VX[\da-f]{32}$/) as unknown,
      direction: 'inbound',
      from: '+15550100200',
      to: NUMBER,
      callerName: 'Ann',
      forwardedFrom: 'sip:+15550100777@carrier',
      rules: {
        ...DEFAULT_CONVERSATION,
        greeting: { text: 'Hello.', interruptible: 'any' },
        reportsDigits: true,
        ttsLanguage: 'GER',
        transcriptionLanguage: 'GER',
        voice: { provider: 'elevenlabs', voice: 'Rachel' },
      },
      listen: { ...PLAIN.speech.listen, apiKey: 'dg' },
      speech: { ...PLAIN.speech.speech, deepgram: { ...PLAIN.speech.speech.deepgram, apiKey: 'dg' } },
    });
  });

  it('sends no greeting without a first sentence, or when it waits for the caller’s', () => {
    const none = described({ provider: { ...provider, url: null } });
    expect(none).toMatchObject({ url: '', forwardedFrom: null, rules: { greeting: null, voice: null } });
    expect(described({ first_sentence: 'Hello.', wait_for_greeting: true }).rules.greeting).toBeNull();
  });

  it('reports which parameters were too long for it', () => {
    const long = call({ provider, prompt: 'p'.repeat(70_000) });
    expect(describeAgent(OPERATOR, long, 'own').dropped).toEqual(['prompt']);
  });
});

describe('the voice application of a call', () => {
  const PLACED = { token: 't', first: null, sendDigits: null, fallback: null, statusCallback: null };
  const NONE = { token: 'signing-key', first: null, sendDigits: null, fallback: null, statusCallback: null };
  const VOICE = { url: 'https://a/', method: 'POST' } as const;
  const called = (options: Partial<InboundOptions> | null) => {
    const inbound = options && { agent_id: null, options: { ...DEFAULT_INBOUND_OPTIONS, ...options } };
    const { route } = call(null);
    return voiceApplicationOf({ direction: 'inbound', voice: PLACED }, { ...route!, number: { ...ROUTE.number, inbound } });
  };

  it('is the one that an outbound call was placed with, or none', () => {
    const { route } = call(null);
    expect(voiceApplicationOf({ direction: 'outbound', voice: PLACED }, route)).toBe(PLACED);
    expect(voiceApplicationOf({ direction: 'outbound' }, route)).toBeNull();
  });

  it.each([
    ['nothing', {}, NONE],
    ['a URL', { voice_url: 'https://a/' }, { ...NONE, first: VOICE }],
    ['a fallback', { voice_fallback_url: 'https://a/' }, { ...NONE, fallback: VOICE }],
    ['a status callback', { status_callback: 'https://a/' }, { ...NONE, statusCallback: { ...VOICE, events: ['completed'] } }],
    [
      'a status callback of one event',
      { status_callback: 'https://a/', status_callback_events: ['ringing'] },
      { ...NONE, statusCallback: { ...VOICE, events: ['ringing'] } },
    ],
    ['no inbound calls', null, NONE],
  ] as const)('is that of the called number, which has %s', (_what, options, expected) => {
    expect(called(options)).toEqual(expected);
  });

  it('is null for a number that nobody has', () => {
    expect(voiceApplicationOf({ direction: 'inbound', voice: PLACED }, null)).toBeNull();
  });
});

describe('the custom parameters of an agent', () => {
  const told = (facts: CallFactsForAgent): Readonly<Record<string, string>> =>
    stream(describeAgent(OPERATOR, facts, 'own').agent).customParameters;

  it('have the verdict over the caller’s signature, where one was verified', () => {
    const identity = { verdict: 'valid', detail: null, attestation: 'A', origid: null, signer: null } as const;
    expect(told({ ...call(null), identity })).toMatchObject({ stir_verdict: 'valid', stir_attestation: 'A' });
    expect(Object.keys(told(call(null))).filter((name) => name.startsWith('stir'))).toEqual([]);
  });

  it('have the call and the settings as strings, without unset ones', () => {
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

  it('have the number of earlier processes that had the call', () => {
    const before = { resumed: 2, marks: ['a'], unheardSinceMs: 1_000 };
    const { agent } = describeAgent(OPERATOR, { ...call({}), ...before }, 'own');
    expect(stream(agent)).toMatchObject({ marks: ['a'], unheardSinceMs: 1_000, customParameters: { reconnects: '2' } });
  });

  it('have the strings of the metadata under their own names, where those are free: 50 of 500 bytes', () => {
    const metadata = {
      FirstName: 'Ann',
      empty: '',
      age: 7,
      nested: { a: 'b' },
      from: 'me',
      prompt: 'no',
      stir_verdict: 'valid',
      reconnects: '9',
      tools: 'none',
      fits: 'x'.repeat(496),
      tooLong: 'x'.repeat(494),
    };
    const parameters = told(call({ metadata }));
    expect(parameters).toMatchObject({ FirstName: 'Ann', empty: '', fits: metadata.fits, from: '+15550100200' });
    expect(JSON.parse(parameters['metadata'] ?? '')).toEqual(metadata);
    for (const name of ['age', 'nested', 'prompt', 'stir_verdict', 'reconnects', 'tools', 'tooLong'])
      expect(parameters).not.toHaveProperty(name);
    const many = told(call({ metadata: Object.fromEntries(Array.from({ length: 60 }, (_, serial) => [`n${String(serial)}`, 'x'])) }));
    expect(Object.keys(many).filter((name) => /^n\d+$/.test(name))).toHaveLength(50);
  });

  it('have name, description and schema of the tools, but neither address nor keys', () => {
    const { tools } = told(call({}, HEADERS, [TOOL]));
    expect(JSON.parse(tools ?? '')).toEqual([{ name: 'book', description: 'Books a table.', input_schema: TOOL.input_schema }]);
  });

  it('[3323] have nothing of a caller who wants to stay anonymous', () => {
    const all = JSON.stringify(told(call({}, { ...HEADERS, Privacy: 'user;id' })));
    expect(all).toContain('anonymous');
    expect(all).not.toContain('15550100200');
    expect(all).not.toContain('Ann');
  });

  it('leave out the largest optional values until 64 KiB are enough', () => {
    const facts = call({ prompt: 'p'.repeat(40_000), metadata: { long: 'é'.repeat(20_000) }, dynamic_data: { short: 'd'.repeat(20_000) } });
    const { agent, dropped } = describeAgent(OPERATOR, facts, 'own');
    const { customParameters } = stream(agent);
    expect(dropped).toEqual(['metadata']);
    expect(Object.keys(customParameters)).toEqual(expect.arrayContaining(['from', 'call_id', 'prompt', 'dynamic_data']));
    expect(Buffer.byteLength(JSON.stringify(customParameters))).toBeLessThan(65_536);
  });

  it('fit with 64 KiB of names and values, and not with a byte more', () => {
    const sizeOf = (prompt: string): number =>
      Object.entries(told(call({ prompt }))).reduce((bytes, [name, text]) => bytes + name.length + text.length, 0);
    const prompt = 'p'.repeat(1 + 65_536 - sizeOf('p'));
    expect(describeAgent(OPERATOR, call({ prompt }), 'own').dropped).toEqual([]);
    expect(describeAgent(OPERATOR, call({ prompt: `${prompt}p` }), 'own').dropped).toEqual(['prompt']);
  });

  it('always have caller and called number, however long', () => {
    const { agent, dropped } = describeAgent(OPERATOR, { ...call({ prompt: 'Be kind.' }), to: '5'.repeat(70_000) }, 'own');
    expect(Object.keys(stream(agent).customParameters)).toEqual([
      'from',
      'to',
      'from_number',
      'to_number',
      'call_id',
      'org_id',
      'agent_id',
    ]);
    expect(dropped).toContain('prompt');
  });
});

describe('the speech service for sentences that a provider cannot speak word for word', () => {
  const own = { model: null, url: null, audio: 'g711', api_key: 'own', ...NO_TUNING } as const;
  const ALL = { deepgram: 'dg', elevenlabs: 'el', 'openai-realtime': 'sk' };
  const speaker = (provider: Partial<AgentRecord['provider']>, keys: ProviderKeys) => {
    const facts = call({ provider: { ...own, ...provider } as AgentRecord['provider'], voice: 'marin' });
    const { agent } = describeAgent(OPERATOR, inOrg(facts, { provider_keys: keys }), 'own');
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
  ] as const)('for %s with the keys %j is %j', (name, keys, expected) => {
    expect(speaker({ name }, keys)).toEqual(expected);
  });

  it.each(['openai-realtime', 'elevenlabs', 'gemini-live'] as const)('is null for an agent at another address (%s)', (name) => {
    expect(speaker({ name, url: 'wss://own.example/' }, ALL)).toBeNull();
  });
});
