import type { AudioCodec } from '../../rtp/codec/g711.js';
import { PHRASE_BOOKS, type PhraseBook } from './phrase-books.js';
import type { Phrase } from './session.js';
import { DEFAULT_LANGUAGE, DEFAULT_VOICE, espeakVoiceOf, FEMALE, isLanguageCode, isSupportedVoice } from '../model/espeak-voices.js';

/** What to say, and the language of the voice that says it. */
export interface SpokenText {
  readonly text: string;
  readonly language: string;
  /** A name of `supportedVoices`; without it the language's own. */
  readonly voice?: string;
}

/** @param tag of BCP 47, such as `de-AT`, or a language code of the product; `null`: English @param voice one of `supportedVoices`, or Twilio's `man`, `woman` or `alice` */
export function spokenBy(text: string, tag: string | null, voice: string | null): SpokenText {
  if (voice !== null && isSupportedVoice(voice)) return { text, language: DEFAULT_LANGUAGE, voice };
  if (tag !== null && isLanguageCode(tag)) return { text, language: tag };
  const speaking = espeakVoiceOf(tag ?? DEFAULT_VOICE) ?? DEFAULT_VOICE;
  const female = speaking + FEMALE;
  return {
    text,
    language: DEFAULT_LANGUAGE,
    voice: FEMALE_NAMES.includes(voice?.toLowerCase() ?? '') && isSupportedVoice(female) ? female : speaking,
  };
}

const FEMALE_NAMES = ['alice', 'woman'];

/** How a call is doing, as the line tells it. */
export interface CallFigures {
  readonly lossPercent: number;
  readonly jitterMs: number;
  /** Mean opinion score, 1.0 to 4.5. */
  readonly mos: number;
  readonly codec: AudioCodec;
  /** SRTP suite of the carrier's side; `null`: not encrypted. */
  readonly cipher: string | null;
  readonly echoMs: number;
}

const STAR_EVENT = 10;

function bookOf(language: string): { readonly book: PhraseBook; readonly language: string } {
  const code = language.toUpperCase();
  const book = Object.hasOwn(PHRASE_BOOKS, code) ? PHRASE_BOOKS[code] : undefined;
  if (book !== undefined) return { book, language: code };
  // English words want an English voice.
  const english = PHRASE_BOOKS[DEFAULT_LANGUAGE];
  if (english === undefined) throw new RangeError('there is no phrase book of the default language');
  return { book: english, language: DEFAULT_LANGUAGE };
}

/** How a key press is read back: `You pressed one.` English, with an English voice, where there is no translation. */
export function digitPhrase(event: number, language: string): SpokenText {
  const { book, language: spoken } = bookOf(language);
  const key = [...book.keys, book.star, book.pound][event] ?? book.letter.replace('{}', 'ABCD'[event - 12] ?? '');
  return { text: book.pressed.replace('{}', key), language: spoken };
}

/** What the line says before it hangs up. */
export function goodbyePhrase(language: string): SpokenText {
  const { book, language: spoken } = bookOf(language);
  return { text: book.goodbye, language: spoken };
}

/** What the line says first when its owner set nothing. */
export function builtInGreeting(language: string): SpokenText {
  const { book, language: spoken } = bookOf(language);
  return { text: book.greeting, language: spoken };
}

/** The sentence that `figuresPhrase` begins with, whatever the figures. */
export function figuresIntroduction(language: string): SpokenText {
  const { book, language: spoken } = bookOf(language);
  return { text: book.figuresIntroduction, language: spoken };
}

/** How the line tells the quality of the call. */
export function figuresPhrase(figures: CallFigures, language: string): SpokenText {
  const { book, language: spoken } = bookOf(language);
  const values: Readonly<Record<string, string>> = {
    loss: tenths(figures.lossPercent, book),
    jitter: milliseconds(figures.jitterMs, book),
    mos: tenths(figures.mos, book),
    codec: figures.codec.split('').join(' '),
    cipher: cipherName(figures.cipher, book),
    echo: milliseconds(figures.echoMs, book),
  };
  const text = book.figures.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
  return { text: `${book.figuresIntroduction} ${text}`, language: spoken };
}

/** The text of a phrase of the session; an empty first sentence is the built-in greeting. Without figures `*` is read back. */
export function textOf(phrase: Phrase, firstSentence: string, language: string, figures: CallFigures | null = null): SpokenText {
  switch (phrase.kind) {
    case 'greeting':
      return firstSentence.trim() === '' ? builtInGreeting(language) : { text: firstSentence, language };
    case 'digit':
      return digitPhrase(phrase.event, language);
    case 'figures':
      return figures === null ? digitPhrase(STAR_EVENT, language) : figuresPhrase(figures, language);
    case 'goodbye':
      return goodbyePhrase(language);
  }
}

function tenths(value: number, book: PhraseBook): string {
  const rounded = Math.round(value * 10) / 10;
  return String(rounded).replace('.', book.decimalMark);
}

function milliseconds(value: number, book: PhraseBook): string {
  const rounded = Math.round(value);
  return `${rounded} ${rounded === 1 ? book.millisecond : book.milliseconds}`;
}

/** `AES_CM_128_HMAC_SHA1_80` is AES with 128 bits. */
function cipherName(suite: string | null, book: PhraseBook): string {
  if (suite === null) return book.noCipher;
  const bits = /^AES_(?:CM_)?(\d+)/.exec(suite)?.[1];
  return bits === undefined ? suite.replaceAll('_', ' ') : `${book.aes} ${bits}`;
}
