import { describe, expect, it } from 'vitest';
import type { ProviderSettings } from '../../../../../src/gateway/model/provider-settings.js';
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

describe('the first sentence', () => {
  const SPEECH: ProviderSettings['speech'] = { services: NO_SPEECH.speech, voice: { provider: 'openai', voice: 'marin' } };
  const assistantTexts = ({ session }: { readonly session: FakeOpenAiSession }): string[] =>
    session
      .of('conversation.item.create')
      .flatMap(({ item }) => (item.type === 'message' && item.role === 'assistant' ? [item.content[0].text] : []));

  it('is spoken word for word by a speech service, from before the ACK on, and stands in the conversation as the assistant’s', async () => {
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

  it('spoken by a service is cut off by the caller: the model knows what of it was heard', async () => {
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

  it('is asked for when the service has no audio, and ends where its audio ends', async () => {
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
