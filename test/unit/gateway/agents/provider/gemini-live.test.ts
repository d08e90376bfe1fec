import { describe, expect, it } from 'vitest';
import type { AgentConnectionLimits } from '../../../../../src/gateway/model/agent.js';
import type { ProviderSettings, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { decodeG711 } from '../../../../../src/rtp/codec/g711.js';
import { FakeGeminiSession } from '../../../../support/provider/fake-gemini.js';
import { openProvider } from '../../../../support/provider/provider-leg.js';

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
const open = (settings: Partial<ProviderSettings> = {}, limits: Partial<AgentConnectionLimits> = {}) =>
  openProvider(
    (end, request) => new FakeGeminiSession(end, request),
    {
      provider: 'gemini-live',
      url: 'wss://generativelanguage.googleapis.com/ws/BidiGenerateContent',
      model: 'gemini-3.8-live',
      ...settings,
    },
    limits,
  );
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
      inputAudioTranscription: {},
      outputAudioTranscription: {},
    });
    expect(leg.session.texts).toEqual(['The call was answered. Greet the caller with exactly these words: "Good day."']);
    expect(leg.session.errors).toEqual([]);
  });

  it('refuses the call when the setup is refused', async () => {
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

  it('the caller interrupts: nothing of the turn is played any more, and the record has what was heard', async () => {
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

  it('answers all calls of functions together, and drops cancelled ones', async () => {
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
    expect(session.responses).toEqual([]);
    leg.agent.notify({ type: 'refused', requestId: '3', request: 'tool', code: 'TOOL_TIMEOUT', message: 'm' });
    expect(session.responses).toEqual([
      [
        { id: '1', name: 'the_weather', response: { result: 'rain', http_status: 200 } },
        { id: '3', name: 'the_weather', response: { error: 'TOOL_TIMEOUT', message: 'm' } },
      ],
    ]);
    session.call({ id: '4', name: 'hang_up', args: {} });
    leg.frames(13);
    expect(leg.hasHungUp()).toBe(true);
    expect(session.errors).toEqual([]);
  });

  it('resumes at goAway in a pause, not while a tool runs, and begins anew where it cannot resume', async () => {
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

  it('pongs may take half a minute; a session that has sent nothing for a minute is left', async () => {
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

  it('half a sample at the end of an utterance does not shift the next one', async () => {
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

it('tells of the tokens that the provider counts', async () => {
  const leg = await talking();
  leg.session.usage(40);
  leg.frames(1);
  expect(leg.events.filter(({ type }) => type === 'provider-tokens')).toEqual([{ type: 'provider-tokens', tokens: 40 }]);
});
