import { describe, expect, it } from 'vitest';
import type { ProviderSettings, SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { talkAt } from '../../../../support/provider/every-provider.js';
import { FakeOpenAiSession } from '../../../../support/provider/fake-openai.js';
import { NO_SPEECH } from '../../../../support/providers.js';
import { openProvider } from '../../../../support/provider/provider-leg.js';

const SILENCE = 0xff;
const loud = (ms: number): Buffer => Buffer.alloc(8 * ms, 0x10);
const open = (settings: Partial<ProviderSettings>) => openProvider((end, request) => new FakeOpenAiSession(end, request), settings);
const systemTexts = ({ session }: { readonly session: FakeOpenAiSession }): string[] =>
  session
    .of('conversation.item.create')
    .flatMap(({ item }) => (item.type === 'message' && item.role === 'system' ? [item.content[0].text] : []));

describe('the first sentence of an agent', () => {
  const SPEECH: ProviderSettings['speech'] = { services: NO_SPEECH.speech, voice: { provider: 'openai', voice: 'marin' } };
  const assistantTexts = ({ session }: { readonly session: FakeOpenAiSession }): string[] =>
    session
      .of('conversation.item.create')
      .flatMap(({ item }) => (item.type === 'message' && item.role === 'assistant' ? [item.content[0].text] : []));

  it('is spoken word for word by a speech service, from before the ACK on, and enters the conversation as the agent’s', async () => {
    const leg = open({ firstSentence: 'Blue Harbor, good day.', language: 'GER', speech: SPEECH });
    await leg.connect();
    expect(leg.speech.texts).toEqual([{ text: 'Blue Harbor, good day.', language: 'de', voice: { provider: 'openai', voice: 'marin' } }]);
    leg.speech.say(loud(50));
    leg.start();
    leg.speech.say(loud(50));
    await leg.speech.end();
    expect(leg.frames(5)).toEqual(loud(100));
    leg.frames(2);
    expect(leg.transcript()).toEqual([{ speaker: 'agent', text: 'Blue Harbor, good day.', at_ms: 20 }]);
    expect(assistantTexts(leg)).toEqual(['Blue Harbor, good day.']);
    expect([leg.session.of('response.create'), leg.session.errors]).toEqual([[], []]);
  });

  it('is heard once, and is in the conversation, also when the provider’s session ends before the ACK', async () => {
    const leg = open({ firstSentence: 'Blue Harbor, good day.', speech: SPEECH });
    await leg.connect();
    leg.speech.say(loud(50));
    leg.session.close(1_011, '');
    leg.clock.advance(10);
    leg.start();
    leg.speech.say(loud(50));
    await leg.speech.end();
    expect(leg.frames(5)).toEqual(loud(100));
    leg.frames(2);
    expect([leg.sessions.length, leg.speech.texts.length]).toEqual([2, 1]);
    expect(leg.transcript()).toEqual([{ speaker: 'agent', text: 'Blue Harbor, good day.', at_ms: 20 }]);
    expect([assistantTexts(leg), systemTexts(leg)]).toEqual([['Blue Harbor, good day.'], []]);
  });

  it('is requested from the next session when the service fails while there is none', async () => {
    const leg = open({ firstSentence: 'Good day.', speech: SPEECH });
    await leg.connect();
    leg.refusals.push('the connection was refused');
    leg.session.close(1_011, '');
    leg.clock.advance(10);
    await leg.speech.fail('openai answered 500');
    leg.start();
    leg.clock.advance(200);
    expect([leg.sessions.length, leg.speech.texts.length]).toEqual([2, 2]);
    leg.speech.say(loud(20));
    expect(leg.frames(1)).toEqual(loud(20));
  });

  it('that a service speaks is cut off by the caller, and the model gets what of it was heard', async () => {
    const leg = open({ firstSentence: 'One two three four five six seven eight nine ten.', speech: SPEECH });
    await leg.talk();
    leg.speech.say(loud(1_000));
    leg.frames(25);
    leg.session.callerSpeaks();
    leg.speech.say(loud(200));
    expect(leg.frames(3)).toEqual(Buffer.alloc(480, SILENCE));
    expect(leg.speech.isAborted).toBe(true);
    expect(leg.transcript()).toEqual([{ speaker: 'agent', text: 'One two three four', at_ms: 20, interrupted: true }]);
    expect(assistantTexts(leg)).toEqual(['One two three four']);
    expect([leg.session.of('conversation.item.truncate'), leg.session.errors]).toEqual([[], []]);
  });

  it('is requested from the provider when the service has no audio, and ends where its audio ends', async () => {
    const leg = open({ firstSentence: 'Good day.', speech: SPEECH });
    await leg.talk();
    await leg.speech.fail('openai answered 500');
    expect(systemTexts(leg)).toEqual(['The call was answered. Greet the caller with exactly these words: "Good day."']);
    expect(leg.notes.join()).toContain('text to speech: openai answered 500');
    const half = open({ firstSentence: 'Good day.', speech: SPEECH });
    await half.talk();
    half.speech.say(loud(40));
    await half.speech.fail('the connection broke');
    half.frames(4);
    expect(systemTexts(half)).toEqual([]);
    expect(assistantTexts(half)).toEqual(['Good day.']);
  });
});

describe.each(['gemini-live', 'elevenlabs'] as const)('the speech of a tool at %s, which speaks nothing word for word,', (provider) => {
  const TOOL: SpokenTool = {
    name: 'weather',
    description: 'Tells the weather.',
    speech: 'One moment.',
    input_schema: { type: 'object', example: null, required: [], properties: {} },
  };
  const SPEECH: ProviderSettings['speech'] = { services: NO_SPEECH.speech, voice: { provider: 'elevenlabs', voice: 'v-1' } };
  const MOMENT = new Int16Array(800).fill(8_000);

  /** A call in which a tool runs since so many frames. */
  const running = async (frames: number, settings: Partial<ProviderSettings> = {}) => {
    const { leg, play } = await talkAt(provider, { tools: [TOOL], speech: SPEECH, ...settings });
    const requestId = play.call('weather', {});
    leg.frames(frames);
    const say = (text: string): void => {
      play.text(text);
      play.say(Buffer.alloc(provider === 'gemini-live' ? 4_800 : 800, 0x22));
    };
    return { leg, say, result: { type: 'tool-result', requestId, result: 'rain', httpStatus: 200 } as const };
  };
  const isHeard = (heard: Buffer): boolean => heard.some((byte) => byte !== SILENCE);

  it('is spoken by a speech service after 300 ms without a result, and is in the transcript', async () => {
    const { leg, result } = await running(14);
    expect(leg.speech.texts).toEqual([]);
    leg.frames(2);
    expect(leg.speech.texts).toEqual([{ text: 'One moment.', language: 'en', voice: { provider: 'elevenlabs', voice: 'v-1' } }]);
    await leg.speech.give(MOMENT);
    const heard = leg.frames(6);
    expect(new Set(heard.subarray(0, 800)).size).toBe(1);
    expect([isHeard(heard.subarray(0, 800)), isHeard(heard.subarray(800))]).toEqual([true, false]);
    expect(leg.transcript().map(({ speaker, text }) => `${speaker}: ${text}`)).toEqual(['agent: One moment.']);
    leg.agent.notify(result);
    leg.frames(2);
    expect(leg.session.errors).toEqual([]);
  });

  it('is not requested when the result comes within 300 ms', async () => {
    const { leg, result } = await running(10);
    leg.agent.notify(result);
    leg.frames(50);
    expect(leg.speech.texts).toEqual([]);
  });

  it.each(['the result', 'the end of the session'])('is dropped when %s comes while the service works', async (what) => {
    const { leg, result } = await running(20);
    if (what === 'the result') leg.agent.notify(result);
    else leg.session.close(1_011);
    leg.frames(1);
    await leg.speech.give(MOMENT);
    expect(isHeard(leg.frames(20))).toBe(false);
    expect(leg.transcript()).toEqual([]);
  });

  it('waits until the provider’s speech was heard, and does not interrupt it', async () => {
    const { leg, say } = await running(14);
    say('Let me see.');
    leg.frames(2);
    await leg.speech.give(MOMENT);
    say('I look it up.');
    leg.frames(30);
    leg.agent.close();
    const { transcript } = leg;
    expect(
      transcript()
        .map(({ text }) => text)
        .join(' '),
    ).toMatch(/Let me see\..*I look it up\..*One moment\./);
  });

  it('is left out without a service, and when the service fails, and the call continues', async () => {
    const without = await running(30, { speech: null });
    expect(without.leg.speech.texts).toEqual([]);
    const { leg, result } = await running(20);
    await leg.speech.refuse('elevenlabs answered 500');
    expect(isHeard(leg.frames(20))).toBe(false);
    expect(leg.notes.at(-1)).toContain('text to speech: elevenlabs answered 500');
    leg.agent.notify(result);
    expect([leg.isLost(), leg.session.errors]).toEqual([false, []]);
  });
});
