import { describe, expect, it } from 'vitest';
import { deepgramVoiceOf, isoOf, speechProviderOf, voiceOf } from '../../../../src/gateway/model/speech-service.js';

const ID = 'JBFqnCBsd6RMkjVDRZzb';

describe('a voice', () => {
  it.each([
    ['Deepgram.aura-2-thalia-en', { provider: 'deepgram', voice: 'aura-2-thalia-en' }],
    ['ELEVENLABS.x', { provider: 'elevenlabs', voice: 'x' }],
    ['OpenAI.a.b', { provider: 'openai', voice: 'a.b' }],
    ['aura-2-thalia-en', { provider: 'deepgram', voice: 'aura-2-thalia-en' }],
    [ID, { provider: 'elevenlabs', voice: ID }],
    [`${ID}-flash_v2`, { provider: 'elevenlabs', voice: `${ID}-flash_v2` }],
    [`${ID}0`, null],
    [`x${ID}`, null],
    ['Deepgram', null],
    ['Deepgram.', null],
    ['Polly.Joanna', null],
    ['x-aura-', null],
  ] as const)('is read from %s', (name, voice) => {
    expect(voiceOf(name)).toEqual(voice);
  });

  it('belongs to the provider beside it, unless it names one itself', () => {
    expect(voiceOf('Polly.Joanna', 'openai')).toEqual({ provider: 'openai', voice: 'Polly.Joanna' });
    expect(voiceOf('aura-2-thalia-en', 'openai')).toEqual({ provider: 'openai', voice: 'aura-2-thalia-en' });
    expect(voiceOf('Deepgram.x', 'openai')).toEqual({ provider: 'deepgram', voice: 'x' });
  });

  it('for a language is Deepgram’s first one', () => {
    expect([deepgramVoiceOf('de-DE'), deepgramVoiceOf('EN'), deepgramVoiceOf('pl')]).toEqual([
      'aura-2-aurelia-de',
      'aura-2-amalthea-en',
      undefined,
    ]);
  });
});

it('a language and a provider are found in either case', () => {
  expect([isoOf('EN-us'), isoOf('de'), speechProviderOf('OpenAI'), speechProviderOf('Google')]).toEqual(['en', 'de', 'openai', undefined]);
});
