import { describe, expect, it } from 'vitest';
import type { AgentConnectionLimits } from '../../../../../src/gateway/model/agent.js';
import type { ProviderSettings, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { AgentUnavailableError } from '../../../../../src/gateway/ports/ports.js';
import { FakeOpenAiSession } from '../../../../support/provider/fake-openai.js';
import { openProvider } from '../../../../support/provider/provider-leg.js';

const SILENCE = 0xff;
const loud = (ms: number, byte = 0x10): Buffer => Buffer.alloc(8 * ms, byte);
const tool = (name: string, more: Partial<SpokenTool> = {}): SpokenTool => ({
  name,
  description: `Does ${name}.`,
  speech: null,
  input_schema: { type: 'object', example: null, required: ['day'], properties: { day: 'YYYY-MM-DD' } },
  ...more,
});
const open = (settings: Partial<ProviderSettings> = {}, limits: Partial<AgentConnectionLimits> = {}) =>
  openProvider((end, request) => new FakeOpenAiSession(end, request), settings, limits);
const talking = async (settings: Partial<ProviderSettings> = {}, limits: Partial<AgentConnectionLimits> = {}) => {
  const leg = open(settings, limits);
  await leg.talk();
  return leg;
};
/** The first response is over, and nothing of it is left. */
const greeted = async (settings: Partial<ProviderSettings> = {}, limits: Partial<AgentConnectionLimits> = {}) => {
  const leg = await talking(settings, limits);
  leg.session.utter(leg.session.responses.all[0]!.id, loud(20), 'Hello.');
  leg.frames(5);
  return leg;
};
const systemTexts = ({ session }: { readonly session: FakeOpenAiSession }): string[] =>
  session
    .of('conversation.item.create')
    .flatMap(({ item }) => (item.type === 'message' && item.role === 'system' ? [item.content[0].text] : []));
const outputs = ({ session }: { readonly session: FakeOpenAiSession }) =>
  session
    .of('conversation.item.create')
    .flatMap(({ item }) => (item.type === 'function_call_output' ? [[item.call_id, JSON.parse(item.output) as unknown]] : []));

describe('an agent at OpenAI before the answer', () => {
  it('sends its settings in the form of the reference, and the call is answered once they are accepted', async () => {
    const leg = open({
      voice: 'marin',
      language: 'GER',
      endOfSpeechMs: 800,
      codec: 'PCMA',
      pronunciationGuide: [{ word: 'ETA', pronunciation: 'E T A', case_sensitive: true, spaced: true }],
      tools: [tool('book a table'), tool('book.a.table'), tool('hang_up')],
    });
    await leg.connect();
    const { session } = leg;
    expect(session.errors).toEqual([]);
    expect(session.config).toMatchObject({
      type: 'realtime',
      model: 'gpt-realtime-2.1',
      output_modalities: ['audio'],
      audio: {
        input: {
          format: { type: 'audio/pcma' },
          transcription: { model: 'gpt-4o-mini-transcribe', language: 'de' },
          turn_detection: { type: 'server_vad', silence_duration_ms: 800 },
        },
        output: { format: { type: 'audio/pcma' }, voice: 'marin' },
      },
      tracing: null,
    });
    const { instructions, tools } = session.config!;
    expect(instructions).toContain('You are the front desk.');
    expect(instructions).toContain('Speak German');
    expect(instructions).toContain('"ETA" (only with these capital and small letters): "E T A"');
    expect(tools!.map((one) => (one as { name: string }).name)).toEqual([
      'book_a_table',
      'book_a_table_2',
      'hang_up_2',
      'hang_up',
      'do_not_call',
      'transfer_call',
      'press_keys',
    ]);
    expect(tools![0]).toMatchObject({
      parameters: { type: 'object', properties: { day: { type: 'string', description: 'YYYY-MM-DD' } }, required: ['day'] },
    });
  });

  it('keeps the provider’s own end of speech with a threshold of 100, and uses 24 kHz where it is set', async () => {
    const leg = open({ audio: 'pcm-24000' });
    await leg.connect();
    expect(leg.session.config!.audio!.input).toEqual({
      format: { type: 'audio/pcm', rate: 24_000 },
      transcription: { model: 'gpt-4o-mini-transcribe', language: 'en' },
    });
  });

  it('refuses the call when the provider refuses the connection or the settings, or does not answer in time', async () => {
    const refused = open();
    refused.refusals.push('the upgrade was answered with HTTP 401');
    await expect(refused.connect()).rejects.toThrow(AgentUnavailableError);
    expect(refused.notes.at(-1)).toContain('HTTP 401');

    const wrong = openProvider((end, request) => {
      const session = new FakeOpenAiSession(end, request);
      session.acceptsSession = false;
      session.error('model_not_found');
      return session;
    });
    await expect(wrong.connect()).rejects.toThrow('model_not_found');
    expect(wrong.notes.join()).not.toContain('secrets');

    const silent = openProvider((end, request) => {
      const session = new FakeOpenAiSession(end, request);
      session.acceptsSession = false;
      return session;
    });
    const connected = silent.agent.connect();
    const failed = expect(connected).rejects.toThrow('no answer within 5000 ms');
    await silent.clock.advanceAsync(5_001);
    await failed;
    expect(silent.session.closed.all).toHaveLength(1);
  });

  it('opens no connection without a key', async () => {
    const leg = open({ apiKey: null });
    await expect(leg.agent.connect()).rejects.toThrow('there is no key for openai-realtime');
    expect(leg.sessions).toHaveLength(0);
  });
});

describe('the greeting of an agent at OpenAI', () => {
  it('is requested before the ACK, is kept, and begins with it', async () => {
    const leg = open({ firstSentence: 'Blue Harbor, good day.' });
    await leg.connect();
    expect(systemTexts(leg)).toEqual(['The call was answered. Greet the caller with exactly these words: "Blue Harbor, good day."']);
    leg.session.utter(leg.session.responses.all[0]!.id, loud(100), 'Blue Harbor, good day.');
    leg.clock.advance(500);
    leg.start();
    expect(leg.frames(5)).toEqual(loud(100));
    expect(leg.transcript()).toEqual([{ speaker: 'agent', text: 'Blue Harbor, good day.', at_ms: 20 }]);
  });

  it('is left to the caller with wait_for_greeting', async () => {
    const leg = await talking({ waitsForGreeting: true, firstSentence: 'Good day.' });
    leg.frames(50);
    expect(leg.session.messages.all.map(({ type }) => type)).toEqual(['session.update']);
    expect(leg.session.config!.instructions).toContain('Begin your first answer with exactly these words: "Good day."');
  });
});

describe('the audio of an agent at OpenAI', () => {
  it('passes both ways in the leg’s own law, byte for byte, in chunks of any length', async () => {
    const leg = await talking({ codec: 'PCMA', waitsForGreeting: true });
    leg.frames(10, 0x2a);
    expect(leg.session.audio).toEqual(Buffer.alloc(1_600, 0x2a));
    const { session } = leg;
    const response = session.begin();
    const item = session.item(response);
    const speech = Buffer.from(Array.from({ length: 800 }, (_, i) => i % 97));
    for (const byte of speech) session.say(response, item, Uint8Array.of(byte), '');
    session.finish(response, item, 'Hm.');
    expect(leg.frames(6).subarray(0, 800)).toEqual(speech);
    expect(session.errors).toEqual([]);
  });

  it('is silence while the carrier holds the call', async () => {
    const leg = await talking({ waitsForGreeting: true });
    leg.frames(1, 0x11);
    for (let i = 0; i < 4; i += 1) {
      leg.clock.advance(1_000);
      leg.agent.pass(leg.clock.nowMs(), 50);
    }
    expect(leg.session.audio.length).toBeGreaterThanOrEqual(3 * 8_000);
    expect(leg.session.audio.subarray(-4_000)).toEqual(Buffer.alloc(4_000, SILENCE));
  });
});

describe('an interruption of an agent at OpenAI', () => {
  it('ends the utterance at once, truncates it by exactly what was sent, and marks the transcript', async () => {
    const leg = await greeted();
    const { session } = leg;
    const response = session.begin();
    const item = session.item(response);
    session.say(response, item, loud(1_000), 'One two three four five six seven eight nine ten.');
    session.finish(response, item, 'One two three four five six seven eight nine ten.');
    leg.frames(25);
    session.callerSpeaks();
    leg.clock.advance(0);
    expect(leg.frames(2)).toEqual(Buffer.alloc(320, SILENCE));
    expect(session.of('conversation.item.truncate')).toEqual([
      { type: 'conversation.item.truncate', item_id: item, content_index: 0, audio_end_ms: 500 },
    ]);
    // Audio that was on its way, and that of the next response.
    session.say(response, item, loud(200, 0x22), '');
    session.cancel();
    const next = session.begin();
    session.utter(next, loud(40, 0x33), 'Yes?');
    expect(leg.frames(2)).toEqual(loud(40, 0x33));
    expect(leg.transcript().slice(1)).toEqual([
      { speaker: 'agent', text: 'One two three four five', at_ms: expect.any(Number) as number, interrupted: true },
      { speaker: 'agent', text: 'Yes?', at_ms: expect.any(Number) as number },
    ]);
    expect(session.errors).toEqual([]);
  });

  it('truncates nothing that was heard to its end, nor more than was received', async () => {
    const leg = await greeted();
    const { session } = leg;
    session.utter(session.begin(), loud(60), 'All of it.');
    leg.frames(10);
    session.callerSpeaks();
    leg.frames(1);
    expect(session.of('conversation.item.truncate')).toEqual([]);
    session.cancel();
    const response = session.begin();
    const item = session.item(response);
    session.say(response, item, loud(50), 'Some ');
    leg.frames(10);
    session.callerSpeaks();
    leg.frames(1);
    expect(session.of('conversation.item.truncate').map(({ audio_end_ms }) => audio_end_ms)).toEqual([50]);
    expect(session.errors).toEqual([]);
  });

  it('drops a response that had no audio yet', async () => {
    const leg = await greeted();
    const { session } = leg;
    const response = session.begin();
    session.callerSpeaks();
    leg.frames(1);
    const item = session.item(response);
    session.say(response, item, loud(100), 'Late');
    expect(leg.frames(5)).toEqual(Buffer.alloc(800, SILENCE));
    expect(session.of('conversation.item.truncate')).toEqual([]);
  });
});

describe('the transcript of an agent at OpenAI', () => {
  it('has the caller’s words where they were spoken, though they come later', async () => {
    const leg = await greeted();
    const { session } = leg;
    leg.frames(50, 0x10);
    const item = session.callerSpeaks(200);
    leg.frames(20, 0x10);
    session.callerStops(item, null);
    session.utter(session.begin(), loud(40), 'Of course.');
    leg.frames(5);
    session.transcribed(item, 'A table for two, please.');
    leg.frames(1);
    expect(leg.transcript().map(({ speaker, text }) => `${speaker}: ${text}`)).toEqual([
      'agent: Hello.',
      'caller: A table for two, please.',
      'agent: Of course.',
    ]);
  });
});

describe('the tools of an agent at OpenAI', () => {
  const answered = async (tools: readonly SpokenTool[]) => {
    const leg = await greeted({ tools });
    const response = leg.session.begin();
    return { leg, response, session: leg.session };
  };

  it('run several at once, and one response follows the last result', async () => {
    const { leg, response, session } = await answered([tool('book a table'), tool('weather')]);
    const first = session.call(response, 'book_a_table', { day: 'Monday' });
    const second = session.call(response, 'weather', { day: 'Monday' });
    session.done(response);
    leg.frames(1);
    expect(leg.requests().filter(({ type }) => type === 'tool')).toEqual([
      { type: 'tool', requestId: first, name: 'book a table', input: { day: 'Monday' } },
      { type: 'tool', requestId: second, name: 'weather', input: { day: 'Monday' } },
    ]);
    const before = session.of('response.create').length;
    leg.agent.notify({ type: 'tool-result', requestId: second, result: 'rain', httpStatus: 200 });
    leg.frames(5);
    expect(session.of('response.create')).toHaveLength(before);
    leg.agent.notify({ type: 'refused', requestId: first, request: 'tool', code: 'TOOL_TIMEOUT', message: 'did not answer' });
    leg.frames(5);
    expect(session.of('response.create')).toHaveLength(before + 1);
    expect(outputs(leg)).toEqual([
      [second, { result: 'rain', http_status: 200 }],
      [first, { error: 'TOOL_TIMEOUT', message: 'did not answer' }],
    ]);
    expect(session.errors).toEqual([]);
  });

  it('have speech that is not truncated when the caller interrupts it, since it is not in the conversation', async () => {
    const { leg, response, session } = await answered([tool('weather', { speech: 'One moment, I am looking it up.' })]);
    session.call(response, 'weather', { day: 'x' });
    session.done(response);
    leg.frames(1);
    const phrase = session.responses.all.at(-1)!.id;
    session.say(phrase, session.item(phrase), loud(1_000), 'One moment, I am looking it up.');
    leg.frames(20);
    session.callerSpeaks();
    expect([leg.frames(2).at(-1), session.of('conversation.item.truncate'), session.errors]).toEqual([SILENCE, [], []]);
  });

  it('hold a result that comes before the response is over until its end', async () => {
    const { leg, response, session } = await answered([tool('weather')]);
    const before = session.of('response.create').length;
    const call = session.call(response, 'weather', { day: 'x' });
    leg.frames(1);
    leg.agent.notify({ type: 'tool-result', requestId: call, result: 1, httpStatus: 200 });
    expect(session.of('response.create')).toHaveLength(before);
    session.done(response);
    leg.frames(1);
    expect(session.of('response.create')).toHaveLength(before + 1);
    expect(session.errors).toEqual([]);
  });

  it('have speech that is spoken while they run, and not when the result comes first', async () => {
    const slow = await answered([tool('weather', { speech: 'One moment.' })]);
    const call = slow.session.call(slow.response, 'weather', { day: 'x' });
    slow.session.done(slow.response);
    slow.leg.frames(1);
    const phrase = slow.session.of('response.create').at(-1)!;
    expect(phrase.response).toMatchObject({ conversation: 'none', instructions: expect.stringContaining('"One moment."') as string });
    const spoken = slow.session.responses.all.at(-1)!.id;
    slow.leg.agent.notify({ type: 'tool-result', requestId: call, result: 1, httpStatus: 200 });
    const count = slow.session.of('response.create').length;
    slow.session.utter(spoken, loud(40), 'One moment.');
    slow.leg.frames(5);
    expect(slow.session.of('response.create')).toHaveLength(count + 1);

    const quick = await answered([tool('weather', { speech: 'One moment.' })]);
    const quickCall = quick.session.call(quick.response, 'weather', { day: 'x' });
    quick.leg.frames(1);
    quick.leg.agent.notify({ type: 'tool-result', requestId: quickCall, result: 1, httpStatus: 200 });
    quick.session.done(quick.response);
    quick.leg.frames(1);
    expect(quick.session.of('response.create').at(-1)).toEqual({ type: 'response.create' });
    expect([...slow.session.errors, ...quick.session.errors]).toEqual([]);
  });

  it('ignore arguments that are not JSON, and results after the call’s end or of no call', async () => {
    const { leg, response, session } = await answered([tool('weather')]);
    const call = session.call(response, 'weather', '{"day":');
    session.done(response);
    leg.frames(1);
    expect(outputs(leg)).toEqual([[call, { error: 'TOOL_BAD_INPUT', message: 'The arguments are not JSON.' }]]);
    leg.agent.notify({ type: 'tool-result', requestId: call, result: 1, httpStatus: 200 });
    leg.agent.notify({ type: 'tool-result', requestId: 'never', result: 1, httpStatus: 200 });
    expect(outputs(leg)).toHaveLength(1);
    leg.agent.close();
    leg.agent.notify({ type: 'tool-result', requestId: call, result: 1, httpStatus: 200 });
    expect(session.errors).toEqual([]);
  });

  it('include hang_up, which waits until the caller has heard everything', async () => {
    const { leg, response, session } = await answered([]);
    const item = session.item(response);
    session.say(response, item, loud(400), 'Goodbye.');
    session.call(response, 'hang_up', {});
    leg.frames(10);
    session.say(response, item, loud(200), '');
    session.finish(response, item, 'Goodbye.');
    session.done(response);
    leg.frames(20);
    expect(leg.hasHungUp()).toBe(false);
    leg.frames(13);
    expect(leg.hasHungUp()).toBe(true);
    expect(leg.transcript().at(-1)).toMatchObject({ text: 'Goodbye.' });
  });

  it('transfer and send digits; a transfer that fails later is reported', async () => {
    const { leg, response, session } = await answered([]);
    const keys = session.call(response, 'press_keys', { digits: '12#' });
    const transfer = session.call(response, 'transfer_call', { to: '+15551234567' });
    session.done(response);
    leg.frames(1);
    expect(leg.pressed).toEqual([1, 2, 11]);
    expect(leg.requests().at(-1)).toEqual({ type: 'transfer', requestId: transfer, to: '+15551234567' });
    leg.agent.notify({ type: 'transfer-progress', requestId: transfer, state: 'accepted', status: 202 });
    leg.agent.notify({ type: 'transfer-progress', requestId: transfer, state: 'failed', status: 486 });
    leg.frames(1);
    expect(outputs(leg).map(([id]) => id)).toEqual([keys, transfer]);
    expect(systemTexts(leg).at(-1)).toBe('The transfer failed. The caller is still here.');
    expect(session.errors).toEqual([]);
  });
});

describe('the digits and the silence of a caller', () => {
  it('reach the model as text after two seconds, or at #', async () => {
    const leg = await greeted();
    for (const key of [1, 2, 3]) leg.agent.digit(key);
    leg.frames(99);
    expect(systemTexts(leg)).toHaveLength(1);
    leg.frames(2);
    expect(systemTexts(leg).at(-1)).toBe('The caller pressed the keys 1 2 3.');
    leg.agent.digit(7);
    leg.agent.digit(11);
    expect(systemTexts(leg).at(-1)).toBe('The caller pressed the keys 7.');
  });

  it('make the agent ask once after 15 s without speech, then hang up', async () => {
    const leg = await greeted();
    leg.frames(760);
    expect(systemTexts(leg).at(-1)).toContain('Ask whether the caller is still there.');
    leg.session.utter(leg.session.responses.all.at(-1)!.id, loud(40), 'Are you there?');
    leg.frames(700);
    expect(leg.hasHungUp()).toBe(false);
    leg.frames(100);
    expect(leg.hasHungUp()).toBe(true);
  });
});

describe('an agent at OpenAI in a call', () => {
  it('ignores unknown events, broken JSON and harmless errors', async () => {
    const leg = await greeted();
    leg.session.surprise();
    leg.session.error('item_truncate_invalid_item_id');
    leg.session.done(leg.session.begin(), 'failed');
    leg.frames(1);
    expect(leg.isLost()).toBe(false);
    expect(leg.notes.join()).toContain('rate_limit_exceeded');
    leg.session.utter(leg.session.begin(), loud(40), 'Still here.');
    expect(leg.frames(2)).toEqual(loud(40));
  });

  it('ends the call with the cause of a final error', async () => {
    const leg = await greeted();
    leg.session.error('insufficient_quota');
    leg.frames(1);
    expect(leg.isLost()).toBe(true);
    expect(leg.notes.at(-1)).toContain('insufficient_quota');
  });

  it.each([1_000, 1_001, 1_006, 1_011])('begins another session with the conversation so far after a close with %i', async (code) => {
    const leg = await greeted();
    const item = leg.session.callerSpeaks(100);
    leg.session.callerStops(item, 'I want a table.');
    leg.frames(5);
    leg.session.close(code, 'Your session hit the maximum duration of 60 minutes.');
    leg.frames(3, 0x44);
    expect(leg.sessions).toHaveLength(2);
    const { session } = leg;
    expect(
      session.of('conversation.item.create').map(({ item: one }) => (one.type === 'message' ? [one.role, one.content[0].text] : [])),
    ).toEqual([
      ['assistant', 'Hello.'],
      ['user', 'I want a table.'],
    ]);
    expect(session.of('response.create')).toEqual([]);
    // The caller's audio of the change is not lost.
    expect(session.audio.includes(Buffer.alloc(160, 0x44))).toBe(true);
    expect(leg.isLost()).toBe(false);
    expect(session.errors).toEqual([]);
  });

  it('renews its session in a pause before its 60 minutes are over', async () => {
    const leg = await greeted({}, { maxSilenceMs: 86_400_000 });
    const first = leg.session;
    leg.clock.advance(54 * 60_000);
    leg.agent.fill(new Uint8Array(160), leg.clock.nowMs());
    expect(leg.sessions).toHaveLength(1);
    leg.clock.advance(2 * 60_000);
    leg.frames(5);
    expect(leg.sessions).toHaveLength(2);
    expect(first.closed.all).toEqual([1_000]);
    expect(leg.session.of('conversation.item.create').map(({ item }) => item)).toEqual([
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
    ]);
    expect(leg.session.responses.all).toEqual([]);
    leg.session.utter(leg.session.begin(), loud(40), 'Where were we?');
    expect(leg.frames(2)).toEqual(loud(40));
  });

  it('leaves a provider that answers no pings', async () => {
    const leg = await greeted();
    leg.ignorePings();
    leg.frames(600, 0x10);
    expect(leg.sessions.length).toBeGreaterThan(1);
    expect(leg.notes.join()).toContain('answered no ping');
  });

  it('closes the session at the end of the call, and records a half-spoken text as interrupted', async () => {
    const leg = await greeted();
    const response = leg.session.begin();
    leg.session.say(response, leg.session.item(response), loud(1_000), 'One two three four');
    leg.frames(25);
    leg.agent.close();
    expect(leg.session.closed.all).toEqual([1_000]);
    expect(leg.transcript().at(-1)).toMatchObject({ text: 'One two', interrupted: true });
    expect(leg.clock.pendingTimers).toBe(0);
  });
});

describe('the tokens of a call', () => {
  it('are reported as the provider counts them', async () => {
    const leg = await greeted();
    leg.session.done(leg.session.begin(), 'completed', '', 120);
    leg.session.done(leg.session.begin());
    leg.frames(2);
    expect(leg.events.filter(({ type }) => type === 'provider-tokens')).toEqual([{ type: 'provider-tokens', tokens: 120 }]);
  });
});

describe('the transcript, where something is missing,', () => {
  const gaps = (leg: Awaited<ReturnType<typeof talking>>) =>
    leg.requests().flatMap((request) => (request.type === 'transcript' && request.gap !== undefined ? [request.gap] : []));

  it('has no note when all was transcribed', async () => {
    expect(gaps(await greeted())).toEqual([]);
  });

  it('has a note for the caller when the transcription failed', async () => {
    const leg = await greeted();
    const item = leg.session.callerSpeaks();
    leg.session.callerStops(item, null);
    leg.session.notTranscribed(item);
    leg.frames(1);
    expect(gaps(leg)).toEqual(['the provider did not transcribe the caller: the provider sent an error: audio_unintelligible']);
  });

  it('has a note for the agent when audio came without a text', async () => {
    const leg = await talking();
    leg.session.utter(leg.session.responses.all[0]!.id, loud(40), '');
    leg.frames(6);
    expect(gaps(leg)).toEqual(['the provider sent no text of what the agent said']);
  });
});
