// The voices of the built-in speech program.

/** espeak-ng voices of the product's language codes: ISO 639-2, both the bibliographic and the terminological ones. */
const VOICES: Readonly<Record<string, string>> = {
  ENG: 'en-us',
  ARA: 'ar',
  BEN: 'bn',
  CES: 'cs',
  CZE: 'cs',
  CHI: 'cmn',
  ZHO: 'cmn',
  DAN: 'da',
  DEU: 'de',
  GER: 'de',
  DUT: 'nl',
  NLD: 'nl',
  ELL: 'el',
  GRE: 'el',
  FIN: 'fi',
  FRA: 'fr',
  FRE: 'fr',
  HEB: 'he',
  HIN: 'hi',
  HUN: 'hu',
  IND: 'id',
  ITA: 'it',
  JPN: 'ja',
  KOR: 'ko',
  NOB: 'nb',
  NOR: 'nb',
  POL: 'pl',
  POR: 'pt-br',
  RON: 'ro',
  RUM: 'ro',
  RUS: 'ru',
  SPA: 'es-419',
  SWE: 'sv',
  TUR: 'tr',
  UKR: 'uk',
  VIE: 'vi',
};

export const DEFAULT_LANGUAGE = 'ENG';
export const DEFAULT_VOICE = 'en-us';

/** The espeak-ng voice of a language code, in any case; an unknown code speaks English. */
export function voiceOf(language: string): string {
  return Object.hasOwn(VOICES, language.toUpperCase()) ? (VOICES[language.toUpperCase()] ?? DEFAULT_VOICE) : DEFAULT_VOICE;
}

/** espeak-ng voices beside those of the languages; `en` is British. */
const FURTHER_VOICES = ['en', 'en-gb-scotland', 'en-gb-x-rp', 'es', 'fr-be', 'fr-ch', 'pt', 'yue'];
/** espeak-ng's own voices are male; this variant of each is female. */
export const FEMALE = '+f3';
/** Other names of `en` and `fr`, which espeak-ng takes without a variant only. */
const OTHER_NAMES = ['en-gb', 'fr-fr'];

/** The names of voices that an agent may have, in alphabetical order: `de` and the like, and `de+f3` for a woman's. */
export function supportedVoices(): string[] {
  const voices = [...new Set([...Object.values(VOICES), ...FURTHER_VOICES])];
  return [...voices, ...voices.map((voice) => voice + FEMALE), ...OTHER_NAMES].sort();
}

const SUPPORTED_VOICES: ReadonlySet<string> = new Set(supportedVoices());

/** Whether it is one of `supportedVoices`. */
export function isSupportedVoice(voice: string): boolean {
  return SUPPORTED_VOICES.has(voice);
}

/** The language that a voice was made for; `null`: none of those that there are codes of, or it is not one of `supportedVoices`. */
export function languageOfVoice(voice: string): string | null {
  if (!isSupportedVoice(voice)) return null;
  const family = (name: string): string => name.split(/[-+]/, 1)[0] ?? name;
  return Object.keys(VOICES).find((code) => family(voiceOf(code)) === family(voice)) ?? null;
}

/** The codes that have a voice of their own, in alphabetical order. */
export function supportedLanguages(): string[] {
  return Object.keys(VOICES).sort();
}

const FAMILIES: Readonly<Record<string, string>> = { zh: 'cmn', no: 'nb' };

/** Whether it is a language code of the product, in any case. */
export function isLanguageCode(language: string): boolean {
  return Object.hasOwn(VOICES, language.toUpperCase());
}

/** The voice of a tag of BCP 47, such as `de-AT`; `undefined`: none speaks this language. */
export function espeakVoiceOf(tag: string): string | undefined {
  const [family = '', region = ''] = tag.toLowerCase().split('-');
  const own = Object.values(VOICES).find((one) => one.split('-', 1)[0] === (FAMILIES[family] ?? family));
  return [`${family}-${region}`, region === family ? family : '', own ?? ''].find((one) => one !== '' && isSupportedVoice(one));
}
