import type { ProviderSettings } from '../../model/provider-settings.js';
import { voiceOf } from '../../model/espeak-voices.js';

const OTHER_CODES: Readonly<Record<string, string>> = { cmn: 'zh', nb: 'no' };
const LANGUAGE_NAMES = new Intl.DisplayNames(['en'], { type: 'language' });

/** ISO 639-1 of a language code of the product. */
export function isoLanguageOf(language: string): string {
  const [family = 'en'] = voiceOf(language).split('-');
  return OTHER_CODES[family] ?? family;
}

/** How a model is asked to begin, where the provider says no first sentence by itself. */
export function greetingOf({ firstSentence }: Pick<ProviderSettings, 'firstSentence'>): string {
  const greeting = firstSentence === null ? 'Greet the caller.' : `Greet the caller with exactly these words: "${firstSentence}"`;
  return `The call was answered. ${greeting}`;
}

/** What the model is to do, in one text. */
export function instructionsOf(settings: ProviderSettings): string {
  const { prompt, language, pronunciationGuide: guide, firstSentence, waitsForGreeting } = settings;
  const code = isoLanguageOf(language);
  const words = guide.map(({ word, pronunciation, case_sensitive: isExact }) => {
    const note = isExact ? ' (only with these capital and small letters)' : '';
    return `- "${word}"${note}: "${pronunciation}"`;
  });
  return [
    prompt,
    `You speak on the telephone. Speak ${LANGUAGE_NAMES.of(code) ?? code}, unless the caller asks for another language.`,
    ...(words.length === 0 ? [] : [`Pronounce these words so:\n${words.join('\n')}`]),
    ...(firstSentence !== null && waitsForGreeting ? [`Begin your first answer with exactly these words: "${firstSentence}"`] : []),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}
