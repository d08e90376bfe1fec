import { Deepgram } from '@deepgram/sdk';
import type { RealtimeAudioConfigOutput } from 'openai/resources/realtime/realtime';
import { expect, it } from 'vitest';
import { supportedLanguages } from '../../../../src/gateway/model/espeak-voices.js';
import { PROVIDER_VOICES } from '../../../../src/gateway/model/provider-voices.js';

const namesOf = (provider: string): string[] => PROVIDER_VOICES.filter((voice) => voice.provider === provider).map(({ name }) => name);

it('the voices of Deepgram are those of its library', () => {
  const named = Object.values(Deepgram.SpeakV1Model).filter((name) => name.startsWith('aura-2-'));
  expect(namesOf('deepgram').toSorted()).toEqual([...new Set(named)].toSorted());
  const languages = PROVIDER_VOICES.flatMap(({ language }) => language ?? []);
  expect(supportedLanguages()).toEqual(expect.arrayContaining(languages));
});

it('the voices of OpenAI are those of its library', () => {
  type Named = Extract<NonNullable<RealtimeAudioConfigOutput['voice']>, string>;
  const taken: readonly Named[] = namesOf('openai-realtime');
  expect(taken).toHaveLength(10);
});
