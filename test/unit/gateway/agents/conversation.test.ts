import { describe, expect, it } from 'vitest';
import { Sentences } from '../../../../src/gateway/agents/conversation/sentences.js';
import { CHARACTER_MS, openConversation } from '../../../support/agent/conversation-leg.js';
import { voiceLikeNoise } from '../../../support/media/audio.js';

const FRAME = 160;
const text = (token: string, more: object = {}) => ({ type: 'text', token, last: true, ...more });
/** Frames in which this text is heard. */
const framesOf = (said: string): number => (said.length * CHARACTER_MS) / 20;
/** Voice of the caller, or noise. */
const voice = (ms: number, seed = 5): Int16Array => voiceLikeNoise((ms / 1_000) * 8_000, seed);

describe('an application in a conversation', () => {
  it('gets setup first and each turn as text, and what it sends is spoken', async () => {
    const call = openConversation();
    await call.talk();
    expect(call.sent[0]).toMatchObject({
      type: 'setup',
      sessionId: expect.stringMatching(/^VX/) as string,
      from: '+15550001111',
      to: '+15552223333',
      direction: 'inbound',
      customParameters: { name: 'Ada' },
    });
    call.flux.turn('StartOfTurn', 'What');
    call.flux.turn('Update', 'What time');
    call.flux.turn('EagerEndOfTurn', 'What time is');
    await call.frames(2);
    expect(call.of('prompt')).toEqual([]);
    call.flux.turn('EndOfTurn', 'What time is it?');
    await call.frames(2);
    expect(call.of('prompt')).toEqual([{ type: 'prompt', voicePrompt: 'What time is it?', lang: 'en-US', last: true }]);
    call.says({ type: 'text', token: 'It is ', last: false });
    call.says({ type: 'text', token: 'ten. Any', last: false });
    call.says(text('thing else?'));
    const heard = await call.frames(60);
    expect(call.asked.map(({ text: said }) => said)).toEqual(['It is ten.', 'Anything else?']);
    expect(heard).toBe(framesOf('It is ten.') + framesOf('Anything else?'));
    expect(call.transcript.map(({ speaker, text: said }) => `${speaker}: ${said}`)).toEqual([
      'caller: What time is it?',
      'agent: It is ten.',
      'agent: Anything else?',
    ]);
    expect(call.flux.errors).toEqual([]);
    expect(call.flux.audio.length).toBeGreaterThan(640);
  });

  it('gets the direction of a placed call', async () => {
    const call = openConversation({}, { direction: 'outbound-api' });
    await call.talk();
    expect(call.sent[0]).toMatchObject({ type: 'setup', direction: 'outbound-api' });
  });

  it('may write null for a field that it omits', async () => {
    const call = openConversation();
    await call.talk();
    call.says({ type: 'text', token: 'One.', last: true, lang: null, interruptible: null, preemptible: null });
    call.says({ type: 'play', source: 'https://cdn.example/a.wav', loop: null });
    call.says({ type: 'language', ttsLanguage: null, transcriptionLanguage: 'de-DE' });
    call.says({ type: 'end', handoffData: null });
    call.says({ type: 'sendDigits', digits: null });
    await call.frames(2);
    expect(call.asked.map(({ text: said }) => said)).toEqual(['One.']);
    // What is needed is missing all the same.
    expect(call.of('error').map(({ description }) => description)).toEqual([expect.stringContaining('digits') as string]);
  });

  it('greets, and is interrupted within 200 ms by a caller who speaks, with the text heard until then', async () => {
    const greeting = 'Good morning, this is the front desk, how may I help you today with your stay';
    const call = openConversation({ greeting: { text: greeting, interruptible: 'any' } });
    await call.talk();
    await call.frames(30);
    const spoken = await call.frames(15, voice(300));
    // The detector takes 100 ms; the packets of the caller wait in the reorder buffer.
    expect(spoken * 20).toBeLessThanOrEqual(200);
    const [interrupt] = call.of('interrupt');
    expect(greeting.startsWith(interrupt?.utteranceUntilInterrupt ?? '?')).toBe(true);
    const heardMs = (interrupt?.utteranceUntilInterrupt.length ?? 0) * CHARACTER_MS;
    // Whole words, so a little less than what was played.
    expect(heardMs).toBeGreaterThan((interrupt?.durationUntilInterruptMs ?? 0) - 300);
    expect(heardMs).toBeLessThanOrEqual((interrupt?.durationUntilInterruptMs ?? 0) + 40);
    expect(call.transcript).toMatchObject([{ speaker: 'agent', interrupted: true }]);
  });

  it.each([
    ['80 ms of noise', voice(80)],
    ['a cough: two bursts of 60 ms', Int16Array.from([...voice(60), ...new Int16Array(120 * 8), ...voice(60, 9)])],
  ])('is not interrupted by %s', async (_name, sound) => {
    const call = openConversation();
    await call.talk();
    call.says(text('A sentence that goes on for quite a while so that somebody may cough'));
    await call.frames(10);
    await call.frames(40, Int16Array.from([...sound, ...new Int16Array(40 * FRAME - sound.length)]));
    expect(call.of('interrupt')).toEqual([]);
  });

  it('is interrupted within 200 ms by 99 of 100 beginnings of speech', async () => {
    const delays: number[] = [];
    for (let seed = 1; seed <= 100; seed += 1) {
      const call = openConversation();
      await call.talk();
      call.says(text('A sentence that goes on for quite a while so that somebody may speak'));
      await call.frames(10 + (seed % 7));
      delays.push(20 * (await call.frames(20, voice(400, seed))));
      call.agent.close();
    }
    delays.sort((a, b) => a - b);
    expect(delays[98]).toBeLessThanOrEqual(200);
    expect(delays[0]).toBeGreaterThan(0);
  });

  it.each([
    ['none', false, false],
    ['dtmf', false, true],
    ['speech', true, false],
    ['any', true, true],
  ] as const)('is interrupted according to interruptible: %s', async (interruptible, bySpeech, byKey) => {
    const call = openConversation({ interruptible: 'none', reportsDigits: true });
    await call.talk();
    const sentence = text('A sentence that goes on for quite a while so that somebody may speak', { interruptible });
    call.says(sentence);
    await call.frames(10);
    await call.frames(20, voice(400));
    expect(call.of('interrupt').length).toBe(bySpeech ? 1 : 0);
    const other = openConversation({ interruptible: 'none', reportsDigits: true });
    await other.talk();
    other.says(sentence);
    await other.frames(10);
    other.agent.digit(5);
    expect([other.of('interrupt').length, other.of('dtmf').length]).toEqual(byKey ? [1, 1] : [0, 0]);
  });

  it.each([
    ['high', [160, 260, 500], [true, true, true]],
    ['medium', [160, 260, 500], [false, true, true]],
    ['low', [160, 260, 500], [false, false, true]],
  ] as const)(
    'is interrupted by a voice that lasts as long as interruptSensitivity requires: %s',
    async (sensitivity, lengths, expected) => {
      const interrupted: boolean[] = [];
      for (const ms of lengths) {
        const call = openConversation({ sensitivity });
        await call.talk();
        call.says(text('A sentence that goes on for quite a while so that somebody may speak'));
        await call.frames(10);
        await call.frames(40, Int16Array.from([...voice(ms), ...new Int16Array(40 * FRAME - 8 * ms)]));
        interrupted.push(call.of('interrupt').length === 1);
      }
      expect(interrupted).toEqual(expected);
    },
  );

  it('greets without interruption where welcomeGreetingInterruptible says so, and drops preemptible text', async () => {
    const greeting = 'Good morning, this is the front desk';
    const call = openConversation({ greeting: { text: greeting, interruptible: 'none' }, preemptible: true });
    await call.talk();
    await call.frames(10);
    expect(await call.frames(20, voice(400))).toBe(20);
    expect(call.of('interrupt')).toEqual([]);
    await call.frames(20);
    call.says(text('One moment please, I am looking for your booking in the system'));
    await call.frames(10);
    call.says(text('Found.'));
    expect(await call.frames(30)).toBe(framesOf('Found.'));
  });

  it('gets no DTMF digit without dtmfDetection', async () => {
    const call = openConversation({ reportsDigits: false });
    await call.talk();
    call.agent.digit(5);
    expect(call.of('dtmf')).toEqual([]);
  });

  it('gets what the caller says and presses during its speech only where it asks for that', async () => {
    for (const [reportsWhileSpeaking, prompts, digits] of [
      ['none', 0, 0],
      ['speech', 1, 0],
      ['any', 1, 1],
    ] as const) {
      const call = openConversation({ interruptible: 'none', reportsWhileSpeaking, reportsDigits: true });
      await call.talk();
      call.says(text('A sentence that goes on for quite a while'));
      await call.frames(5);
      await call.callerSays('Wait please');
      call.agent.digit(1);
      expect([call.of('prompt').length, call.of('dtmf').length]).toEqual([prompts, digits]);
      await call.frames(60);
      await call.callerSays('Now');
      call.agent.digit(2);
      expect([call.of('prompt').length, call.of('dtmf').length]).toEqual([prompts + 1, digits + 1]);
    }
  });

  it('may get partial prompts, and the language that was spoken', async () => {
    const call = openConversation({ partialPrompts: true, transcriptionLanguage: 'multi', hints: ['Trunkline', 'SRTP'] });
    await call.talk();
    expect([call.flux.parameters.model, call.flux.parameters.language_hint, call.flux.keyterms]).toEqual([
      'flux-general-multi',
      undefined,
      ['Trunkline', 'SRTP'],
    ]);
    call.flux.turn('StartOfTurn', 'Wie', ['de']);
    call.flux.turn('Update', 'Wie spät', ['de']);
    call.flux.turn('EndOfTurn', 'Wie spät ist es?', ['de']);
    await call.frames(2);
    expect(call.of('prompt').map(({ voicePrompt, lang, last }) => [voicePrompt, lang, last])).toEqual([
      ['Wie', 'de', false],
      ['Wie spät', 'de', false],
      ['Wie spät ist es?', 'de', true],
    ]);
  });

  it('loses the rest of a text that was interrupted, until the next prompt', async () => {
    const call = openConversation();
    await call.talk();
    call.says({ type: 'text', token: 'This is a long sentence that is interrupted soon. ', last: false });
    await call.frames(10);
    await call.frames(20, voice(400));
    call.says({ type: 'text', token: 'Nobody hears this. ', last: false });
    expect(await call.frames(40)).toBe(0);
    await call.callerSays('And now?');
    call.says(text('New.'));
    expect(await call.frames(10)).toBe(framesOf('New.'));
  });

  it('replaces a preemptible text by the next one, without an interrupt', async () => {
    const call = openConversation();
    await call.talk();
    call.says(text('One moment please, I am looking for your booking in the system', { preemptible: true }));
    await call.frames(10);
    call.says(text('Found.'));
    expect(await call.frames(30)).toBe(framesOf('Found.'));
    expect(call.of('interrupt')).toEqual([]);
    call.says(text('One moment please'));
    call.says(text('Found.'));
    expect(await call.frames(40)).toBe(framesOf('One moment please') + framesOf('Found.'));
  });

  it('plays files as often as it says, until it is interrupted', async () => {
    const call = openConversation();
    await call.talk();
    call.says({ type: 'play', source: 'https://app.example.com/a.wav', loop: 3 });
    expect(await call.frames(60)).toBe(30);
    call.says({ type: 'play', source: 'https://app.example.com/a.wav', loop: 0 });
    expect(await call.frames(100)).toBeGreaterThan(95);
    await call.frames(20, voice(400));
    expect(await call.frames(50)).toBe(0);
    call.says({ type: 'play', source: 'https://app.example.com/missing.wav' });
    await call.frames(5);
    expect(call.of('error')).toEqual([{ type: 'error', description: 'text to speech: The server of the audio answered 404.' }]);
  });

  it('sends digits, and speaks and listens in another language', async () => {
    const call = openConversation({ languages: { 'de-DE': { provider: 'elevenlabs', voice: 'anna' } } });
    await call.talk();
    call.says({ type: 'sendDigits', digits: '12#' });
    expect(call.pressed).toEqual([1, 2, 11]);
    call.says({ type: 'language', ttsLanguage: 'de-DE', transcriptionLanguage: 'de-DE' });
    await call.frames(5);
    expect([call.sessions.length, call.sessions[0]?.closed.all]).toEqual([2, [1_000]]);
    expect(call.flux.parameters).toMatchObject({ model: 'flux-general-multi', language_hint: 'de' });
    call.says(text('Guten Tag.'));
    call.says(text('Good day.', { lang: 'en-GB' }));
    await call.frames(40);
    expect(call.asked.map(({ language, voice: { provider, voice: name } }) => [language, provider, name])).toEqual([
      ['de-DE', 'elevenlabs', 'anna'],
      ['en-GB', 'deepgram', null],
    ]);
    await call.callerSays('Ja');
    expect(call.of('prompt')[0]?.lang).toBe('de-DE');
  });

  it('ends the conversation with its data, once its speech was heard', async () => {
    const call = openConversation();
    await call.talk();
    call.says(text('Goodbye.'));
    call.says({ type: 'end', handoffData: '{"to":"desk"}' });
    expect(await call.frames(10)).toBe(framesOf('Goodbye.'));
    await call.frames(20);
    expect(call.events).toEqual([{ type: 'conversation-ended', handoffData: '{"to":"desk"}', error: null }]);
    expect([call.closed, call.flux.closed.all]).toEqual([['closed'], [1_000]]);
  });

  it.each([
    [1_000, null],
    [1_006, 'wss://app.example.com/relay: the connection was closed with 1006'],
  ])('that closes with %i ends the conversation, and is not connected again', async (code, error) => {
    const call = openConversation();
    await call.talk();
    call.application().onClosed(code);
    await call.frames(100);
    expect(call.events).toEqual([{ type: 'conversation-ended', handoffData: null, error }]);
  });

  it('gets an error for an invalid message, and for speech that could not be synthesized', async () => {
    const call = openConversation();
    await call.talk();
    call.application().onText('{"type":"txt"}');
    call.application().onText('no JSON');
    call.failOn('Broken.');
    call.says(text('Broken. Fine.'));
    expect(await call.frames(20)).toBe(framesOf('Fine.'));
    expect(call.of('error').map(({ description }) => description)).toEqual([
      expect.stringMatching(/^The message is not valid: type/),
      expect.stringMatching(/^The message is not valid/),
      'text to speech: deepgram answered 429 (too many sessions or requests)',
    ]);
  });

  it('continues when the recognizer is lost and returns, and fails when it does not', async () => {
    const call = openConversation();
    await call.talk();
    call.loseFlux();
    await call.frames(20);
    expect(call.sessions.length).toBe(2);
    await call.callerSays('Still there?');
    expect(call.of('prompt').length).toBe(1);
    call.refusals.push('HTTP 401', 'HTTP 401', 'HTTP 401', 'HTTP 401');
    call.loseFlux();
    await call.frames(100);
    expect(call.events).toMatchObject([
      { type: 'conversation-ended', error: expect.stringContaining('HTTP 401 (the key is wrong)') as string },
    ]);
  });

  it('cannot begin without a key, without an answer, or where it is refused', async () => {
    const keyless = openConversation({}, { listen: { url: 'wss://api.deepgram.com/v2/listen', apiKey: null } });
    await expect(keyless.agent.connect()).rejects.toThrow('there is no key for deepgram');
    const refused = openConversation();
    const connecting = refused.agent.connect();
    refused.application().onFailed('the upgrade was answered with HTTP 403');
    await expect(connecting).rejects.toThrow('wss://app.example.com/relay: the upgrade was answered with HTTP 403');
    const silent = openConversation();
    const waiting = silent.agent.connect();
    silent.clock.advance(60_000);
    await expect(waiting).rejects.toThrow('no answer within');
  });
});

describe('the split into sentences', () => {
  it('happens where they end, and early at the first clause of a long one', () => {
    const sentences = new Sentences();
    expect(sentences.push('It costs 3.50 euros. And')).toEqual(['It costs 3.50 euros.']);
    expect(sentences.push(' that')).toEqual([]);
    expect(sentences.push(' is all! "Really?" Yes')).toEqual(['And that is all!', '"Really?"']);
    expect(sentences.flush()).toEqual(['Yes']);
    expect(sentences.push('If you would like to change your booking, which you made yesterday, say so')).toEqual([
      'If you would like to change your booking,',
    ]);
    expect(sentences.flush()).toEqual(['which you made yesterday, say so']);
    expect(sentences.push('x'.repeat(700)).map(({ length }) => length)).toEqual([300, 300]);
  });
});
