/** What the test line says in one language. */
export interface PhraseBook {
  readonly greeting: string;
  readonly goodbye: string;
  /** Where `{}` stands, the key's name goes. */
  readonly pressed: string;
  /** Names of the events 0 to 9. */
  readonly keys: readonly string[];
  readonly star: string;
  readonly pound: string;
  /** A to D: `{}` is the letter. */
  readonly letter: string;
  /** What the quality figures begin with: the same words each time. */
  readonly figuresIntroduction: string;
  /** `{loss}`, `{jitter}`, `{mos}`, `{codec}`, `{cipher}` and `{echo}`; without a full stop, so that there is no long pause in it. */
  readonly figures: string;
  readonly millisecond: string;
  readonly milliseconds: string;
  readonly decimalMark: string;
  /** Letters one by one, as a voice of the language says them. */
  readonly aes: string;
  readonly noCipher: string;
}

const ENGLISH: PhraseBook = {
  greeting:
    'Hello. This is the Trunkline test line. Speak, and you will hear yourself. Press digits, and I will read them back. Press star for the figures of the call, or pound to end it.',
  goodbye: 'Goodbye.',
  pressed: 'You pressed {}.',
  keys: ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'],
  star: 'star',
  pound: 'pound',
  letter: 'the letter {}',
  figuresIntroduction: 'Here are the figures of this call.',
  figures:
    'Packets lost: {loss} percent, jitter: {jitter}, voice quality: {mos} out of 5, codec: {codec}, cipher: {cipher}, the echo takes {echo}.',
  millisecond: 'millisecond',
  milliseconds: 'milliseconds',
  decimalMark: '.',
  aes: 'AES',
  noCipher: 'none',
};

const GERMAN: PhraseBook = {
  greeting:
    'Hallo. Dies ist die Testleitung von Trunkline. Sprechen Sie, und Sie hören sich selbst. Drücken Sie Ziffern, und ich lese sie vor. Die Sterntaste sagt die Messwerte an, die Rautetaste beendet das Gespräch.',
  goodbye: 'Auf Wiederhören.',
  pressed: 'Sie haben {} gedrückt.',
  keys: ['null', 'eins', 'zwei', 'drei', 'vier', 'fünf', 'sechs', 'sieben', 'acht', 'neun'],
  star: 'Stern',
  pound: 'Raute',
  letter: 'den Buchstaben {}',
  figuresIntroduction: 'Hier sind die Messwerte dieses Gesprächs.',
  figures:
    'Verlorene Pakete: {loss} Prozent, Jitter: {jitter}, Sprachqualität: {mos} von 5, Codec: {codec}, Verschlüsselung: {cipher}, das Echo braucht {echo}.',
  millisecond: 'Millisekunde',
  milliseconds: 'Millisekunden',
  decimalMark: ',',
  aes: 'A E S',
  noCipher: 'keine',
};

const FRENCH: PhraseBook = {
  greeting:
    'Bonjour. Ceci est la ligne de test de Trunkline. Parlez, et vous vous entendrez. Appuyez sur des chiffres, et je les lirai. La touche étoile donne les mesures de l’appel, la touche dièse le termine.',
  goodbye: 'Au revoir.',
  pressed: 'Vous avez appuyé sur {}.',
  keys: ['zéro', 'un', 'deux', 'trois', 'quatre', 'cinq', 'six', 'sept', 'huit', 'neuf'],
  star: 'étoile',
  pound: 'dièse',
  letter: 'la lettre {}',
  figuresIntroduction: 'Voici les mesures de cet appel.',
  figures:
    'Paquets perdus : {loss} pour cent, gigue : {jitter}, qualité de la voix : {mos} sur 5, codec : {codec}, chiffrement : {cipher}, l’écho met {echo}.',
  millisecond: 'milliseconde',
  milliseconds: 'millisecondes',
  decimalMark: ',',
  aes: 'A E S',
  noCipher: 'aucun',
};

const SPANISH: PhraseBook = {
  greeting:
    'Hola. Esta es la línea de prueba de Trunkline. Hable, y se oirá a sí mismo. Pulse números, y los repetiré. Pulse asterisco para oír las mediciones de la llamada, o almohadilla para terminarla.',
  goodbye: 'Adiós.',
  pressed: 'Ha pulsado {}.',
  keys: ['cero', 'uno', 'dos', 'tres', 'cuatro', 'cinco', 'seis', 'siete', 'ocho', 'nueve'],
  star: 'asterisco',
  pound: 'almohadilla',
  letter: 'la letra {}',
  figuresIntroduction: 'Estas son las mediciones de la llamada.',
  figures:
    'Paquetes perdidos: {loss} por ciento, fluctuación: {jitter}, calidad de la voz: {mos} de 5, códec: {codec}, cifrado: {cipher}, el eco tarda {echo}.',
  millisecond: 'milisegundo',
  milliseconds: 'milisegundos',
  decimalMark: ',',
  aes: 'A E S',
  noCipher: 'ninguno',
};

const ITALIAN: PhraseBook = {
  greeting:
    'Buongiorno. Questa è la linea di prova di Trunkline. Parli, e sentirà la sua voce. Prema dei numeri, e li ripeterò. Prema asterisco per le misure della chiamata, o cancelletto per terminarla.',
  goodbye: 'Arrivederci.',
  pressed: 'Ha premuto {}.',
  keys: ['zero', 'uno', 'due', 'tre', 'quattro', 'cinque', 'sei', 'sette', 'otto', 'nove'],
  star: 'asterisco',
  pound: 'cancelletto',
  letter: 'la lettera {}',
  figuresIntroduction: 'Ecco le misure di questa chiamata.',
  figures:
    'Pacchetti persi: {loss} per cento, jitter: {jitter}, qualità della voce: {mos} su 5, codec: {codec}, cifratura: {cipher}, l’eco impiega {echo}.',
  millisecond: 'millisecondo',
  milliseconds: 'millisecondi',
  decimalMark: ',',
  aes: 'A E S',
  noCipher: 'nessuna',
};

/** By the product's language codes. */
export const PHRASE_BOOKS: Readonly<Record<string, PhraseBook>> = {
  ENG: ENGLISH,
  DEU: GERMAN,
  GER: GERMAN,
  FRA: FRENCH,
  FRE: FRENCH,
  SPA: SPANISH,
  ITA: ITALIAN,
};
