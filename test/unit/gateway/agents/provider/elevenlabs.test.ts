import { describe, expect, it } from 'vitest';
import { ElevenLabsAgent } from '../../../../../src/gateway/agents/provider/elevenlabs.js';
import type { ProviderSettings, Said, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { AgentUnavailableError } from '../../../../../src/gateway/ports/ports.js';
import { FakeElevenLabsSession, type FakeElevenLabsOptions } from '../../../../support/provider/fake-elevenlabs.js';
import { openProvider, PROVIDER } from '../../../../support/provider/provider-leg.js';
import { receives, shown } from '../../../../support/provider/without-socket.js';

const loud = (ms: number, byte = 0x10): Buffer => Buffer.alloc(8 * ms, byte);
const ELEVENLABS = { provider: 'elevenlabs', url: 'wss://api.elevenlabs.io/v1/convai/conversation', model: 'agent_1' } as const;
const open = (settings: Partial<ProviderSettings> = {}, options: FakeElevenLabsOptions = {}) =>
  openProvider((end, request) => new FakeElevenLabsSession(end, request, options), { ...ELEVENLABS, ...settings });
const talking = async (settings: Partial<ProviderSettings> = {}, options: FakeElevenLabsOptions = {}) => {
  const leg = open(settings, options);
  await leg.talk();
  return leg;
};

describe('an agent at ElevenLabs', () => {
  it('sends its overrides, and the call is answered once the formats are agreed', async () => {
    const leg = open({ voice: 'v1', language: 'GER', firstSentence: 'Guten Tag.' });
    await leg.connect();
    const override = leg.session.config?.conversation_config_override;
    expect(override?.agent?.prompt?.prompt).toContain('You are the front desk.');
    expect(override).toMatchObject({ agent: { first_message: 'Guten Tag.', language: 'de' }, tts: { voice_id: 'v1' } });
    expect(leg.session.errors).toEqual([]);
  });

  it('leaves the agent its own prompt and first message, and waits when it is set to', async () => {
    const own = await talking({ prompt: '' });
    expect(own.session.config?.conversation_config_override?.agent).toEqual({ language: 'en' });
    const waiting = await talking({ firstSentence: 'Hello.', waitsForGreeting: true });
    expect(waiting.session.config?.conversation_config_override?.agent?.first_message).toBe('');
  });

  it.each([
    [{ refusal: { code: 3_000, reason: 'no such agent' } }, 'closed the connection with 3000 (no such agent)'],
    [{ output: 'pcm_44100' }, 'audio formats are not supported (ulaw_8000, pcm_44100)'],
  ])('refuses the call on %j', async (options: FakeElevenLabsOptions, cause) => {
    const leg = open({}, options);
    await expect(leg.connect()).rejects.toBeInstanceOf(AgentUnavailableError);
    expect(leg.notes.join()).toContain(cause);
  });

  it('connects nothing without an agent id', async () => {
    const leg = open({ model: '' });
    await expect(leg.connect()).rejects.toThrow('there is no agent for elevenlabs');
    expect(leg.sessions).toEqual([]);
  });

  it.each(['pcm_8000', 'pcm_16000', 'pcm_24000', 'ulaw_8000'])('exchanges audio in %s on a leg with A-law', async (format) => {
    const leg = await talking({ codec: 'PCMA' }, { input: format, output: format });
    const bytesPerMs = { pcm_8000: 16, pcm_16000: 32, pcm_24000: 48, ulaw_8000: 8 }[format] ?? 0;
    leg.frames(30, 0x10);
    expect(leg.session.audio.length).toBeGreaterThan(bytesPerMs * 300);
    leg.session.say(Buffer.alloc(bytesPerMs * 200, 0x20));
    const heard = leg.frames(15);
    expect(new Set(heard).size).toBeGreaterThan(1);
    expect(leg.session.errors).toEqual([]);
  });

  it('plays nothing after an interruption, and the transcript has what the provider reports as heard', async () => {
    const leg = await talking();
    leg.session.text('One two three four five.');
    const id = leg.session.say(loud(2_000, 0x33));
    leg.frames(20);
    leg.session.interrupt(id);
    leg.session.late(loud(400, 0x33), id);
    leg.frames(1);
    expect(leg.frames(10).includes(0x33)).toBe(false);
    leg.session.correct('One two three four five.', 'One two');
    leg.session.callerSaid('Stop.');
    leg.session.text('Yes?');
    leg.session.say(loud(100, 0x44));
    expect(leg.frames(10).includes(0x44)).toBe(true);
    expect(leg.requests().flatMap((request) => (request.type === 'transcript' ? (request.correction ?? []) : []))).toEqual(['One two']);
    leg.agent.close();
    expect(leg.transcript().map(({ speaker, text, interrupted }) => [speaker, text.split(' ')[0], interrupted])).toEqual([
      ['agent', 'One', true],
      ['caller', 'Stop.', undefined],
      ['agent', 'Yes?', undefined],
    ]);
  });

  it('runs tools that are configured at ElevenLabs, and answers its pings', async () => {
    const leg = await talking();
    leg.session.ping(7);
    leg.session.call('c1', 'book', { day: 'Monday' });
    leg.session.call('c2', 'transfer_call', { to: '+15550100300' });
    leg.frames(1);
    expect(leg.session.of('pong')).toEqual([{ type: 'pong', event_id: 7 }]);
    expect(leg.requests()).toEqual([
      { type: 'tool', requestId: 'c1', name: 'book', input: { day: 'Monday' } },
      { type: 'transfer', requestId: 'c2', to: '+15550100300' },
    ]);
    leg.agent.notify({ type: 'tool-result', requestId: 'c1', result: { slot: 1 }, httpStatus: 200 });
    leg.agent.notify({ type: 'refused', requestId: 'c2', request: 'transfer', code: 'TRANSFER_NOT_ALLOWED', message: 'No.' });
    expect(leg.session.of('client_tool_result').map(({ tool_call_id: id, is_error: isError }) => [id, isError])).toEqual([
      ['c1', false],
      ['c2', true],
    ]);
    expect(leg.session.errors).toEqual([]);
  });

  it('is heard to its end when it ends the call, and gets a new connection with the conversation after a break', async () => {
    const leg = await talking();
    leg.session.text('Good day.');
    leg.session.say(loud(100, 0x22));
    leg.frames(10);
    leg.session.callerSaid('Hello?');
    leg.frames(2);
    leg.session.close(1_011, 'duration');
    leg.clock.advance(50);
    expect(leg.sessions).toHaveLength(2);
    leg.frames(2);
    expect(leg.session.config?.conversation_config_override?.agent?.first_message).toBe('');
    expect(leg.session.of('contextual_update')[0]?.text).toContain('You: Good day.\nCaller: Hello?');
    leg.session.text('Goodbye.');
    leg.session.say(loud(400, 0x55));
    leg.session.close(1_000);
    leg.frames(5);
    expect(leg.hasHungUp()).toBe(false);
    leg.frames(40);
    expect([leg.hasHungUp(), leg.isLost()]).toEqual([true, false]);
    expect(leg.transcript().at(-1)).toEqual({ speaker: 'agent', text: 'Goodbye.', at_ms: expect.any(Number) as number });
  });

  it('ignores unknown messages', async () => {
    const leg = await talking();
    leg.session.surprise();
    leg.session.text('Hi.');
    leg.session.say(loud(40, 0x66));
    expect(leg.frames(5).includes(0x66)).toBe(true);
  });
});

describe('the adapter for ElevenLabs', () => {
  const BOOK: SpokenTool = {
    name: 'book',
    description: 'Books.',
    speech: 'One moment.',
    input_schema: { type: 'object', example: null, required: [], properties: {} },
  };
  const adapterOf = (settings: Partial<ProviderSettings> = {}) =>
    new ElevenLabsAgent({ ...PROVIDER, ...ELEVENLABS, tools: [{ ...BOOK, name: 'other', speech: 'Wait.' }, BOOK], ...settings });
  const sent = (message: object) => ({ do: 'send', message });
  const metadata = (input = 'ulaw_8000', output = 'ulaw_8000') => ({
    type: 'conversation_initiation_metadata',
    conversation_initiation_metadata_event: { user_input_audio_format: input, agent_output_audio_format: output },
  });
  const audio = (id?: number | string, bytes = 'AQI=') => ({ type: 'audio', audio_event: { audio_base_64: bytes, event_id: id } });
  const interrupted = (id?: number | string) => ({ type: 'interruption', interruption_event: { event_id: id } });
  const answer = (text: string) => ({ type: 'agent_response', agent_response_event: { agent_response: text } });
  const wrote = (text: string) => ({ type: 'user_transcript', user_transcription_event: { user_transcript: text } });
  const called = (call: object) => ({ type: 'client_tool_call', client_tool_call: { tool_call_id: '1', tool_name: 'book', ...call } });
  const ran = (more: object) => ({ do: 'run-tool', callId: '1', name: 'book', input: {}, speech: 'One moment.', ...more });
  const played = (n: number) => ({ do: 'play', utterance: `utterance-${String(n)}`, bytes: Buffer.of(1, 2) });
  const said = (n: number, text: string) => ({ do: 'said', utterance: `utterance-${String(n)}`, text, isLast: true });
  const ended = (n: number) => ({ do: 'end-utterance', utterance: `utterance-${String(n)}` });
  const INTERRUPT = { do: 'interrupt' };
  const failed = (message: string) => [{ do: 'fail', message, isFinal: true }];

  const PROMPT = { prompt: { prompt: expect.stringMatching(/^You are the front desk.\n\nYou speak/) as string } };
  const EARLIER: readonly Said[] = [
    { speaker: 'agent', text: 'Hello.' },
    { speaker: 'caller', text: 'A table.' },
  ];
  it.each<[string, Partial<ProviderSettings>, readonly Said[], object]>([
    ['with a prompt', {}, [], { agent: { ...PROMPT, language: 'en' } }],
    ['with nothing but the language', { prompt: '', language: 'GER' }, [], { agent: { language: 'de' } }],
    ['with a voice', { prompt: '', voice: 'v1' }, [], { agent: { language: 'en' }, tts: { voice_id: 'v1' } }],
    ['with a first sentence', { firstSentence: 'Good day.' }, [], { agent: { ...PROMPT, first_message: 'Good day.', language: 'en' } }],
    ['without a sentence that waits', { waitsForGreeting: true }, [], { agent: { ...PROMPT, first_message: '', language: 'en' } }],
    ['with a later session', { firstSentence: 'Good day.' }, EARLIER, { agent: { ...PROMPT, first_message: '', language: 'en' } }],
  ])('sends for an agent %s the matching overrides', (_what, settings, conversation, override) => {
    const adapter = adapterOf(settings);
    expect(adapter.target).toEqual({ url: `${ELEVENLABS.url}?agent_id=agent_1`, headers: { 'xi-api-key': 'sk-secret' } });
    expect(shown(adapter.open(conversation))).toEqual([
      sent({ type: 'conversation_initiation_client_data', conversation_config_override: override }),
    ]);
  });

  it('sends texts, numbers and truth values of the metadata as variables, and user_id by itself', () => {
    const metadata = { name: 'Ann', stay: 3, isVip: true, user_id: 42, room: { floor: 1 }, tags: ['x'], none: null };
    const [opening] = shown(adapterOf({ metadata }).open([]));
    expect((opening as { readonly message: object }).message).toMatchObject({
      dynamic_variables: { name: 'Ann', stay: 3, isVip: true },
      user_id: '42',
    });
  });

  it('sends nothing of its own, and audio as text', () => {
    const adapter = adapterOf();
    expect([adapter.begin(), adapter.interrupted()]).toEqual([[], []]);
    expect(JSON.parse(adapter.audio(Uint8Array.of(1, 2)) as string)).toEqual({ user_audio_chunk: 'AQI=' });
    expect(shown(adapter.inform('Wait.'))).toEqual([sent({ type: 'user_message', text: 'Wait.' })]);
  });

  it.each([
    ['ulaw_8000', 'pcm_16000', { input: 'pcmu', output: 'pcm16-16000' }],
    ['pcm_24000', 'pcm_8000', { input: 'pcm16-24000', output: 'pcm16-8000' }],
  ])('hears %s and speaks %s, as ElevenLabs states first', (input, output, formats) => {
    const adapter = adapterOf();
    expect(receives(adapter, metadata(input, output), metadata())).toEqual([{ do: 'accepted' }]);
    expect(adapter.formats).toEqual(formats);
  });

  it.each([
    ['ulaw_8000', 'pcm_44100'],
    ['pcm_48000', 'ulaw_8000'],
  ])('fails with %s and %s', (input, output) => {
    expect(receives(adapterOf(), metadata(input, output))).toEqual(
      failed(`the agent's audio formats are not supported (${input}, ${output}): set ulaw_8000`),
    );
  });

  it('sends a later session the conversation so far', () => {
    const adapter = adapterOf();
    adapter.open(EARLIER);
    const text = 'The connection was interrupted. The conversation so far:\nYou: Hello.\nCaller: A table.';
    expect(receives(adapter, metadata())).toEqual([sent({ type: 'contextual_update', text }), { do: 'accepted' }]);
  });

  it.each<[string, object[], object[]]>([
    ['audio', [audio(1), audio(2, '')], [played(0)]],
    [
      'a text before its audio, and the next',
      [answer(' A. '), audio(1), answer('B.')],
      [said(0, 'A.'), played(0), ended(0), said(1, 'B.')],
    ],
    ['audio before its text', [audio(1), answer('A.'), audio(2)], [played(0), said(0, 'A.'), played(0)]],
    ['a text without audio, and the next', [answer('A.'), answer('B.')], [said(0, 'A.'), said(0, 'B.')]],
    ['words of the caller', [audio(1), wrote(' Hi. ')], [played(0), ended(0), { do: 'heard', text: 'Hi.', audioMs: null }]],
    ['no words of the caller', [audio(1), wrote(' '), audio(2)], [played(0), ended(0), played(1)]],
    ['words after words', [wrote('Hi.'), audio(1)], [{ do: 'heard', text: 'Hi.', audioMs: null }, played(0)]],
    ['empty words twice', [audio(1), wrote(''), wrote('')], [played(0), ended(0)]],
    [
      'audio before the text of the next answer',
      [answer('A.'), audio(1), wrote(''), audio(2), answer('B.')],
      [said(0, 'A.'), played(0), ended(0), played(1), said(1, 'B.')],
    ],
    ['no audio up to an interruption', [interrupted(5), audio(5), audio('4'), audio(6)], [INTERRUPT, played(1)]],
    ['ids that are strings', [interrupted('5'), audio('5'), audio('6')], [INTERRUPT, played(1)]],
    ['the later of two interruptions', [interrupted(5), interrupted(3), audio(4)], [INTERRUPT, INTERRUPT]],
    ['an interruption without an id, between others', [interrupted(5), interrupted(), audio(5)], [INTERRUPT, INTERRUPT]],
    [
      'an interrupted text, and the next',
      [answer('A.'), audio(1), interrupted(1), answer('B.')],
      [said(0, 'A.'), played(0), INTERRUPT, said(1, 'B.')],
    ],
    [
      'a correction to what was heard',
      [{ type: 'agent_response_correction', agent_response_correction_event: { corrected_agent_response: ' One ' } }],
      [{ do: 'corrected', text: 'One' }],
    ],
    ['a ping', [{ type: 'ping', ping_event: { event_id: '7' } }], [sent({ type: 'pong', event_id: '7' })]],
    ['a call', [called({ parameters: { day: 'Monday' } })], [ran({ input: { day: 'Monday' } })]],
    ['a call of a function without speech', [called({ tool_name: 'hang_up' })], [ran({ name: 'hang_up', speech: '' })]],
    ['an error before it is accepted', [{ type: 'client_error' }], failed('the provider sent an error')],
    [
      'an error later',
      [metadata(), { type: 'client_error' }],
      [{ do: 'accepted' }, { do: 'warn', message: 'the provider sent an error', isFailure: true }],
    ],
    ['an unknown message', [{ type: 'vad_score' }], []],
    ['a message that is no object', [[]], [{ do: 'warn', message: 'a message that is not JSON' }]],
  ])('reads %s', (_what, messages, expected) => {
    expect(receives(adapterOf(), ...messages)).toEqual(expected);
  });

  it.each([
    [{ result: 'ok' }, false],
    [{ error: 'TOOL_TIMEOUT' }, true],
    ['error', false],
  ])('accepts the result %j of a call once, as an error: %s', (output, isError) => {
    const adapter = adapterOf();
    expect([adapter.isResponding, adapter.toolResult('1', output)]).toEqual([false, []]);
    receives(adapter, called({}));
    expect(adapter.isResponding).toBe(true);
    expect(shown(adapter.toolResult('1', output))).toEqual([
      sent({ type: 'client_tool_result', tool_call_id: '1', result: JSON.stringify(output), is_error: isError }),
    ]);
    expect([adapter.isResponding, adapter.toolResult('1', output)]).toEqual([false, []]);
  });
});
