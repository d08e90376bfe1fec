import { describe, expect, it } from 'vitest';
import { newAdapter } from '../../../../../src/gateway/agents/provider/adapters.js';
import type { ProviderName } from '../../../../../src/gateway/model/provider.js';
import type { ProviderSettings } from '../../../../../src/gateway/model/provider-settings.js';
import { FakeDeepgramSession } from '../../../../support/provider/fake-deepgram.js';
import { FakeElevenLabsSession } from '../../../../support/provider/fake-elevenlabs.js';
import { FakeGeminiSession } from '../../../../support/provider/fake-gemini.js';
import { FakeOpenAiSession } from '../../../../support/provider/fake-openai.js';
import { openProvider, PROVIDER } from '../../../../support/provider/provider-leg.js';

// What all providers have in common: a connection that ends, and a session that is replaced.

const WAITS: Partial<ProviderSettings> = { waitsForGreeting: true };
const LEGS = {
  'openai-realtime': () => openProvider((end, request) => new FakeOpenAiSession(end, request), WAITS),
  deepgram: () =>
    openProvider((end, request) => new FakeDeepgramSession(end, request), {
      ...WAITS,
      provider: 'deepgram',
      url: 'wss://agent.deepgram.com/v1/agent/converse',
      voice: 'aura-2-thalia-en',
    }),
  'gemini-live': () =>
    openProvider((end, request) => new FakeGeminiSession(end, request), {
      ...WAITS,
      provider: 'gemini-live',
      url: 'wss://generativelanguage.googleapis.com/ws/BidiGenerateContent',
    }),
  elevenlabs: () =>
    openProvider((end, request) => new FakeElevenLabsSession(end, request), {
      ...WAITS,
      provider: 'elevenlabs',
      url: 'wss://api.elevenlabs.io/v1/convai/conversation',
    }),
} as const;
type Leg = ReturnType<(typeof LEGS)[ProviderName]>;
const NAMES = Object.keys(LEGS) as ProviderName[];

describe.each(NAMES)('%s', (name) => {
  it('the caller’s last two seconds of a change of the connection reach the next one, in order; the record tells of the rest', async () => {
    const leg: Leg = LEGS[name]();
    await leg.talk();
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

  it('a session that ends within an answer is replaced, and the call goes on', async () => {
    const leg: Leg = LEGS[name]();
    await leg.talk();
    leg.frames(5, 0x10);
    leg.session.close(1_011);
    leg.frames(60, 0x10);
    expect(leg.sessions).toHaveLength(2);
    expect([leg.isLost(), leg.hasHungUp()]).toEqual([false, false]);
  });
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
] as const)('a close of %s with %i: final %s, a hang-up %s', async (name, code, isFinal, isHangUp) => {
  const { isFinal: final, isHangUp: hangUp = false } = newAdapter({ ...PROVIDER, provider: name }).closed(code, '');
  expect([final, hangUp]).toEqual([isFinal, isHangUp]);
  const leg: Leg = LEGS[name]();
  await leg.talk();
  leg.frames(2, 0x10);
  leg.session.close(code);
  leg.frames(60, 0x10);
  expect([leg.isLost(), leg.hasHungUp(), leg.sessions.length > 1]).toEqual([isFinal, isHangUp, !isFinal && !isHangUp]);
});
