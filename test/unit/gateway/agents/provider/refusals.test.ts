import { describe, expect, it } from 'vitest';
import { FakeDeepgramSession } from '../../../../support/provider/fake-deepgram.js';
import { FakeGeminiSession } from '../../../../support/provider/fake-gemini.js';
import { FakeOpenAiSession } from '../../../../support/provider/fake-openai.js';
import { openProvider } from '../../../../support/provider/provider-leg.js';

// A provider that does not answer, or takes no text.

const LOUD = Buffer.alloc(800, 0x22);
/** Ends of a response without an answer, and what the record says of each. */
const REFUSALS = [
  ['an error', (session: FakeOpenAiSession, id: string) => session.done(id, 'failed', 'server_error'), 'server_error'],
  ['content_filter', (session: FakeOpenAiSession, id: string) => session.breakOff(id, 'content_filter'), 'content_filter'],
  ['max_output_tokens', (session: FakeOpenAiSession, id: string) => session.breakOff(id, 'max_output_tokens'), 'max_output_tokens'],
] as const;

describe('OpenAI', () => {
  const talking = async () => {
    const leg = openProvider((end, request) => new FakeOpenAiSession(end, request));
    await leg.talk();
    leg.session.utter(leg.session.responses.all[0]!.id, LOUD, 'Hello.');
    leg.frames(10);
    leg.session.callerStops(leg.session.callerSpeaks(), 'A table, please.');
    leg.frames(1);
    return leg;
  };

  it.each(REFUSALS)(
    'gets its request once more after an answer that ended with %s, and the call continues',
    async (_how, refuse, cause) => {
      const leg = await talking();
      refuse(leg.session, leg.session.begin());
      leg.frames(1);
      expect(leg.notes.at(-1)).toContain(cause);
      const before = leg.session.responses.all.length;
      leg.frames(30);
      expect(leg.session.responses.all).toHaveLength(before + 1);
      leg.session.utter(leg.session.responses.all.at(-1)!.id, LOUD, 'For how many?');
      leg.frames(10);
      leg.session.callerStops(leg.session.callerSpeaks(), 'Two.');
      refuse(leg.session, leg.session.begin());
      leg.frames(30);
      // The one in between came through: this is the first again.
      expect([leg.sessions.length, leg.isLost()]).toEqual([1, false]);
      expect(leg.transcript().map(({ text }) => text)).toContain('For how many?');
      expect(leg.session.errors).toEqual([]);
    },
  );

  it.each(REFUSALS)(
    'loses the session after two answers that ended with %s; the next one gets the request, and then the agent is lost',
    async (_how, refuse) => {
      const leg = await talking();
      refuse(leg.session, leg.session.begin());
      leg.frames(30);
      refuse(leg.session, leg.session.responses.all.at(-1)!.id);
      leg.frames(10);
      expect([leg.sessions.length, leg.isLost()]).toEqual([2, false]);
      expect(JSON.stringify(leg.session.of('conversation.item.create'))).toContain('Answer the caller now.');
      expect(leg.session.responses.all).toHaveLength(1);
      refuse(leg.session, leg.session.responses.all[0]!.id);
      leg.frames(30);
      refuse(leg.session, leg.session.responses.all[1]!.id);
      leg.frames(10);
      expect([leg.sessions.length, leg.isLost()]).toEqual([2, true]);
      leg.agent.close();
      expect(leg.clock.pendingTimers).toBe(0);
    },
  );

  it('gets its request once more when it refused that', async () => {
    const leg = await talking();
    leg.session.refusesNext = 'server_error';
    leg.agent.digit(4);
    leg.agent.digit(11);
    leg.frames(1);
    expect(leg.notes.at(-1)).toContain('server_error');
    const asked = leg.session.of('response.create').length;
    leg.frames(30);
    expect(leg.session.of('response.create')).toHaveLength(asked + 1);
    leg.session.utter(leg.session.responses.all.at(-1)!.id, LOUD, 'Four.');
    leg.frames(10);
    expect(leg.transcript().map(({ text }) => text)).toContain('Four.');
    expect([leg.sessions.length, leg.session.errors]).toEqual([1, []]);
  });

  it('gets no further request for what the caller interrupted', async () => {
    const leg = await talking();
    const response = leg.session.begin();
    leg.frames(1);
    leg.session.callerSpeaks();
    leg.session.breakOff(response, 'content_filter');
    leg.frames(50);
    expect(leg.notes.join()).not.toContain('content_filter');
    expect(leg.session.responses.all).toHaveLength(1);
  });
});

describe('Gemini', () => {
  const GEMINI = { provider: 'gemini-live', url: 'wss://generativelanguage.example/live', waitsForGreeting: true } as const;

  it.each(['RESPONSE_REJECTED', 'MALFORMED_FUNCTION_CALL', 'PROHIBITED_INPUT_CONTENT', 'BLOCKLIST'] as const)(
    'gets its request once more after a turn that ended with %s, and then another session gets it',
    async (reason) => {
      const leg = openProvider((end, request) => new FakeGeminiSession(end, request), GEMINI);
      await leg.talk();
      leg.session.hear('A table, please.');
      leg.session.turnComplete(reason);
      leg.frames(30);
      expect(leg.notes.join()).toContain(reason);
      expect(leg.session.texts).toEqual([expect.stringContaining('Answer again')]);
      leg.session.turnComplete(reason);
      leg.frames(10);
      expect([leg.sessions.length, leg.isLost()]).toEqual([2, false]);
      // It takes the call over, and speaks.
      expect(leg.session.texts).toHaveLength(1);
      expect(leg.sessions.flatMap(({ errors }) => errors)).toEqual([]);
    },
  );

  it('may require more input, which is no refusal', async () => {
    const leg = openProvider((end, request) => new FakeGeminiSession(end, request), GEMINI);
    await leg.talk();
    leg.session.turnComplete('NEED_MORE_INPUT');
    leg.frames(50);
    expect(leg.session.texts).toEqual([]);
  });
});

describe('Deepgram', () => {
  const DEEPGRAM = {
    provider: 'deepgram',
    url: 'wss://agent.example/v1/agent/converse',
    voice: 'aura-2-thalia-en',
    waitsForGreeting: true,
  } as const;
  const texts = ({ session }: { readonly session: FakeDeepgramSession }): string[] =>
    session.of('InjectUserMessage').map(({ content }) => content);
  const talking = async () => {
    const leg = openProvider((end, request) => new FakeDeepgramSession(end, request), DEEPGRAM);
    await leg.talk();
    return leg;
  };
  const KEYS = 'The caller pressed the keys 4.';

  it('gets digits that it refused again once its agent has spoken', async () => {
    const leg = await talking();
    leg.session.text('One moment, please.');
    leg.session.say(LOUD);
    leg.agent.digit(4);
    leg.agent.digit(11);
    leg.session.refuseInjection();
    leg.frames(250);
    expect(texts(leg)).toEqual([KEYS]);
    expect(leg.notes.join()).toContain('refused a text');
    leg.session.done();
    leg.frames(1);
    expect(texts(leg)).toEqual([KEYS, KEYS]);
    leg.session.callerSaid(KEYS);
    leg.session.text('Four.');
    leg.session.say(LOUD);
    leg.session.done();
    leg.frames(250);
    expect([texts(leg), leg.sessions.length]).toEqual([[KEYS, KEYS], 1]);
  });

  it('gets them again after two seconds when nobody speaks any more', async () => {
    const leg = await talking();
    leg.agent.digit(4);
    leg.agent.digit(11);
    leg.session.refuseInjection();
    leg.frames(90);
    expect(texts(leg)).toEqual([KEYS]);
    leg.frames(20);
    expect(texts(leg)).toEqual([KEYS, KEYS]);
    expect(leg.session.errors).toEqual([]);
  });
});
