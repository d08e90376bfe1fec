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
  FRA: 'fr-fr',
  FRE: 'fr-fr',
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
const DEFAULT_VOICE = 'en-us';

/** The espeak-ng voice of a language code, in any case; an unknown code speaks English. */
export function voiceOf(language: string): string {
  return Object.hasOwn(VOICES, language.toUpperCase()) ? (VOICES[language.toUpperCase()] ?? DEFAULT_VOICE) : DEFAULT_VOICE;
}

/** The codes that have a voice of their own, in alphabetical order. */
export function supportedLanguages(): string[] {
  return Object.keys(VOICES).sort();
}
