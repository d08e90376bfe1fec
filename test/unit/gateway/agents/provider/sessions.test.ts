import { describe, expect, it } from 'vitest';
import { newAdapter } from '../../../../../src/gateway/agents/provider/adapters.js';
import { openAt, PROVIDERS, talkAt } from '../../../../support/provider/every-provider.js';
import { FakeGeminiSession } from '../../../../support/provider/fake-gemini.js';
import { FakeOpenAiSession } from '../../../../support/provider/fake-openai.js';
import { openProvider, PROVIDER } from '../../../../support/provider/provider-leg.js';

// What all providers have in common: a connection that ends, a session that is replaced, messages that hurt.

describe.each(PROVIDERS)('a session at %s', (name) => {
  it('gets the caller’s last two seconds of a reconnection, in order, and the record has what is missing', async () => {
    const { leg } = await talkAt(name);
    leg.frames(2, 0x10);
    // For three seconds no connection can be made.
    leg.refusals.push(...Array.from({ length: 60 }, () => 'the connection was refused'));
    leg.session.close(1_011);
    while (leg.sessions.length === 1 && leg.refusals.length > 0) {
      leg.frames(10, 0x21);
      if (leg.clock.nowMs() > 3_000) leg.refusals.length = 0;
    }
    leg.frames(100, 0x22);
    expect(leg.sessions).toHaveLength(2);
    const perFrame = { 'openai-realtime': 160, deepgram: 160, 'gemini-live': 640, elevenlabs: 160 }[name];
    expect(leg.session.audio.length).toBeGreaterThanOrEqual(190 * perFrame);
    expect(leg.session.audio.length).toBeLessThanOrEqual(310 * perFrame);
    if (perFrame === 160) {
      const lastOld = leg.session.audio.lastIndexOf(0x21);
      expect(leg.session.audio.subarray(0, lastOld + 1).every((byte) => byte === 0x21)).toBe(true);
      expect(lastOld + 1).toBeLessThanOrEqual(100 * 160);
    }
    expect(leg.requests()).toContainEqual({
      type: 'transcript',
      entries: [],
      gap: 'audio of the caller was lost while the connection was renewed',
    });
  });

  it('that ends before the ACK is replaced: the caller hears the next one alone, which hears the caller’s words', async () => {
    const { leg, play } = openAt(name);
    await leg.connect();
    play.begin();
    play.text('Lost words.');
    play.say(Buffer.alloc(9_600, 0x31));
    leg.clock.advance(10);
    leg.refusals.push('the connection was refused');
    leg.session.close(1_011);
    leg.clock.advance(10);
    expect(leg.events.filter(({ type }) => type !== 'agent-request')).toEqual([{ type: 'agent-away' }]);
    leg.start();
    expect(new Set(leg.frames(3, 0x21))).toEqual(new Set([0xff]));
    expect(leg.sessions).toHaveLength(1);
    expect(new Set(leg.frames(10, 0x21))).toEqual(new Set([0xff]));
    expect(leg.sessions).toHaveLength(2);
    expect(leg.session.audio.length).toBeGreaterThanOrEqual(12 * 160);
    play.begin();
    play.text('Good day.');
    play.say(Buffer.alloc(9_600, 0x22));
    play.end();
    expect(leg.frames(100, 0x21).filter((byte) => byte !== 0xff).length).toBeGreaterThanOrEqual(1_600);
    leg.agent.close();
    expect(leg.transcript().map(({ speaker, text }) => `${speaker}: ${text}`)).toEqual(['agent: Good day.']);
    expect(leg.requests().filter((request) => request.type === 'transcript' && request.gap !== undefined)).toEqual([]);
    expect(leg.notes.join()).toContain('closed the connection with 1011; another session begins');
    expect(leg.isLost()).toBe(false);
  });

  it('that ends for good before the ACK lets the call have another agent', async () => {
    const { leg } = openAt(name);
    await leg.connect();
    leg.session.close(1_008);
    leg.clock.advance(10);
    expect([leg.isLost(), leg.sessions.length]).toEqual([true, 1]);
  });

  it('that ends within an answer is replaced, and the call continues', async () => {
    const { leg } = await talkAt(name);
    leg.frames(5, 0x10);
    leg.session.close(1_011);
    leg.frames(60, 0x10);
    expect(leg.sessions).toHaveLength(2);
    expect([leg.isLost(), leg.hasHungUp()]).toEqual([false, false]);
  });
});

it('a model that was asked to begin, and spoke nothing before its session ended, is asked again', async () => {
  for (const isStarted of [false, true]) {
    const leg = openProvider((end, request) => new FakeOpenAiSession(end, request));
    await leg.connect();
    if (isStarted) leg.start();
    leg.session.close(1_011);
    leg.clock.advance(10);
    expect(leg.sessions.map(({ responses }) => responses.all.length)).toEqual([1, 1]);
    expect(leg.sessions.flatMap(({ errors }) => errors)).toEqual([]);
  }
});

it('an agent that waits for the caller does not apologize when its session is renewed', async () => {
  const { leg, play } = await talkAt('gemini-live');
  play.wrote('Hello?');
  play.text('Good day.');
  play.say(Buffer.alloc(4_800, 0x22));
  play.end();
  leg.frames(20);
  if (!(leg.session instanceof FakeGeminiSession)) throw new Error('no session of Gemini');
  leg.session.goAway(50);
  leg.frames(5);
  expect(leg.sessions).toHaveLength(2);
  expect(JSON.stringify(leg.session)).not.toContain('Apologize');
});

it.each([
  ['openai-realtime', 1_000, false, false],
  ['openai-realtime', 1_001, false, false],
  ['openai-realtime', 1_006, false, false],
  ['openai-realtime', 1_008, true, false],
  ['openai-realtime', 1_011, false, false],
  ['openai-realtime', 4_000, true, false],
  ['deepgram', 1_000, false, false],
  ['deepgram', 1_005, false, false],
  ['deepgram', 1_008, true, false],
  ['deepgram', 1_011, false, false],
  ['gemini-live', 1_000, false, false],
  ['gemini-live', 1_007, true, false],
  ['gemini-live', 1_008, true, false],
  ['gemini-live', 1_011, false, false],
  ['elevenlabs', 1_000, false, true],
  ['elevenlabs', 1_002, true, false],
  ['elevenlabs', 1_008, true, false],
  ['elevenlabs', 1_011, false, false],
  ['elevenlabs', 3_000, true, false],
] as const)('a close of %s with %i is final: %s, and a hang-up: %s', async (name, code, isFinal, isHangUp) => {
  const { isFinal: final, isHangUp: hangUp = false } = newAdapter({ ...PROVIDER, provider: name }).closed(code, '');
  expect([final, hangUp]).toEqual([isFinal, isHangUp]);
  const { leg } = await talkAt(name);
  leg.frames(2, 0x10);
  leg.session.close(code);
  leg.frames(60, 0x10);
  expect([leg.isLost(), leg.hasHungUp(), leg.sessions.length > 1]).toEqual([isFinal, isHangUp, !isFinal && !isHangUp]);
});

it('the notes have the reason that ElevenLabs gives for the end of a call', async () => {
  const { leg } = await talkAt('elevenlabs');
  leg.frames(2, 0x10);
  leg.session.close(1_000, 'Maximum duration reached');
  leg.frames(60, 0x10);
  expect(leg.hasHungUp()).toBe(true);
  expect(leg.notes.at(-1)).toContain('the agent ended the call (Maximum duration reached)');
});
