import { describe, expect, it } from 'vitest';
import type { SpokenTool } from '../../../../../src/gateway/model/provider-settings.js';
import { decodeG711 } from '../../../../../src/rtp/codec/g711.js';
import { PROVIDERS, talkAt } from '../../../../support/provider/every-provider.js';

// What hurts within a turn, at every provider.

const SILENCE = 0xff;
const BYTES_PER_MS = { 'openai-realtime': 8, deepgram: 8, 'gemini-live': 48, elevenlabs: 8 } as const;
const TOOL: SpokenTool = {
  name: 'weather',
  description: 'Tells the weather.',
  speech: null,
  input_schema: { type: 'object', example: null, required: [], properties: {} },
};

describe.each(PROVIDERS)('a call with an agent at %s', (provider) => {
  /** A sound of a level of its own. */
  const sound = (ms: number, byte = 0x22): Buffer => Buffer.alloc(ms * BYTES_PER_MS[provider], byte);
  const opened = async () => {
    const { leg, play } = await talkAt(provider, { tools: [TOOL] });
    const { session } = leg;
    const texts = (): string[] => leg.transcript().map(({ text }) => text);
    const answer = (text: string, audio: Buffer): void => {
      play.begin();
      play.text(text);
      play.say(audio);
      play.end();
    };
    return { leg, play, session, texts, answer };
  };
  type Opened = Awaited<ReturnType<typeof opened>>;
  const isSilent = (heard: Buffer): boolean => heard.every((byte) => byte === SILENCE);

  const TURN: readonly (readonly [string, (opened: Opened) => void])[] = [
    ['its beginning', () => undefined],
    ["the caller's words", ({ play }) => play.wrote('Will it rain?')],
    ['the beginning of an answer', ({ play }) => play.begin()],
    ['the first text', ({ play }) => play.text('Let me see.')],
    ['the first audio', ({ play }) => play.say(sound(60))],
    ['a function call', ({ play, leg }) => (toolCalls.set(leg, play.call('weather', {})), undefined)],
    ['more audio', ({ play }) => play.say(sound(60))],
    ['the end of the answer', ({ play }) => play.end()],
    ['an interruption', ({ play }) => play.interrupt()],
    ['what it does not know', ({ session }) => session.surprise()],
  ];
  const toolCalls = new WeakMap<object, string>();

  it.each(TURN.map(([name], at) => [name, at] as const))(
    'gets a new connection after one that ends after %s, and continues',
    async (_, at) => {
      const call = await opened();
      const { leg, play } = call;
      for (const [, step] of TURN.slice(0, at + 1)) {
        step(call);
        leg.frames(2);
      }
      leg.session.close(1_006);
      leg.frames(60, 0x10);
      expect([leg.sessions.length, leg.isLost(), leg.hasHungUp()]).toEqual([2, false, false]);
      const before = leg.session.messages.all.length;
      leg.agent.notify({ type: 'tool-result', requestId: toolCalls.get(leg) ?? 'none', result: 'rain', httpStatus: 200 });
      // The new session made no such call.
      expect(leg.session.messages.all).toHaveLength(before);
      call.answer('Back again.', sound(60));
      expect(isSilent(leg.frames(6))).toBe(false);
      play.wrote('Good.');
      leg.frames(2);
      expect(call.texts()).toEqual(expect.arrayContaining(['Back again.', 'Good.']));
      expect(leg.sessions.flatMap(({ errors }) => errors)).toEqual([]);
    },
  );

  it('has in its transcript what was heard of a lost session’s answer, and the next session gets what was said', async () => {
    const { leg, play } = await opened();
    const text = 'One two three four five six seven eight nine ten eleven twelve thirteen.';
    play.wrote('Count.');
    play.begin();
    play.text(text);
    play.say(sound(2_000));
    leg.frames(10);
    leg.session.close(1_011);
    leg.frames(20);
    expect(leg.sessions).toHaveLength(2);
    expect(JSON.stringify(leg.session.messages.all)).toContain('One two three');
    play.interrupt();
    leg.frames(2);
    play.wrote('Stop.');
    play.begin();
    play.text('Yes?');
    play.say(sound(60));
    play.end();
    leg.frames(10);
    leg.agent.close();
    const [lost, next] = leg.transcript().filter(({ speaker }) => speaker === 'agent');
    expect(lost!.interrupted).toBe(true);
    expect(text.startsWith(lost!.text)).toBe(true);
    expect(lost!.text.length).toBeGreaterThan(0);
    expect(lost!.text.length).toBeLessThan(text.length / 2);
    expect(next).toMatchObject({ text: 'Yes?' });
    expect(leg.sessions.flatMap(({ errors }) => errors)).toEqual([]);
  });

  it('loses the agent, once, when a connection ends within an answer and cannot be made again', async () => {
    const { leg, play } = await opened();
    play.begin();
    play.say(sound(60));
    leg.frames(2);
    leg.refusals.push(...Array<string>(50).fill('HTTP 503'));
    leg.session.close(1_011);
    leg.clock.advance(30_000);
    expect(leg.events.filter(({ type }) => type === 'agent-lost')).toHaveLength(1);
  });

  it('plays audio in chunks of one byte as audio in one', async () => {
    const ramp = Buffer.from(Array.from({ length: 200 * BYTES_PER_MS[provider] }, (_, i) => (i * 7) % 251));
    const [whole, chunks] = [await opened(), await opened()];
    whole.answer('All.', ramp);
    chunks.play.begin();
    chunks.play.text('All.');
    for (const byte of ramp) chunks.play.say(Uint8Array.of(byte));
    chunks.play.end();
    const [one, other] = [whole.leg.frames(14), chunks.leg.frames(14)];
    const start = (heard: Buffer): Buffer => heard.subarray(heard.findIndex((byte) => byte !== SILENCE));
    expect(start(other).subarray(0, 1_500)).toEqual(start(one).subarray(0, 1_500));
    expect(new Set(one).size).toBeGreaterThan(50);
  });

  it('plays half a minute of audio at once to its end, in real time', async () => {
    const { leg, answer, play, texts } = await opened();
    answer('A long story.', sound(30_000));
    const heard = leg.frames(1_520);
    const frames = Array.from({ length: 1_520 }, (_, i) => isSilent(heard.subarray(160 * i, 160 * (i + 1))));
    expect(frames.filter((one) => !one).length).toBeGreaterThanOrEqual(1_499);
    expect(frames.slice(1_503).every((one) => one)).toBe(true);
    play.wrote('Thanks.');
    leg.frames(2);
    expect(texts()).toEqual(['A long story.', 'Thanks.']);
  });

  it('plays no audio after an interruption, and that of the next answer', async () => {
    const { leg, play, answer } = await opened();
    play.begin();
    play.text('One two three four five six seven eight nine ten.');
    play.say(sound(1_000));
    leg.frames(20);
    play.interrupt();
    play.late(sound(400, 0x44));
    leg.frames(1);
    expect(isSilent(leg.frames(30))).toBe(true);
    play.wrote('Stop.');
    answer('Yes?', sound(100, 0x33));
    const heard = leg.frames(8);
    const samples = new Int16Array(heard.length);
    decodeG711('PCMU', heard, samples);
    expect(samples.some((sample) => Math.abs(sample) > 500)).toBe(true);
    expect(leg.session.errors).toEqual([]);
  });

  it('does not ask a caller who speaks longer than the longest silence, and asks once they are silent', async () => {
    const { leg, session, answer } = await opened();
    answer('What happened?', sound(60));
    leg.frames(5);
    const before = session.messages.all.length;
    // Speech with a pause of half a second in each two seconds: 40 s, more than twice the longest silence.
    for (let sentence = 0; sentence < 20; sentence += 1) {
      leg.frames(75, 0x22);
      leg.frames(25, SILENCE);
    }
    expect(session.messages.all).toHaveLength(before);
    expect(leg.hasHungUp()).toBe(false);
    // Clicks are no speech.
    for (let click = 0; click < 16; click += 1) {
      leg.frames(1, 0x22);
      leg.frames(49, SILENCE);
    }
    expect(JSON.stringify(session.messages.all.slice(before))).toContain('Nobody has spoken for a while.');
    leg.frames(800, SILENCE);
    expect(leg.notes.join()).toContain('nobody spoke, also not after a question');
  });

  it('ignores an unknown message within an answer', async () => {
    const { leg, play, session } = await opened();
    play.begin();
    play.say(sound(60));
    session.surprise();
    play.say(sound(60));
    play.end();
    const heard = leg.frames(8);
    expect(Array.from({ length: 6 }, (_, i) => isSilent(heard.subarray(160 * i, 160 * (i + 1))))).toEqual(Array<boolean>(6).fill(false));
    expect([leg.isLost(), leg.sessions.length]).toEqual([false, 1]);
  });
});
