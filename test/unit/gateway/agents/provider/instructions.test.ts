import { describe, expect, it } from 'vitest';
import { greetingOf, instructionsOf, isoLanguageOf } from '../../../../../src/gateway/agents/provider/instructions.js';
import type { ProviderSettings } from '../../../../../src/gateway/model/provider-settings.js';
import { PROVIDER } from '../../../../support/provider/provider-leg.js';

it.each([
  ['ENG', 'en'],
  ['GER', 'de'],
  ['CHI', 'zh'],
  ['NOR', 'no'],
  ['POR', 'pt'],
  ['spa', 'es'],
  ['XXX', 'en'],
])('the language %s has the code %s at a provider', (language, iso) => {
  expect(isoLanguageOf(language)).toBe(iso);
});

it.each([
  [null, 'The call was answered. Greet the caller.'],
  ['Good day.', 'The call was answered. Greet the caller with exactly these words: "Good day."'],
])('a model with the first sentence %j is asked to begin', (firstSentence, expected) => {
  expect(greetingOf({ firstSentence })).toBe(expected);
});

describe('the instructions of a model', () => {
  const SPEAK = 'You speak on the telephone. Speak English, unless the caller asks for another language.';
  const eta = { word: 'ETA', pronunciation: 'E T A', case_sensitive: true, spaced: true };
  const lima = { word: 'lima', pronunciation: 'lee-mah', case_sensitive: false, spaced: true };

  it.each<[string, Partial<ProviderSettings>, string[]]>([
    ['the prompt', {}, ['You are the front desk.', SPEAK]],
    ['no prompt', { prompt: '' }, [SPEAK]],
    ['another language', { prompt: '', language: 'NOR' }, [SPEAK.replace('English', 'Norwegian')]],
    [
      'words and their sounds',
      { pronunciationGuide: [eta, lima] },
      [
        'You are the front desk.',
        SPEAK,
        'Pronounce these words so:\n- "ETA" (only with these capital and small letters): "E T A"\n- "lima": "lee-mah"',
      ],
    ],
    ['a first sentence, which is requested separately', { prompt: '', firstSentence: 'Good day.' }, [SPEAK]],
    ['a greeting of the caller', { prompt: '', waitsForGreeting: true }, [SPEAK]],
    [
      'a first sentence after the caller’s greeting',
      { prompt: '', firstSentence: 'Good day.', waitsForGreeting: true },
      [SPEAK, 'Begin your first answer with exactly these words: "Good day."'],
    ],
  ])('include %s', (_what, settings, expected) => {
    expect(instructionsOf({ ...PROVIDER, ...settings })).toBe(expected.join('\n\n'));
  });
});
