import { describe, expect, it } from 'vitest';
import { GeminiLive } from '../../../../../src/gateway/agents/provider/gemini-live.js';
import type { AgentConnectionLimits } from '../../../../../src/gateway/model/agent.js';
import type { ProviderSettings, Said, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { decodeG711 } from '../../../../../src/rtp/codec/g711.js';
import { FakeGeminiSession } from '../../../../support/provider/fake-gemini.js';
import { openProvider, PROVIDER } from '../../../../support/provider/provider-leg.js';
import { receives, shown } from '../../../../support/provider/without-socket.js';

const tone = (hertz: number, ms: number, rateHz = 24_000): Buffer =>
  Buffer.from(
    Int16Array.from({ length: (rateHz / 1_000) * ms }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * hertz * n) / rateHz))).buffer,
  );
/** Root mean square of what the caller heard. */
const levelOf = (bytes: Buffer): number => {
  const samples = new Int16Array(bytes.length);
  decodeG711('PCMU', bytes, samples);
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length);
};
const WEATHER: SpokenTool = {
  name: 'the weather',
  description: 'Tells the weather.',
  speech: null,
  input_schema: { type: 'object', example: { day: '2026-01-01' }, required: [], properties: { day: 'YYYY-MM-DD' } },
};
const GEMINI = {
  provider: 'gemini-live',
  url: 'wss://generativelanguage.googleapis.com/ws/BidiGenerateContent',
  model: 'gemini-3.8-live',
} as const;
const open = (settings: Partial<ProviderSettings> = {}, limits: Partial<AgentConnectionLimits> = {}) =>
  openProvider((end, request) => new FakeGeminiSession(end, request), { ...GEMINI, ...settings }, limits);
const talking = async (settings: Partial<ProviderSettings> = {}, limits: Partial<AgentConnectionLimits> = {}) => {
  const leg = open({ waitsForGreeting: true, ...settings }, limits);
  await leg.talk();
  return leg;
};

describe('an agent at Gemini', () => {
  it('sends its settings, and begins once they are accepted', async () => {
    const leg = open({ voice: 'Kore', endOfSpeechMs: 1_000, tools: [WEATHER], firstSentence: 'Good day.' });
    await leg.connect();
    expect(leg.session.setup).toMatchObject({
      model: 'models/gemini-3.8-live',
      generationConfig: {
        responseModalities: ['AUDIO'],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      },
      realtimeInputConfig: { automaticActivityDetection: { silenceDurationMs: 1_000 } },
      sessionResumption: {},
      contextWindowCompression: { slidingWindow: {} },
      inputAudioTranscription: { languageCodes: ['en'] },
      outputAudioTranscription: {},
    });
    expect(leg.session.texts).toEqual(['The call was answered. Greet the caller with exactly these words: "Good day."']);
    expect(leg.session.errors).toEqual([]);
  });

  it('refuses the call when Gemini refuses the setup', async () => {
    const leg = openProvider(
      (end, request) => {
        const session = new FakeGeminiSession(end, request);
        session.close(1_007, 'API key not valid.');
        return session;
      },
      { provider: 'gemini-live', url: 'wss://x.example.com/' },
    );
    await expect(leg.connect()).rejects.toThrow('1007 (API key not valid.)');
  });

  it('plays nothing more of a turn that the caller interrupts, and records what was heard', async () => {
    const leg = await talking();
    const { session } = leg;
    session.hear('Tell me ');
    session.hear('numbers.');
    session.say(tone(500, 1_000), 'One two three four five six seven eight nine ten.');
    leg.frames(25);
    session.interrupt();
    session.say(tone(500, 200), 'eleven');
    session.turnComplete();
    expect(leg.frames(3)).toEqual(Buffer.alloc(480, 0xff));
    session.say(tone(500, 100), 'Yes?');
    session.generated();
    session.turnComplete();
    expect(levelOf(leg.frames(5))).toBeGreaterThan(3_000);
    leg.frames(2);
    expect(leg.transcript().map(({ speaker, text, interrupted }) => [speaker, text, interrupted])).toEqual([
      ['caller', 'Tell me numbers.', undefined],
      ['agent', 'One two three four five', true],
      ['agent', 'Yes?', undefined],
    ]);
  });

  it('gets the result of each function as soon as it exists, and drops cancelled ones', async () => {
    const leg = await talking({ tools: [WEATHER] });
    const { session } = leg;
    const call = (id: string) => ({ id, name: 'the_weather', args: { day: 'Monday' } });
    session.call(call('1'), call('2'), call('3'));
    leg.frames(1);
    expect(leg.requests()).toHaveLength(3);
    leg.agent.notify({ type: 'tool-result', requestId: '1', result: 'rain', httpStatus: 200 });
    session.cancelCall('2');
    leg.frames(1);
    leg.agent.notify({ type: 'tool-result', requestId: '2', result: 'late', httpStatus: 200 });
    // The slow third one is not waited for.
    expect(session.responses).toEqual([
      [{ id: '1', name: 'the_weather', response: { result: 'rain', http_status: 200 }, scheduling: 'WHEN_IDLE' }],
    ]);
    leg.agent.notify({ type: 'refused', requestId: '3', request: 'tool', code: 'TOOL_TIMEOUT', message: 'm' });
    expect(session.responses[1]).toEqual([
      { id: '3', name: 'the_weather', response: { error: 'TOOL_TIMEOUT', message: 'm' }, scheduling: 'WHEN_IDLE' },
    ]);
    const behaviors = session.setup!.tools!.flatMap(({ functionDeclarations }) => functionDeclarations.map(({ behavior }) => behavior));
    expect(new Set(behaviors)).toEqual(new Set(['NON_BLOCKING']));
    session.call({ id: '4', name: 'hang_up', args: {} });
    leg.frames(13);
    expect(leg.hasHungUp()).toBe(true);
    expect(session.errors).toEqual([]);
  });

  it('resumes at goAway in a pause, but not while a tool runs, and starts a new session where it cannot resume', async () => {
    const leg = await talking({ tools: [WEATHER] });
    let closesBefore: readonly number[] = [];
    leg.onOpen = () => (closesBefore = [...leg.sessions[0]!.closed.all]);
    leg.session.resumable('handle-1');
    leg.session.call({ id: '1', name: 'the_weather', args: {} });
    leg.session.goAway(50);
    leg.frames(10, 0x20);
    expect(leg.sessions).toHaveLength(1);
    leg.agent.notify({ type: 'tool-result', requestId: '1', result: 'rain', httpStatus: 200 });
    leg.frames(5, 0x20);
    expect(leg.sessions).toHaveLength(2);
    // A session cannot be resumed while its first connection is open.
    expect(closesBefore).toEqual([1_000]);
    expect(leg.session.setup!.sessionResumption).toEqual({ handle: 'handle-1' });
    leg.session.hear('Are you there?');
    leg.session.say(tone(500, 40), 'I am.');
    leg.session.turnComplete();
    leg.frames(5);
    // A connection that breaks soon after another is not made anew at once.
    leg.frames(110);
    leg.session.resumable(null);
    leg.session.surprise();
    leg.session.close(1_011, 'Deadline expired');
    leg.frames(5);
    expect(leg.sessions).toHaveLength(3);
    expect(leg.session.setup).toMatchObject({ sessionResumption: {}, historyConfig: { initialHistoryInClientContent: true } });
    expect(leg.session.history).toEqual(['user: Are you there?', 'model: I am.']);
    expect(leg.sessions.flatMap(({ errors }) => errors)).toEqual([]);
  });

  it('renews a session that gets no goAway in a pause before its 58 minutes are over', async () => {
    const leg = await talking({}, { maxSilenceMs: 86_400_000 });
    leg.session.resumable('handle-1');
    leg.clock.advance(52 * 60_000);
    leg.agent.fill(new Uint8Array(160), leg.clock.nowMs());
    expect(leg.sessions).toHaveLength(1);
    leg.clock.advance(3 * 60_000);
    leg.frames(5);
    expect(leg.sessions).toHaveLength(2);
    expect(leg.session.setup!.sessionResumption).toEqual({ handle: 'handle-1' });
  });

  it('may answer pings within half a minute, and is left after a minute without a message', async () => {
    const leg = await talking({}, { maxSilenceMs: 86_400_000 });
    leg.ignorePings();
    leg.frames(2_900);
    leg.session.usage(1);
    leg.frames(2_900);
    expect(leg.sessions).toHaveLength(1);
    leg.frames(200);
    expect(leg.sessions).toHaveLength(2);
    expect(leg.notes.join()).toContain('answered no ping');
  });

  it('keeps half a sample at the end of an utterance from shifting the next one', async () => {
    const leg = await talking();
    leg.session.say(Buffer.concat([tone(1_000, 100), Uint8Array.of(0x55)]));
    leg.session.turnComplete();
    leg.frames(10);
    leg.session.say(tone(1_000, 400));
    leg.session.turnComplete();
    const heard = leg.frames(21);
    const other = await talking();
    other.session.say(tone(1_000, 100));
    other.session.turnComplete();
    other.frames(10);
    other.session.say(tone(1_000, 400));
    other.session.turnComplete();
    expect(heard).toEqual(other.frames(21));
  });
});

it('reports the tokens that the provider counts', async () => {
  const leg = await talking();
  leg.session.usage(40);
  leg.frames(1);
  expect(leg.events.filter(({ type }) => type === 'provider-tokens')).toEqual([{ type: 'provider-tokens', tokens: 40 }]);
});

describe('the adapter for Gemini', () => {
  const adapterOf = (settings: Partial<ProviderSettings> = {}) =>
    new GeminiLive({ ...PROVIDER, ...GEMINI, tools: [{ ...WEATHER, speech: 'One moment.' }], ...settings });
  const sent = (message: object) => ({ do: 'send', message });
  const content = (serverContent: object) => ({ serverContent });
  const says = (text: string) => content({ outputTranscription: { text } });
  const hears = (text: string, more: object = {}) => content({ inputTranscription: { text, ...more } });
  const audio = (...data: string[]) => content({ modelTurn: { parts: data.map((one) => ({ inlineData: { data: one } })) } });
  const DONE = content({ turnComplete: true });
  const INTERRUPTED = content({ interrupted: true });
  const played = (n: number, ...bytes: number[]) => ({ do: 'play', utterance: `utterance-${String(n)}`, bytes: Buffer.from(bytes) });
  const partly = (n: number, text: string) => ({ do: 'said', utterance: `utterance-${String(n)}`, text, isLast: false });
  const ended = (n: number) => ({ do: 'end-utterance', utterance: `utterance-${String(n)}` });
  const wholly = (n: number, text: string) => [{ do: 'said', utterance: `utterance-${String(n)}`, text, isLast: true }, ended(n)];
  const heard = (text: string) => ({ do: 'heard', text, audioMs: null });
  const called = (...calls: object[]) => ({ toolCall: { functionCalls: calls } });
  const ran = (more: object = {}) => ({ do: 'run-tool', callId: '1', name: 'the weather', input: {}, speech: 'One moment.', ...more });

  const SETUP = {
    model: 'models/gemini-3.8-live',
    generationConfig: { responseModalities: ['AUDIO'] },
    systemInstruction: { parts: [{ text: expect.stringMatching(/^You are the front desk.\n\nYou speak/) as string }] },
    tools: [{ functionDeclarations: [expect.objectContaining({ name: 'hang_up' }), expect.objectContaining({ name: 'do_not_call' })] }],
    inputAudioTranscription: { languageCodes: ['en'] },
    outputAudioTranscription: {},
    sessionResumption: {},
    contextWindowCompression: { slidingWindow: {} },
  };
  const EARLIER: readonly Said[] = [
    { speaker: 'agent', text: 'Hello.' },
    { speaker: 'caller', text: 'A table.' },
  ];
  const TURNS = [
    { role: 'model', parts: [{ text: 'Hello.' }] },
    { role: 'user', parts: [{ text: 'A table.' }] },
  ];
  it.each<[string, Partial<ProviderSettings>, readonly Said[], string | null, object, object[]]>([
    ['a first session', {}, [], null, {}, []],
    [
      'an end of speech',
      { endOfSpeechMs: 250 },
      [],
      null,
      { realtimeInputConfig: { automaticActivityDetection: { silenceDurationMs: 250 } } },
      [],
    ],
    [
      'a session with the conversation so far',
      {},
      EARLIER,
      null,
      { historyConfig: { initialHistoryInClientContent: true } },
      [sent({ clientContent: { turns: TURNS, turnComplete: true } })],
    ],
    ['a session that resumes', {}, EARLIER, 'handle', { sessionResumption: { handle: 'handle' } }, []],
  ])('opens %s', (_what, settings, conversation, resumption, more, first) => {
    const adapter = adapterOf({ tools: [], mayTransfer: false, ...settings });
    expect(adapter.target).toEqual({ url: GEMINI.url, headers: { 'x-goog-api-key': 'sk-secret' } });
    expect(shown(adapter.open(conversation, resumption))).toEqual([sent({ setup: { ...SETUP, ...more } })]);
    expect(receives(adapter, { setupComplete: {} }, { setupComplete: {} })).toEqual([...first, { do: 'accepted' }]);
  });

  it.each([
    ['gemini-3.8-live', { behavior: 'NON_BLOCKING' }],
    ['gemini-3.1-flash-live-preview', {}],
  ])('sends %s no parameters of a function that has none', (model, behavior) => {
    const [{ message }] = shown(adapterOf({ model, tools: [], mayTransfer: true }).open([], null)) as [{ message: { setup: object } }];
    expect(message.setup).toMatchObject({
      tools: [
        {
          functionDeclarations: [
            { name: 'hang_up', description: expect.any(String) as string, ...behavior },
            { name: 'do_not_call' },
            { name: 'transfer_call', parameters: { required: [] } },
            { name: 'press_keys', parameters: { required: ['digits'] } },
          ],
        },
      ],
    });
    expect(JSON.stringify(message)).not.toContain('"properties":{}');
  });

  it('sends a voice', () => {
    expect(JSON.stringify(shown(adapterOf({ voice: 'Kore' }).open([], null)))).toContain(
      '"generationConfig":{"responseModalities":["AUDIO"],"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}}}',
    );
  });

  it('sends audio and text in the form of Gemini, and nothing else', () => {
    const adapter = adapterOf();
    expect(JSON.parse(adapter.audio(Uint8Array.of(1, 2)) as string)).toEqual({
      realtimeInput: { audio: { data: 'AQI=', mimeType: 'audio/pcm;rate=16000' } },
    });
    expect(shown(adapter.begin())).toEqual([sent({ realtimeInput: { text: 'The call was answered. Greet the caller.' } })]);
    expect(adapter.interrupted()).toEqual([]);
  });

  it.each<[string, object[], object[]]>([
    ['audio, in parts', [audio('AQ==', '', 'Ag==')], [played(0, 1), played(0, 2)]],
    [
      'audio and text of two turns',
      [says(' One'), says(' two.'), DONE, says('Three.'), DONE],
      [partly(0, 'One'), partly(0, 'One two.'), ...wholly(0, 'One two.'), partly(1, 'Three.'), ...wholly(1, 'Three.')],
    ],
    [
      'all of a turn at once',
      [
        content({
          outputTranscription: { text: 'One.' },
          modelTurn: { parts: [{ inlineData: { data: 'AQ==' } }] },
          generationComplete: true,
        }),
      ],
      [partly(0, 'One.'), played(0, 1), ended(0)],
    ],
    [
      'an interruption, and drops the rest of the turn',
      [says('One.'), INTERRUPTED, says('Two.'), audio('AQ=='), DONE, says('Three.'), audio('Ag==')],
      [partly(0, 'One.'), { do: 'interrupt' }, partly(2, 'Three.'), played(2, 2)],
    ],
    [
      'audio with an interruption',
      [content({ interrupted: true, modelTurn: { parts: [{ inlineData: { data: 'AQ==' } }] } })],
      [{ do: 'interrupt' }],
    ],
    [
      'words of the caller until the turn is complete',
      [hears(' A '), hears('table. '), DONE, DONE],
      [heard('A table.'), ...wholly(0, ''), ...wholly(1, '')],
    ],
    [
      'words of the caller that are finished',
      [hears('A table.', { finished: true }), hears('Two', { finished: false })],
      [heard('A table.')],
    ],
    [
      'words of the caller until the agent speaks',
      [hears('A table.'), says('Of'), audio('AQ==')],
      [partly(0, 'Of'), heard('A table.'), played(0, 1)],
    ],
    ['words of the caller who interrupts', [hears('Stop.'), INTERRUPTED], [heard('Stop.'), { do: 'interrupt' }]],
    [
      'calls',
      [called({ id: '1', name: 'the_weather', args: { day: 'Monday' } }, { id: '2', name: 'hang_up' })],
      [ran({ input: { day: 'Monday' } }), ran({ callId: '2', name: 'hang_up', speech: '' })],
    ],
    ['calls that are cancelled', [{ toolCallCancellation: { ids: ['1', '2'] } }], [{ do: 'drop-tools', callIds: ['1', '2'] }]],
    ['tokens', [{ usageMetadata: { totalTokenCount: 40 } }], [{ do: 'used', tokens: 40 }]],
    ['goAway in 50.5 s', [{ goAway: { timeLeft: '50.5s' } }], [{ do: 'renew', withinMs: 50_500 }]],
    ['goAway a second ago', [{ goAway: { timeLeft: '-1s' } }], [{ do: 'renew', withinMs: 0 }]],
    ['goAway without a time', [{ goAway: {} }], [{ do: 'renew', withinMs: 10_000 }]],
    ['several fields', [{ setupComplete: {}, usageMetadata: { totalTokenCount: 1 } }], [{ do: 'accepted' }, { do: 'used', tokens: 1 }]],
    ['an unknown message', [{ voiceActivity: {} }], []],
    ['a message that is no object', [[]], [{ do: 'warn', message: 'a message that is not JSON' }]],
  ])('reads %s', (_what, messages, expected) => {
    expect(receives(adapterOf(), ...messages)).toEqual(expected);
  });

  it('is responding while it speaks, and while a function runs', () => {
    const adapter = adapterOf();
    const isResponding = (message: object): boolean => (receives(adapter, message), adapter.isResponding);
    expect([adapter.isResponding, isResponding(says('One')), isResponding(audio('AQ==')), isResponding(DONE)]).toEqual([
      false,
      false,
      true,
      false,
    ]);
    expect([isResponding(audio('AQ==')), isResponding(INTERRUPTED), isResponding(audio('AQ=='))]).toEqual([true, false, false]);
    expect([isResponding(called({ id: '1', name: 'hang_up' })), isResponding({ toolCallCancellation: { ids: ['1'] } })]).toEqual([
      true,
      false,
    ]);
  });

  it('sends each result once, and lets the model continue only where the caller waits for it', () => {
    const adapter = adapterOf();
    receives(adapter, called(...['1', '2'].map((id) => ({ id, name: 'hang_up' }))));
    const result = (id: string, continues = true) => shown(adapter.toolResult(id, { result: id }, continues));
    const response = (id: string, scheduling: string) => [
      sent({ toolResponse: { functionResponses: [{ id, name: 'hang_up', response: { result: id }, scheduling }] } }),
    ];
    expect([result('1'), result('1'), result('never')]).toEqual([response('1', 'WHEN_IDLE'), [], []]);
    expect(result('2', false)).toEqual(response('2', 'SILENT'));
  });

  it('sends the results of all calls after the last, or its cancellation, once, where the model waits for all', () => {
    const adapter = adapterOf({ model: 'gemini-3.1-flash-live-preview' });
    expect(JSON.stringify(shown(adapter.open([], null)))).not.toContain('NON_BLOCKING');
    const result = (id: string, continues = true) => shown(adapter.toolResult(id, { result: id }, continues));
    const [one, three] = ['1', '3'].map((id) => ({ id, name: 'hang_up', response: { result: id } }));
    receives(adapter, called(...['1', '2'].map((id) => ({ id, name: 'hang_up' }))));
    expect([result('1'), result('1'), result('never')]).toEqual([[], [], []]);
    expect(receives(adapter, { toolCallCancellation: { ids: ['2'] } })).toEqual([
      { do: 'drop-tools', callIds: ['2'] },
      sent({ toolResponse: { functionResponses: [one] } }),
    ]);
    receives(adapter, called({ id: '3', name: 'hang_up' }));
    expect(result('3', false)).toEqual([sent({ toolResponse: { functionResponses: [{ ...three, scheduling: 'SILENT' }] } })]);
    expect(receives(adapter, { toolCallCancellation: { ids: [] } })).toEqual([{ do: 'drop-tools', callIds: [] }]);
  });

  it('resumes with its latest handle, as long as Gemini allows it', () => {
    const adapter = adapterOf();
    const after = (update: object): string | null => (receives(adapter, { sessionResumptionUpdate: update }), adapter.resumption);
    expect([adapter.resumption, after({ resumable: true, newHandle: 'a' }), after({})]).toEqual([null, 'a', 'a']);
    expect([after({ resumable: true, newHandle: 'b' }), after({ resumable: true })]).toEqual(['b', null]);
    expect([after({ resumable: true, newHandle: 'c' }), after({ resumable: false, newHandle: 'd' })]).toEqual(['c', null]);
  });
});
