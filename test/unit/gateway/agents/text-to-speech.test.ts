import { mulaw } from 'alawmulaw';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpTextToSpeech, speechRequest } from '../../../../src/gateway/agents/text-to-speech.js';
import { voiceOf, type SpeechServices } from '../../../../src/gateway/model/speech-service.js';
import { systemClock } from '../../../../src/lib/system-clock.js';
import { FakeSpeech } from '../../../support/provider/fake-speech.js';
import { NO_SPEECH } from '../../../support/providers.js';

const DEEPGRAM = { provider: 'deepgram', voice: null } as const;
const never = new AbortController().signal;
let fake: FakeSpeech;
let speech: HttpTextToSpeech;
let services: SpeechServices;

beforeEach(async () => {
  fake = await FakeSpeech.start(({ provider, text }) =>
    provider === 'openai'
      ? Buffer.from(new Int16Array(480 * text.length).fill(3_000).buffer)
      : Buffer.from(mulaw.encode(new Int16Array(160 * text.length).fill(3_000))),
  );
  speech = new HttpTextToSpeech({ allowPrivate: true, caPem: null, clock: systemClock });
  services = {
    deepgram: { ...NO_SPEECH.speech.deepgram, url: `${fake.url}/v1/speak`, apiKey: 'dg' },
    elevenlabs: { ...NO_SPEECH.speech.elevenlabs, url: `${fake.url}/v1/text-to-speech/`, apiKey: 'xi' },
    openai: { ...NO_SPEECH.speech.openai, url: `${fake.url}/v1/audio/speech` },
  };
  return async () => {
    await speech.close();
    await fake.stop();
  };
});
afterEach(() => expect(fake.errors).toEqual([]));

describe('text to speech', () => {
  it.each(['deepgram', 'elevenlabs', 'openai'] as const)('synthesizes samples by %s', async (provider) => {
    const samples = await speech.samples(services, { text: 'Hello', language: 'en-US', voice: { provider, voice: null } }, never);
    expect(Math.abs(samples.length - 800)).toBeLessThanOrEqual(1);
    expect(samples.subarray(100, 700).every((sample) => Math.abs(sample - 3_000) < 150)).toBe(true);
  });

  it('passes audio on as it comes', async () => {
    fake.isStalled = true;
    const pieces: number[] = [];
    const said = speech.stream(services, { text: 'Hello', language: 'en', voice: DEEPGRAM }, never, (_format, bytes) =>
      pieces.push(bytes.length),
    );
    await fake.asked.at(0);
    expect(pieces).toEqual([]);
    fake.resume();
    await said;
    expect(pieces.reduce((sum, bytes) => sum + bytes, 0)).toBe(800);
  });

  it('fails with the cause: a wrong or missing key, a private server address, and a server that answers too late', async () => {
    const text = { text: 'Hello', language: 'en', voice: DEEPGRAM };
    fake.refusal = 401;
    await expect(speech.samples(services, text, never)).rejects.toThrow('deepgram answered 401 (the key is wrong)');
    const keyless = { ...services, deepgram: { ...services.deepgram, apiKey: null } };
    await expect(speech.samples(keyless, text, never)).rejects.toThrow('there is no key for deepgram');
    const guarded = new HttpTextToSpeech({ allowPrivate: false, caPem: null, clock: systemClock });
    await expect(guarded.samples(services, text, never)).rejects.toThrow('is not at an address of the public internet');
    await guarded.close();
    await expect(speech.samples(services, text, AbortSignal.abort())).rejects.toThrow('was not waited for');
  });

  it('uses a voice of the language where none is named', () => {
    const model = (language: string): string | null =>
      speechRequest(services, { text: 'x', language, voice: DEEPGRAM }).url.searchParams.get('model');
    expect(['en-GB', 'de-DE', 'xx'].map(model)).toEqual(['aura-2-thalia-en', expect.stringMatching(/-de$/), 'aura-2-thalia-en']);
  });
});

describe('the name of a voice', () => {
  it.each([
    ['ElevenLabs.anna', { provider: 'elevenlabs', voice: 'anna' }],
    ['deepgram.aura-2-thalia-en', { provider: 'deepgram', voice: 'aura-2-thalia-en' }],
    ['OpenAI.coral', { provider: 'openai', voice: 'coral' }],
    ['aura-2-zeus-en', { provider: 'deepgram', voice: 'aura-2-zeus-en' }],
    ['abcdefghij0123456789-flash_v2_5', { provider: 'elevenlabs', voice: 'abcdefghij0123456789-flash_v2_5' }],
    ['Polly.Joanna', null],
    ['alice', null],
    ['ElevenLabs.', null],
  ])('is read from %s', (name, expected) => {
    expect(voiceOf(name)).toEqual(expected);
  });
});
