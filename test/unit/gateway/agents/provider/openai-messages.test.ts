import { describe, expect, it } from 'vitest';
import { OpenAiRealtime } from '../../../../../src/gateway/agents/provider/openai-realtime.js';
import type { ProviderSettings, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { PROVIDER } from '../../../../support/provider/provider-leg.js';
import { receives, shown } from '../../../../support/provider/without-socket.js';

const tool = (name: string, speech: string | null = null): SpokenTool => ({
  name,
  description: `Does ${name}.`,
  speech,
  input_schema: { type: 'object', example: null, required: [], properties: {} },
});

describe('the adapter for OpenAI', () => {
  const adapterOf = (settings: Partial<ProviderSettings> = {}) =>
    new OpenAiRealtime({ ...PROVIDER, tools: [tool('the weather', 'One moment.')], ...settings });
  const sent = (message: object) => ({ do: 'send', message });
  const created = (id: string, more: object = {}) => ({ type: 'response.created', response: { id, ...more } });
  const done = (id: string, more: object = {}) => ({ type: 'response.done', response: { id, ...more } });
  const ofItem = (type: string, more: object, item = 'i') => ({ type: `response.${type}`, response_id: 'r', item_id: item, ...more });
  const audio = (item?: string) => ofItem('output_audio.delta', { delta: 'AQI=' }, item);
  const text = (delta: string, item?: string) => ofItem('output_audio_transcript.delta', { delta }, item);
  const called = (more: object = {}) =>
    ofItem('function_call_arguments.done', { call_id: 'c', name: 'the_weather', arguments: '{"day":"Monday"}', ...more });
  const error = (code: string, more: object = {}) => ({ type: 'error', error: { code, ...more } });
  const UPDATED = { type: 'session.updated' };
  const STARTED = { type: 'input_audio_buffer.speech_started', item_id: 'said', audio_start_ms: 200 };
  const STOPPED = { type: 'input_audio_buffer.speech_stopped' };
  const wrote = (transcript: string, item = 'said') => ({
    type: 'conversation.item.input_audio_transcription.completed',
    item_id: item,
    transcript,
  });

  const item = (role: string, type: string, words: string) =>
    sent({ type: 'conversation.item.create', item: { type: 'message', role, content: [{ type, text: words }] } });
  const output = (result: string) =>
    sent({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id: 'c', output: result } });
  const RESPOND = sent({ type: 'response.create' });
  const phrase = (words: string) =>
    sent({
      type: 'response.create',
      response: {
        conversation: 'none',
        metadata: { phrase: 'true' },
        instructions: `Say exactly these words, and nothing else: "${words}"`,
        input: [],
        tools: [],
        tool_choice: 'none',
      },
    });
  const PHRASE = { metadata: { phrase: 'true' } };
  const SPEAKS = [{ do: 'caller-speech', isSpeaking: true }, { do: 'interrupt' }];
  const SPOKE = { do: 'caller-speech', isSpeaking: false };
  const ACCEPTED = { do: 'accepted' };
  const played = (utterance = 'i') => ({ do: 'play', utterance, bytes: Buffer.of(1, 2) });
  const said = (words: string, isLast: boolean, utterance = 'i') => ({ do: 'said', utterance, text: words, isLast });
  const ended = (utterance = 'i') => ({ do: 'end-utterance', utterance });
  const ran = (more: object = {}) => ({ do: 'run-tool', callId: 'c', name: 'the weather', input: { day: 'Monday' }, ...more });
  const ERROR = 'the provider sent an error:';

  it('opens the session of a call that an earlier version began, whose settings have no tuning', () => {
    const earlier = Object.fromEntries(Object.entries(PROVIDER).filter(([name]) => name !== 'tuning')) as unknown as ProviderSettings;
    expect(new OpenAiRealtime(earlier).open([])).toHaveLength(1);
  });

  it.each<[string, Partial<ProviderSettings>, object, object, object, object?]>([
    ['µ-law', {}, { type: 'audio/pcmu' }, {}, {}],
    ['A-law and a voice', { codec: 'PCMA', voice: 'marin' }, { type: 'audio/pcma' }, {}, { voice: 'marin' }],
    [
      'linear audio and an end of speech',
      { audio: 'pcm-24000', endOfSpeechMs: 250 },
      { type: 'audio/pcm', rate: 24_000 },
      { turn_detection: { type: 'server_vad', silence_duration_ms: 250 } },
      {},
    ],
    [
      'a voice of its own and tuning',
      {
        voice: 'voice_1234',
        endOfSpeechMs: 250,
        tuning: { noise_reduction: 'near_field', semantic_vad: 'high', reasoning_effort: 'low' },
      },
      { type: 'audio/pcmu' },
      { noise_reduction: { type: 'near_field' }, turn_detection: { type: 'semantic_vad', eagerness: 'high' } },
      { voice: { id: 'voice_1234' } },
      { reasoning: { effort: 'low' } },
    ],
  ])('opens the session of an agent with %s', (_what, settings, format, input, voice, further = {}) => {
    const adapter = adapterOf({ tools: [], mayTransfer: false, ...settings });
    expect(adapter.target).toEqual({ url: `${PROVIDER.url}?model=gpt-realtime-2.1`, headers: { Authorization: 'Bearer sk-secret' } });
    expect(shown(adapter.open([]))).toEqual([
      sent({
        type: 'session.update',
        session: {
          type: 'realtime',
          model: 'gpt-realtime-2.1',
          instructions: expect.stringMatching(/^You are the front desk.\n\nYou speak/) as string,
          output_modalities: ['audio'],
          audio: {
            input: { format, transcription: { model: 'gpt-4o-mini-transcribe', language: 'en' }, ...input },
            output: { format, ...voice },
          },
          ...further,
          tools: ['hang_up', 'do_not_call'].map((name) => expect.objectContaining({ type: 'function', name }) as object),
          tool_choice: 'auto',
          tracing: null,
        },
      }),
    ]);
    expect(receives(adapter, UPDATED, UPDATED)).toEqual([ACCEPTED]);
  });

  it('sends a later session the conversation so far, and what another service spoke', () => {
    const adapter = adapterOf();
    adapter.open([
      { speaker: 'agent', text: 'Hello.' },
      { speaker: 'caller', text: 'A table.' },
    ]);
    expect(receives(adapter, UPDATED)).toEqual([
      item('assistant', 'output_text', 'Hello.'),
      item('user', 'input_text', 'A table.'),
      ACCEPTED,
    ]);
    expect(shown(adapter.spoke('Good day.'))).toEqual([item('assistant', 'output_text', 'Good day.')]);
  });

  it.each<[string, object[], object[]]>([
    [
      'an answer',
      [
        created('r'),
        audio(),
        text('One'),
        text(' two.'),
        ofItem('output_audio.done', {}),
        ofItem('output_audio_transcript.done', { transcript: 'One, two.' }),
        done('r'),
      ],
      [played(), said('One', false), said('One two.', false), ended(), said('One, two.', true), said('One, two.', true), ended()],
    ],
    [
      'an answer of two items',
      [created('r'), text('One.', 'a'), audio('b'), done('r')],
      [said('One.', false, 'a'), played('b'), said('One.', true, 'a'), ended('a'), said('', true, 'b'), ended('b')],
    ],
    [
      'an answer that the caller interrupts',
      [created('r'), text('One'), STARTED, audio(), text(' two'), called(), done('r'), audio()],
      [said('One', false), ...SPEAKS],
    ],
    ['the answer after an interrupted one', [created('q'), STARTED, STOPPED, created('r'), audio()], [...SPEAKS, SPOKE, played()]],
    [
      'words of the caller, and where they began',
      [STARTED, STOPPED, wrote(' Hi. '), wrote('Hm.')],
      [...SPEAKS, SPOKE, { do: 'heard', text: 'Hi.', audioMs: 200 }, { do: 'heard', text: 'Hm.', audioMs: null }],
    ],
    [
      'words without their time',
      [{ ...STARTED, audio_start_ms: null }, wrote('Hi.')],
      [...SPEAKS, { do: 'heard', text: 'Hi.', audioMs: 0 }],
    ],
    ['empty words', [wrote(' ')], []],
    [
      'words that were not transcribed',
      [{ type: 'conversation.item.input_audio_transcription.failed', error: { type: 'server_error' } }],
      [{ do: 'not-heard', message: `${ERROR} server_error` }],
    ],
    ['a call', [called()], [ran()]],
    [
      'a call whose name came before',
      [ofItem('output_item.added', { item: { type: 'function_call', call_id: 'c', name: 'hang_up' } }), called({ name: undefined })],
      [ran({ name: 'hang_up' })],
    ],
    [
      'another item that came before',
      [ofItem('output_item.added', { item: { type: 'message', call_id: 'c', name: 'hang_up' } }), called({ name: undefined })],
      [ran({ name: '' })],
    ],
    ['a call with arguments that are not JSON', [called({ arguments: '{' })], [ran({ input: undefined })]],
    ['tokens', [done('r', { usage: { total_tokens: 40 } })], [{ do: 'used', tokens: 40 }]],
    [
      'an answer that failed',
      [done('r', { status: 'failed', status_details: { error: { code: 'rate_limit_exceeded' } } })],
      [{ do: 'unanswered', message: `${ERROR} rate_limit_exceeded (a rate limit was reached)` }],
    ],
    [
      'an answer that was cut off',
      [done('r', { status: 'incomplete', status_details: { type: 'incomplete', reason: 'content_filter' } })],
      [{ do: 'unanswered', message: 'the provider broke an answer off: content_filter' }],
    ],
    [
      'an answer that failed for good',
      [done('r', { status: 'failed', status_details: { error: { code: 'insufficient_quota' } } })],
      [{ do: 'fail', message: `${ERROR} insufficient_quota (the account has no quota left)`, isFinal: true }],
    ],
    ['an answer that was cancelled', [done('r', { status: 'cancelled', status_details: { error: { code: 'insufficient_quota' } } })], []],
    ['an error before it is accepted', [error('x')], [{ do: 'fail', message: `${ERROR} x`, isFinal: false }]],
    [
      'a final error',
      [UPDATED, error('invalid_api_key')],
      [ACCEPTED, { do: 'fail', message: `${ERROR} invalid_api_key (the key is wrong)`, isFinal: true }],
    ],
    [
      'the end of its session',
      [UPDATED, error('session_expired')],
      [ACCEPTED, { do: 'fail', message: `${ERROR} session_expired`, isFinal: false }],
    ],
    [
      'an error with its field',
      [UPDATED, error('invalid_value', { param: 'item.id' })],
      [ACCEPTED, { do: 'warn', message: `${ERROR} invalid_value at item.id (a field has a wrong value)` }],
    ],
    ['an error of a type', [UPDATED, error('', { type: 'server_error' })], [ACCEPTED, { do: 'warn', message: `${ERROR} server_error` }]],
    ['an error of no type', [UPDATED, { type: 'error' }], [ACCEPTED, { do: 'warn', message: `${ERROR} unknown` }]],
    ['an unknown message', [{ type: 'rate_limits.updated' }], []],
    ['a message that is no object', [[]], [{ do: 'warn', message: 'a message that is not JSON' }]],
  ])('reads %s', (_what, messages, expected) => {
    expect(receives(adapterOf(), ...messages)).toEqual(expected);
  });

  it('drops the rest of the last 50 interrupted answers', () => {
    const adapter = adapterOf();
    for (let n = 0; n <= 50; n += 1) receives(adapter, created(`r${String(n)}`), STARTED, STOPPED, done(`r${String(n)}`));
    const rest = (response: string) => receives(adapter, { ...audio(), response_id: response });
    expect([rest('r0'), rest('r1'), rest('r50')]).toEqual([[played()], [], []]);
  });

  it.each([
    [2_999, false],
    [3_000, true],
  ])('takes a close with %i as final: %s', (code, isFinal) => {
    expect(adapterOf().closed(code, 'why')).toEqual({ message: `the provider closed the connection with ${String(code)} (why)`, isFinal });
  });

  it('sends how much was heard of each item of the conversation', () => {
    const adapter = adapterOf();
    receives(adapter, created('r', PHRASE), audio('aside'), text('', 'aside too'));
    const heard = ['i', 'aside', 'aside too'].map((utterance) => ({ utterance, playedMs: 500 }));
    expect(shown(adapter.interrupted(heard))).toEqual([
      sent({ type: 'conversation.item.truncate', item_id: 'i', content_index: 0, audio_end_ms: 500 }),
    ]);
  });

  describe('the adapter’s request for an answer', () => {
    const WAIT = item('system', 'input_text', 'Wait.');
    const informed = (adapter: OpenAiRealtime) => shown(adapter.inform('Wait.'));

    it('begins the conversation, and it is responding until the answer is over', () => {
      const adapter = adapterOf();
      expect(adapter.isResponding).toBe(false);
      expect(shown(adapter.begin())).toEqual([item('system', 'input_text', 'The call was answered. Greet the caller.'), RESPOND]);
      expect(adapter.isResponding).toBe(true);
      receives(adapter, created('r'));
      expect(adapter.isResponding).toBe(true);
      expect([receives(adapter, done('r')), adapter.isResponding]).toEqual([[], false]);
    });

    it.each<[string, (object | 'inform')[], object[]]>([
      ['once', ['inform', created('r'), done('r')], [WAIT, RESPOND]],
      ['twice, when the first was requested before', ['inform', 'inform', created('r'), done('r')], [WAIT, RESPOND, WAIT, RESPOND]],
      ['after the answer in progress', [created('q'), 'inform', done('q')], [WAIT, RESPOND]],
      ['after the caller’s words', [STARTED, 'inform', STOPPED], [...SPEAKS, WAIT, SPOKE, RESPOND]],
      ['not after an answer that began in the meantime', [STARTED, 'inform', created('q'), STOPPED, done('q')], [...SPEAKS, WAIT, SPOKE]],
      [
        'after a phrase spoken in the meantime',
        [STARTED, 'inform', created('q', PHRASE), STOPPED, done('q')],
        [...SPEAKS, WAIT, SPOKE, RESPOND],
      ],
      [
        'again, when another answer came first',
        [UPDATED, 'inform', created('q'), error('conversation_already_has_active_response'), done('q')],
        [ACCEPTED, WAIT, RESPOND, RESPOND],
      ],
      [
        'again, when the one before was refused',
        [UPDATED, 'inform', error('invalid_value'), 'inform'],
        [ACCEPTED, WAIT, RESPOND, { do: 'unanswered', message: `${ERROR} invalid_value (a field has a wrong value)` }, WAIT, RESPOND],
      ],
    ])('is sent %s', (_what, steps, expected) => {
      const adapter = adapterOf();
      expect(steps.flatMap((step) => (step === 'inform' ? informed(adapter) : receives(adapter, step)))).toEqual(expected);
    });

    it.each([
      [true, [output('{"result":1}'), RESPOND]],
      [false, [output('{"result":1}')]],
    ])('is sent after the result of a call that continues: %s', (continues, expected) => {
      const adapter = adapterOf({ tools: [] });
      expect(receives(adapter, called({ name: 'hang_up' }))).toEqual([ran({ name: 'hang_up' })]);
      expect(adapter.isResponding).toBe(true);
      expect(shown(adapter.toolResult('c', { result: 1 }, continues))).toEqual(expected);
      expect([adapter.isResponding, adapter.toolResult('c', 1, true)]).toEqual([continues, []]);
    });

    it('is sent that was due before a result after which nothing follows', () => {
      const adapter = adapterOf({ tools: [] });
      receives(adapter, called({ name: 'hang_up' }));
      expect(informed(adapter)).toEqual([WAIT]);
      expect(shown(adapter.toolResult('c', 1, false))).toEqual([output('1'), RESPOND]);
    });

    it('is sent in place of one that began while a call ran', () => {
      const adapter = adapterOf({ tools: [] });
      receives(adapter, called({ name: 'hang_up' }));
      informed(adapter);
      receives(adapter, created('r'));
      expect(shown(adapter.toolResult('c', 1, false))).toEqual([output('1')]);
      expect(receives(adapter, done('r'))).toEqual([RESPOND]);
    });

    it('is sent after the speech that was requested before the result', () => {
      const adapter = adapterOf();
      expect(receives(adapter, created('r'), called(), done('r'))).toEqual([ran(), phrase('One moment.')]);
      expect(shown(adapter.toolResult('c', 1, true))).toEqual([output('1')]);
      expect(receives(adapter, created('p', PHRASE), done('p'))).toEqual([RESPOND]);
    });

    it('has the speech of each running tool, once', () => {
      const adapter = adapterOf({ tools: [tool('silent'), tool('slow', 'Wait.'), tool('slower', 'Still.')] });
      receives(adapter, created('r'));
      const calls = ['silent', 'slow', 'slower'].map((name) => called({ call_id: name, name }));
      receives(adapter, ...calls);
      expect(receives(adapter, done('r'))).toEqual([phrase('Wait.')]);
      expect([adapter.isResponding, receives(adapter, created('p', PHRASE), done('p'))]).toEqual([true, [phrase('Still.')]]);
      expect(receives(adapter, created('q', PHRASE), done('q'))).toEqual([]);
    });
  });
});
