import { DEFAULT_LANGUAGE } from './languages.js';
import type { Phrase } from './session.js';

/** What to say, and the language of the voice that says it. */
export interface SpokenText {
  readonly text: string;
  readonly language: string;
}

interface PhraseBook {
  readonly greeting: string;
  readonly goodbye: string;
  /** Where `{}` stands, the key's name goes. */
  readonly pressed: string;
  /** Names of the events 0 to 11. */
  readonly keys: readonly string[];
  /** A to D: `{}` is the letter. */
  readonly letter: string;
}

const ENGLISH: PhraseBook = {
  greeting:
    'Hello. This is the Trunkline test line. Speak, and you will hear yourself. Press digits, and I will read them back. Press pound to end the call.',
  goodbye: 'Goodbye.',
  pressed: 'You pressed {}.',
  keys: ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'star', 'pound'],
  letter: 'the letter {}',
};

const GERMAN: PhraseBook = {
  greeting:
    'Hallo. Dies ist die Testleitung von Trunkline. Sprechen Sie, und Sie hören sich selbst. Drücken Sie Ziffern, und ich lese sie vor. Die Rautetaste beendet das Gespräch.',
  goodbye: 'Auf Wiederhören.',
  pressed: 'Sie haben {} gedrückt.',
  keys: ['null', 'eins', 'zwei', 'drei', 'vier', 'fünf', 'sechs', 'sieben', 'acht', 'neun', 'Stern', 'Raute'],
  letter: 'den Buchstaben {}',
};

const FRENCH: PhraseBook = {
  greeting:
    'Bonjour. Ceci est la ligne de test de Trunkline. Parlez, et vous vous entendrez. Appuyez sur des chiffres, et je les lirai. La touche dièse termine l’appel.',
  goodbye: 'Au revoir.',
  pressed: 'Vous avez appuyé sur {}.',
  keys: ['zéro', 'un', 'deux', 'trois', 'quatre', 'cinq', 'six', 'sept', 'huit', 'neuf', 'étoile', 'dièse'],
  letter: 'la lettre {}',
};

const SPANISH: PhraseBook = {
  greeting:
    'Hola. Esta es la línea de prueba de Trunkline. Hable, y se oirá a sí mismo. Pulse números, y los repetiré. Pulse almohadilla para terminar la llamada.',
  goodbye: 'Adiós.',
  pressed: 'Ha pulsado {}.',
  keys: ['cero', 'uno', 'dos', 'tres', 'cuatro', 'cinco', 'seis', 'siete', 'ocho', 'nueve', 'asterisco', 'almohadilla'],
  letter: 'la letra {}',
};

const ITALIAN: PhraseBook = {
  greeting:
    'Buongiorno. Questa è la linea di prova di Trunkline. Parli, e sentirà la sua voce. Prema dei numeri, e li ripeterò. Prema cancelletto per terminare la chiamata.',
  goodbye: 'Arrivederci.',
  pressed: 'Ha premuto {}.',
  keys: ['zero', 'uno', 'due', 'tre', 'quattro', 'cinque', 'sei', 'sette', 'otto', 'nove', 'asterisco', 'cancelletto'],
  letter: 'la lettera {}',
};

const BOOKS: Readonly<Record<string, PhraseBook>> = {
  ENG: ENGLISH,
  DEU: GERMAN,
  GER: GERMAN,
  FRA: FRENCH,
  FRE: FRENCH,
  SPA: SPANISH,
  ITA: ITALIAN,
};

function bookOf(language: string): { readonly book: PhraseBook; readonly language: string } {
  const code = language.toUpperCase();
  const book = Object.hasOwn(BOOKS, code) ? BOOKS[code] : undefined;
  // English words want an English voice.
  return book === undefined ? { book: ENGLISH, language: DEFAULT_LANGUAGE } : { book, language: code };
}

/** How a key press is read back: `You pressed one.` English, with an English voice, where there is no translation. */
export function digitPhrase(event: number, language: string): SpokenText {
  const { book, language: spoken } = bookOf(language);
  const key = book.keys[event] ?? book.letter.replace('{}', 'ABCD'[event - 12] ?? '');
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

/** The text of a phrase of the session; an empty first sentence is the built-in greeting. */
export function textOf(phrase: Phrase, firstSentence: string, language: string): SpokenText {
  switch (phrase.kind) {
    case 'greeting':
      return firstSentence.trim() === '' ? builtInGreeting(language) : { text: firstSentence, language };
    case 'digit':
      return digitPhrase(phrase.event, language);
    case 'goodbye':
      return goodbyePhrase(language);
  }
}
