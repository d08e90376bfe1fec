import { describe, expect, it } from 'vitest';
import { DeepgramAgent } from '../../../../../src/gateway/agents/provider/deepgram.js';
import type { ProviderSettings, Said, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { FakeDeepgramSession } from '../../../../support/provider/fake-deepgram.js';
import { openProvider, PROVIDER } from '../../../../support/provider/provider-leg.js';
import { receives, shown } from '../../../../support/provider/without-socket.js';

const SILENCE = 0xff;
const loud = (ms: number, byte = 0x10): Buffer => Buffer.alloc(8 * ms, byte);
const WEATHER: SpokenTool = {
  name: 'the weather',
  description: 'Tells the weather.',
  speech: 'One moment.',
  input_schema: { type: 'object', example: null, required: [], properties: { day: 'YYYY-MM-DD' } },
};
const DEEPGRAM = {
  provider: 'deepgram',
  url: 'wss://agent.deepgram.com/v1/agent/converse',
  model: 'gpt-4.1-mini',
  transcriptionModel: 'nova-3',
  voice: 'aura-2-thalia-en',
} as const;
const open = (settings: Partial<ProviderSettings> = {}, refusal: string | null = null) =>
  openProvider((end, request) => new FakeDeepgramSession(end, request, refusal), { ...DEEPGRAM, ...settings });
const talking = async (settings: Partial<ProviderSettings> = {}) => {
  const leg = open(settings);
  await leg.talk();
  return leg;
};

describe('an agent at Deepgram', () => {
  it('sends its settings, opts out of training, and has the first sentence spoken word for word', async () => {
    const leg = open({ codec: 'PCMA', language: 'SPA', firstSentence: 'Buenos días.', model: 'claude-sonnet', tools: [WEATHER] });
    await leg.connect();
    expect(leg.session.config).toMatchObject({
      mip_opt_out: true,
      audio: { input: { encoding: 'alaw', sample_rate: 8_000 }, output: { encoding: 'alaw', sample_rate: 8_000, container: 'none' } },
      agent: {
        listen: { provider: { model: 'nova-3', language: 'es' } },
        think: { provider: { type: 'anthropic', model: 'claude-sonnet' } },
        speak: { provider: { model: 'aura-2-thalia-en' } },
        greeting: 'Buenos días.',
      },
    });
    expect(leg.session.config!.agent.think.functions.map(({ name }) => name)).toEqual([
      'the_weather',
      'hang_up',
      'do_not_call',
      'transfer_call',
      'press_keys',
    ]);
    leg.session.text('Buenos días.');
    leg.session.say(loud(100));
    leg.session.done();
    leg.clock.advance(400);
    leg.start();
    expect(leg.frames(5)).toEqual(loud(100));
    expect(leg.transcript()).toEqual([{ speaker: 'agent', text: 'Buenos días.', at_ms: 20 }]);
    expect(leg.session.of('InjectUserMessage')).toEqual([]);
    expect(leg.session.errors).toEqual([]);
  });

  it('is asked to begin without a first sentence, and not with wait_for_greeting', async () => {
    const begins = await talking();
    expect(begins.session.of('InjectUserMessage')).toHaveLength(1);
    const waits = await talking({ waitsForGreeting: true, firstSentence: 'Good day.' });
    waits.frames(10);
    expect(waits.session.messages.all).toHaveLength(1);
    expect(waits.session.config!.agent.greeting).toBeUndefined();
  });

  it('refuses the call when Deepgram refuses the settings', async () => {
    const leg = open({}, 'INVALID_SETTINGS');
    await expect(leg.connect()).rejects.toThrow('INVALID_SETTINGS');
    expect(leg.notes.join()).not.toContain('words of the call');
  });

  it('passes audio both ways unchanged, in chunks of any length', async () => {
    const leg = await talking({ waitsForGreeting: true });
    leg.frames(10, 0x2a);
    expect(leg.session.audio).toEqual(Buffer.alloc(1_600, 0x2a));
    const speech = Buffer.from(Array.from({ length: 800 }, (_, i) => i % 97));
    for (const byte of speech) leg.session.say(Uint8Array.of(byte));
    leg.session.done();
    expect(leg.frames(6).subarray(0, 800)).toEqual(speech);
  });

  it('plays nothing more of an utterance that the caller interrupts, and records what was heard', async () => {
    const leg = await talking({ waitsForGreeting: true });
    const { session } = leg;
    session.text('One two three four five six seven eight nine ten.');
    session.say(loud(1_000));
    leg.frames(25);
    session.callerSpeaks();
    session.say(loud(200, 0x22));
    session.done();
    expect(leg.frames(3)).toEqual(Buffer.alloc(480, SILENCE));
    session.callerSaid('Stop.');
    session.text('Yes?');
    session.say(loud(40, 0x33));
    session.done();
    expect(leg.frames(2)).toEqual(loud(40, 0x33));
    expect(leg.transcript().map(({ text, interrupted }) => [text, interrupted])).toEqual([
      ['One two three four five', true],
      ['Stop.', undefined],
      ['Yes?', undefined],
    ]);
  });

  it('renews its session in a pause before its 120 minutes are over, with the conversation so far', async () => {
    const leg = await talking({ firstSentence: 'Hello.' });
    leg.session.text('Hello.');
    leg.session.say(loud(40));
    leg.session.done();
    leg.frames(5);
    const first = leg.session;
    leg.clock.advance(114 * 60_000);
    leg.frames(1, 0x10);
    expect(leg.sessions).toHaveLength(1);
    leg.clock.advance(2 * 60_000);
    leg.frames(3, 0x10);
    expect([leg.sessions.length, first.closed.all]).toEqual([2, [1_000]]);
    expect(leg.session.config!.agent.context!.messages).toEqual([{ type: 'History', role: 'assistant', content: 'Hello.' }]);
    expect(leg.session.config!.agent.greeting).toBeUndefined();
  });

  it('plays nothing of the old utterance when a digit follows an interruption', async () => {
    const leg = await talking({ waitsForGreeting: true });
    const { session } = leg;
    session.text('One two three.');
    session.say(loud(1_000));
    leg.frames(10);
    session.callerSpeaks();
    leg.frames(1);
    leg.agent.digit(1);
    leg.agent.digit(11);
    session.say(loud(200, 0x22));
    expect(leg.frames(5)).toEqual(Buffer.alloc(800, SILENCE));
    expect(session.of('InjectUserMessage')).toHaveLength(1);
  });

  it('keeps its session alive until the ACK, after which audio does that', async () => {
    const leg = open({ waitsForGreeting: true });
    await leg.connect();
    leg.clock.advance(12_000);
    expect(leg.session.of('KeepAlive')).toHaveLength(2);
    leg.start();
    leg.frames(600, 0x10);
    expect(leg.session.of('KeepAlive')).toHaveLength(2);
    expect(leg.session.errors).toEqual([]);
  });

  it('runs tools with their speech, drops cancelled ones, and hangs up when all was heard', async () => {
    const leg = await talking({ waitsForGreeting: true, tools: [WEATHER] });
    const { session } = leg;
    session.call('1', 'the_weather', { day: 'Monday' });
    session.call('2', 'the_weather', { day: 'Tuesday' });
    leg.frames(1);
    expect(leg.requests()).toEqual([
      { type: 'tool', requestId: '1', name: 'the weather', input: { day: 'Monday' } },
      { type: 'tool', requestId: '2', name: 'the weather', input: { day: 'Tuesday' } },
    ]);
    expect(session.of('InjectAgentMessage')).toEqual([]);
    leg.frames(20);
    expect(session.of('InjectAgentMessage').map(({ message }) => message)).toEqual(['One moment.', 'One moment.']);
    session.cancelCall('1');
    leg.frames(1);
    leg.agent.notify({ type: 'tool-result', requestId: '1', result: 'late', httpStatus: 200 });
    leg.agent.notify({ type: 'tool-result', requestId: '2', result: 'rain', httpStatus: 200 });
    expect(session.of('FunctionCallResponse')).toEqual([
      { type: 'FunctionCallResponse', id: '2', name: 'the_weather', content: '{"result":"rain","http_status":200}' },
    ]);
    session.text('Goodbye.');
    session.say(loud(200));
    session.call('3', 'hang_up', {});
    leg.frames(5);
    session.done();
    leg.frames(5);
    expect(leg.hasHungUp()).toBe(false);
    leg.frames(12);
    expect(leg.hasHungUp()).toBe(true);
    expect(session.errors).toEqual([]);
  });

  it('speaks nothing for a tool whose result comes soon, or that was cancelled', async () => {
    const leg = await talking({ waitsForGreeting: true, tools: [WEATHER] });
    leg.session.call('1', 'the_weather', { day: 'Monday' });
    leg.session.call('2', 'the_weather', { day: 'Tuesday' });
    leg.frames(5);
    leg.agent.notify({ type: 'tool-result', requestId: '1', result: 'rain', httpStatus: 200 });
    leg.session.cancelCall('2');
    leg.frames(50);
    expect(leg.session.of('InjectAgentMessage')).toEqual([]);
  });

  it.each([1_000, 1_006, 1_011])('begins another session with the conversation so far after a close with %i', async (code) => {
    const leg = await talking({ firstSentence: 'Hello.' });
    leg.session.text('Hello.');
    leg.session.say(loud(40));
    leg.session.done();
    leg.frames(5);
    leg.session.callerSpeaks();
    leg.session.callerSaid('I want a table.');
    leg.session.surprise();
    leg.frames(1);
    leg.session.close(code);
    leg.frames(3, 0x44);
    expect(leg.sessions).toHaveLength(2);
    expect(leg.session.config!.agent.greeting).toBeUndefined();
    expect(leg.session.config!.agent.context).toEqual({
      messages: [
        { type: 'History', role: 'assistant', content: 'Hello.' },
        { type: 'History', role: 'user', content: 'I want a table.' },
      ],
    });
    expect(leg.session.audio.includes(Buffer.alloc(160, 0x44))).toBe(true);
    expect(leg.notes.join()).not.toContain('words of the call');
  });
});

describe('the adapter for Deepgram', () => {
  const adapterOf = (settings: Partial<ProviderSettings> = {}) =>
    new DeepgramAgent({ ...PROVIDER, ...DEEPGRAM, tools: [WEATHER], ...settings });
  const said = (content: string, role = 'assistant') => ({ type: 'ConversationText', role, content });
  const speaks = { type: 'UserStartedSpeaking' };
  const done = { type: 'AgentAudioDone' };
  const called = (more: object) => ({ type: 'FunctionCallRequest', functions: [{ id: '1', name: 'the_weather', arguments: '', ...more }] });
  const AUDIO = Uint8Array.of(1, 2);
  const SPEAKS = [{ do: 'caller-speech', isSpeaking: true }, { do: 'interrupt' }];
  const SPOKE = { do: 'caller-speech', isSpeaking: false };
  const partly = (utterance: string, text: string) => ({ do: 'said', utterance, text, isLast: false });
  const wholly = (utterance: string, text: string) => [
    { do: 'said', utterance, text, isLast: true },
    { do: 'end-utterance', utterance },
  ];
  const ran = (more: object = {}) => ({ do: 'run-tool', callId: '1', name: 'the weather', input: {}, speech: 'One moment.', ...more });

  it.each<[string, Partial<ProviderSettings>, object]>([
    ['µ-law', {}, { encoding: 'mulaw', sample_rate: 8_000 }],
    ['A-law', { codec: 'PCMA' }, { encoding: 'alaw', sample_rate: 8_000 }],
    ['linear', { codec: 'PCMA', audio: 'pcm-24000' }, { encoding: 'linear16', sample_rate: 24_000 }],
  ])('sends the settings of an agent with %s', (_law, settings, audio) => {
    const adapter = adapterOf({ tools: [], mayTransfer: false, ...settings });
    expect(adapter.target).toEqual({ url: DEEPGRAM.url, headers: { Authorization: 'Token sk-secret' } });
    expect(shown(adapter.open([], null))).toEqual([
      {
        do: 'send',
        message: {
          type: 'Settings',
          mip_opt_out: true,
          audio: { input: audio, output: { ...audio, container: 'none' } },
          agent: {
            listen: { provider: { type: 'deepgram', version: 'v1', model: 'nova-3', language: 'en' } },
            think: {
              provider: { type: 'open_ai', model: 'gpt-4.1-mini' },
              prompt: expect.stringMatching(/^You are the front desk.\n\nYou speak/) as string,
              functions: [expect.objectContaining({ name: 'hang_up' }), expect.objectContaining({ name: 'do_not_call' })],
            },
            speak: { provider: { type: 'deepgram', model: 'aura-2-thalia-en' } },
          },
        },
      },
    ]);
  });

  it.each([
    ['claude-sonnet', 'anthropic'],
    ['gemini-3-flash', 'google'],
    ['gpt-5-mini', 'open_ai'],
    ['nvidia/nemotron-3-nano-30b-a3b', 'nvidia'],
    ['think-fast', 'deepgram'],
    ['phonellm-mini-alpha-2-fp8', 'deepgram'],
    ['like-claude', 'open_ai'],
  ])('assigns the model %s to %s', (model, type) => {
    expect(JSON.stringify(shown(adapterOf({ model }).open([], null)))).toContain(JSON.stringify({ type, model }));
  });

  it.each([
    ['nova-3', 'aura-2-julius-de', { version: 'v1', model: 'nova-3', language: 'de' }, {}],
    ['flux-general-en', 'flux-alexis-en', { version: 'v2', model: 'flux-general-en' }, { version: 'v2' }],
    ['flux-general-multi', 'aura-2-julius-de', { version: 'v2', model: 'flux-general-multi', language_hints: ['de'] }, {}],
  ])('listens with %s and speaks with %s in their versions', (transcriptionModel, voice, listener, speaker) => {
    expect(shown(adapterOf({ transcriptionModel, voice, language: 'GER' }).open([], null))).toMatchObject([
      {
        message: {
          agent: {
            listen: { provider: { type: 'deepgram', ...listener } },
            speak: { provider: { type: 'deepgram', model: voice, ...speaker } },
          },
        },
      },
    ]);
  });

  it('gives the next session the functions that were called, with their signatures, behind the words that they followed', () => {
    const adapter = adapterOf();
    const call = { id: '1', name: 'the_weather', arguments: '{"day":"Monday"}', client_side: true };
    expect(adapter.resumption).toBeNull();
    receives(adapter, { type: 'ConversationText', role: 'user', content: 'And on Monday?' });
    receives(adapter, { type: 'FunctionCallRequest', functions: [{ ...call, thought_signature: 'sig' }] });
    receives(adapter, {
      type: 'FunctionCallRequest',
      functions: [
        { ...call, id: '2' },
        { ...call, id: '3' },
      ],
    });
    adapter.toolResult('1', { result: 'rain' });
    adapter.toolResult('2', { result: 'x'.repeat(60) });
    const conversation: readonly Said[] = [
      { speaker: 'agent', text: 'Hello.' },
      { speaker: 'caller', text: 'And on Monday?' },
      { speaker: 'agent', text: 'Rain.' },
    ];
    const messagesOf = (before: DeepgramAgent, said: readonly Said[]): unknown => {
      const opened = shown(adapterOf().open(said, before.resumption)) as [{ message: { agent: { context: { messages: unknown } } } }];
      return opened[0].message.agent.context.messages;
    };
    const known = [
      { ...call, response: '{"result":"rain"}', thought_signature: 'sig' },
      { ...call, id: '2', response: JSON.stringify({ result: 'x'.repeat(60) }) },
    ];
    expect(messagesOf(adapter, conversation)).toEqual([
      { type: 'History', role: 'assistant', content: 'Hello.' },
      { type: 'History', role: 'user', content: 'And on Monday?' },
      { type: 'History', function_calls: known },
      { type: 'History', role: 'assistant', content: 'Rain.' },
    ]);
    expect(messagesOf(adapter, conversation.slice(0, 1))).toEqual([{ type: 'History', role: 'assistant', content: 'Hello.' }]);
    const later = adapterOf();
    later.open(conversation, adapter.resumption);
    expect(later.resumption).toBe(adapter.resumption);
    adapter.toolResult('3', { result: 'x'.repeat(65_536) });
    expect(adapter.resumption).toBeNull();
  });

  it.each([
    [null, [{ do: 'send', message: { type: 'InjectUserMessage', content: 'The call was answered. Greet me.' } }]],
    ['Good day.', []],
  ])('begins, with the first sentence %j', (firstSentence, expected) => {
    expect(shown(adapterOf({ firstSentence }).begin())).toEqual(expected);
  });

  it('sends nothing after an interruption', () => {
    expect(adapterOf().interrupted()).toEqual([]);
  });

  it('queues a text behind the current speech', () => {
    expect(shown(adapterOf().say('Bye.'))).toEqual([
      { do: 'send', message: { type: 'InjectAgentMessage', message: 'Bye.', behavior: 'queue' } },
    ]);
  });

  it.each<[string, (object | Uint8Array)[], object[]]>([
    ['accepted, once', [{ type: 'SettingsApplied' }, { type: 'SettingsApplied' }], [{ do: 'accepted' }]],
    ['audio', [AUDIO], [{ do: 'play', utterance: 'utterance-0', bytes: AUDIO }]],
    [
      'two utterances',
      [said('One.'), said('Two.'), done, said('Three.'), done],
      [
        partly('utterance-0', 'One.'),
        partly('utterance-0', 'One. Two.'),
        ...wholly('utterance-0', 'One. Two.'),
        partly('utterance-1', 'Three.'),
        ...wholly('utterance-1', 'Three.'),
      ],
    ],
    ['an interruption, and drops the rest', [said('One.'), speaks, AUDIO, said('Two.'), done], [partly('utterance-0', 'One.'), ...SPEAKS]],
    [
      'an interruption, and keeps its text out of the next answer',
      [said('One.'), speaks, said('', 'user'), done],
      [partly('utterance-0', 'One.'), ...SPEAKS, SPOKE, ...wholly('utterance-1', '')],
    ],
    [
      'thinks after an interruption',
      [speaks, { type: 'AgentThinking' }, AUDIO],
      [...SPEAKS, { do: 'play', utterance: 'utterance-1', bytes: AUDIO }],
    ],
    [
      'speaks after an interruption',
      [speaks, { type: 'AgentStartedSpeaking' }, AUDIO],
      [...SPEAKS, { do: 'play', utterance: 'utterance-1', bytes: AUDIO }],
    ],
    ['the words of the caller', [said(' Hi. ', 'user')], [SPOKE, { do: 'heard', text: 'Hi.', audioMs: null }]],
    ['no words of the caller', [said(' ', 'user')], [SPOKE]],
    ['a call', [called({ arguments: '{"day":"Monday"}' })], [ran({ input: { day: 'Monday' } })]],
    ['a call of a function of ours', [called({ name: 'hang_up' })], [ran({ name: 'hang_up', speech: '' })]],
    ['a call with arguments that are not JSON', [called({ arguments: '{' })], [ran({ input: undefined })]],
    ['a call that the provider runs itself', [called({ client_side: false })], []],
    [
      'a call that is cancelled',
      [{ type: 'FunctionCallCancelled', functions: [{ id: '1' }, { id: '2' }] }],
      [{ do: 'drop-tools', callIds: ['1', '2'] }],
    ],
    [
      'a final error',
      [{ type: 'Error', code: 'INVALID_AUTH' }],
      [{ do: 'fail', message: 'the provider sent an error: INVALID_AUTH (the key is wrong)', isFinal: true }],
    ],
    ['an error', [{ type: 'Error', code: 'BUSY' }], [{ do: 'fail', message: 'the provider sent an error: BUSY', isFinal: false }]],
    ['a warning', [{ type: 'Warning', code: 'SLOW' }], [{ do: 'warn', message: 'the provider warns: SLOW' }]],
    ['an unknown message', [{ type: 'Welcome' }], []],
    ['a message that is no object', [[]], [{ do: 'warn', message: 'a message that is not JSON' }]],
  ])('reads %s', (_what, messages, expected) => {
    expect(receives(adapterOf(), ...messages)).toEqual(expected);
  });

  it('is responding while it speaks, and while a function runs that it waits for', () => {
    const adapter = adapterOf();
    const isResponding = (message: object | Uint8Array): boolean => (receives(adapter, message), adapter.isResponding);
    expect([adapter.isResponding, isResponding(AUDIO), isResponding(done)]).toEqual([false, true, false]);
    expect([isResponding(said('One.')), isResponding(speaks), isResponding(AUDIO)]).toEqual([true, false, false]);
    expect(isResponding(called({}))).toBe(true);
    expect(shown(adapter.toolResult('1', { result: 'rain' }))).toEqual([
      { do: 'send', message: { type: 'FunctionCallResponse', id: '1', name: 'the_weather', content: '{"result":"rain"}' } },
    ]);
    expect([adapter.isResponding, adapter.toolResult('1', {})]).toEqual([false, []]);
    expect([isResponding(called({})), isResponding({ type: 'FunctionCallCancelled', functions: [{ id: '1' }] })]).toEqual([true, false]);
    expect(adapter.toolResult('1', {})).toEqual([]);
  });
});
