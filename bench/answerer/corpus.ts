import { spawnSync } from 'node:child_process';
import { decodeG711, encodeG711, type AudioCodec } from '../../src/rtp/codec/g711.js';
import type { Answerer } from '../../src/rtp/answerer/answerer-detector.js';
import { parseWav } from '../../src/gateway/agents/wav.js';
import { resample } from '../../src/gateway/agents/resample.js';

// A synthetic corpus of what answers a call: voices of espeak-ng, tones of networks and faxes, noise. The same seed makes the same corpus.

const RATE_HZ = 8_000;
/** Longer than any greeting. */
const LISTEN_S = 25;

export interface Sample {
  readonly name: string;
  readonly answerer: Answerer;
  /** 16 bits, 8 kHz, from the answer; through G.711. */
  readonly samples: Int16Array;
  /** When the greeting's beep ends, in milliseconds; `null`: there is none. */
  readonly beepEndMs: number | null;
}

/** `held-back` has languages, sentences and voices that `tuning` has not: no threshold was chosen by it. */
export type Part = 'tuning' | 'held-back';

interface Voices {
  readonly languages: Readonly<Record<string, { readonly person: readonly string[]; readonly machine: readonly string[] }>>;
  readonly variants: readonly string[];
}

const VOICES: Readonly<Record<Part, Voices>> = {
  tuning: {
    variants: ['m1', 'm2', 'm3', 'f1', 'f2', 'f3'],
    languages: {
      'en-us': {
        person: [
          'Hello?',
          'Hello, John speaking.',
          'Yes?',
          'Smith.',
          'Good morning, this is Anna.',
          'Hi, who is this?',
          'Acme Plumbing, how can I help?',
        ],
        machine: [
          'Hi, you have reached John Smith. I cannot take your call right now. Please leave a message after the tone.',
          'Your call has been forwarded to an automated voice messaging system. At the tone, please record your message.',
          'Hello, this is the Johnson family. We are not at home. Please leave your name and number.',
          'The number you have dialled is not in service. Please check the number and dial again.',
        ],
      },
      de: {
        person: ['Hallo?', 'Müller.', 'Ja, bitte?', 'Guten Tag, Schmidt am Apparat.', 'Weber, hallo?'],
        machine: [
          'Guten Tag, hier ist der Anschluss der Familie Müller. Wir sind zur Zeit nicht erreichbar. Bitte sprechen Sie nach dem Signalton.',
          'Der gewünschte Gesprächspartner ist zur Zeit nicht erreichbar. Bitte versuchen Sie es später noch einmal.',
        ],
      },
      fr: {
        person: ['Allô?', 'Oui, bonjour?', 'Allô, c’est Marie.'],
        machine: ['Bonjour, vous êtes bien chez Marie Dupont. Je ne suis pas disponible. Laissez votre message après le bip sonore.'],
      },
    },
  },
  'held-back': {
    variants: ['m5', 'm7', 'f4', 'f5'],
    languages: {
      'en-gb': {
        person: ['Hello, who is speaking?', 'Yeah?', 'Good afternoon, Peter Jones.', 'Hi there.', 'City Dental, good morning.'],
        machine: [
          'Sorry I missed your call. I am in a meeting or away from my desk. Leave a message and I will get back to you as soon as I can.',
          'Welcome to the voice mail of extension four two seven. Nobody is available to take your call. Please speak after the beep.',
        ],
      },
      es: {
        person: ['¿Diga?', '¿Hola?', '¿Sí, dígame?', 'Buenos días, soy Carmen.'],
        machine: ['Ha llamado al contestador de Carmen García. En este momento no puedo atenderle. Deje su mensaje después de la señal.'],
      },
      it: {
        person: ['Pronto?', 'Pronto, chi parla?', 'Sì?', 'Rossi, buongiorno.'],
        machine: ['Salve, questa è la segreteria telefonica di Paolo Rossi. Lasciate un messaggio dopo il segnale acustico, grazie.'],
      },
    },
  },
};

const SEED: Readonly<Record<Part, number>> = { tuning: 1, 'held-back': 2 };

/** @param size persons, and as many machines; fewer of the others */
export async function* corpusOf(part: Part, size: number): AsyncGenerator<Sample> {
  const random = randomOf(SEED[part]);
  const makers: (() => Sample | Promise<Sample>)[] = [
    ...Array.from({ length: size }, () => () => person(part, random)),
    ...Array.from({ length: size }, () => () => machine(part, random)),
    ...Array.from({ length: Math.ceil(size / 8) }, () => () => fax(random)),
    ...Array.from({ length: Math.ceil(size / 8) }, () => () => intercepted(part, random)),
    ...Array.from({ length: Math.ceil(size / 5) }, () => () => nobody(random)),
  ];
  for (const make of makers) yield await make();
}

type Random = () => number;

function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return ((state >>> 8) & 0xffffff) / 0x1000000;
  };
}

const among = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
const between = (random: Random, least: number, most: number): number => least + random() * (most - least);

async function spoken(
  part: Part,
  kind: 'person' | 'machine',
  random: Random,
): Promise<{ readonly name: string; readonly samples: Int16Array }> {
  const { languages, variants } = VOICES[part];
  const language = among(random, Object.keys(languages));
  const text = among(random, languages[language]?.[kind] ?? []);
  const voice = `${language}+${among(random, variants)}`;
  const speed = Math.round(between(random, 130, 210));
  const pitch = Math.round(between(random, 25, 75));
  const { stdout } = spawnSync('espeak-ng', ['-v', voice, '-s', String(speed), '-p', String(pitch), '--stdin', '--stdout'], {
    input: text,
  });
  const wav = parseWav(stdout);
  if (!wav.ok) throw new Error(`espeak-ng -v ${voice} made no WAV`);
  return { name: `${voice} ${String(speed)} “${text}”`, samples: await resample(wav.value.samples, wav.value.sampleRateHz, RATE_HZ) };
}

async function person(part: Part, random: Random): Promise<Sample> {
  const line = new Line(random);
  const first = await spoken(part, 'person', random);
  line.rest(between(random, 0.1, 1.5)).add(first.samples);
  if (random() < 0.6) line.rest(between(random, 1.2, 3)).add((await spoken(part, 'person', random)).samples);
  return { name: first.name, answerer: 'person', samples: line.heard(), beepEndMs: null };
}

async function machine(part: Part, random: Random): Promise<Sample> {
  const line = new Line(random);
  const greeting = await spoken(part, 'machine', random);
  line.rest(between(random, 0.1, 1.2)).add(greeting.samples);
  if (random() < 0.7) line.rest(between(random, 0.3, 1.2)).add(tone(between(random, 0.2, 1), [among(random, [440, 800, 1_000, 1_400])]));
  else return { name: greeting.name, answerer: 'machine', samples: line.heard(), beepEndMs: null };
  const beepEndMs = line.lengthMs;
  return { name: `${greeting.name} beep`, answerer: 'machine', samples: line.heard(), beepEndMs };
}

function fax(random: Random): Sample {
  const line = new Line(random);
  line.rest(between(random, 0.2, 1.8));
  if (random() < 0.5) line.add(tone(between(random, 2.6, 4), [2_100]));
  else for (let at = 0; at < 4; at += 1) line.add(tone(0.5, [1_100])).rest(3);
  return { name: 'fax', answerer: 'fax', samples: line.heard(), beepEndMs: null };
}

async function intercepted(part: Part, random: Random): Promise<Sample> {
  const line = new Line(random);
  line.rest(between(random, 0.1, 1));
  for (const hertz of [950, 1_400, 1_800]) line.add(tone(0.33, [hertz * between(random, 0.97, 1.03)]));
  line.rest(0.3).add((await spoken(part, 'machine', random)).samples);
  return { name: 'special information tone', answerer: 'machine', samples: line.heard(), beepEndMs: null };
}

/** Ring-back after the answer, or silence. */
function nobody(random: Random): Sample {
  const line = new Line(random);
  const ring = among(random, [null, [440, 480], [425], [400, 450]]);
  line.rest(between(random, 0.1, 1));
  if (ring !== null) for (let at = 0; at < 4; at += 1) line.add(tone(between(random, 0.9, 2), ring)).rest(between(random, 2, 4));
  return { name: ring === null ? 'silence' : `ring-back ${ring.join('+')}`, answerer: 'unknown', samples: line.heard(), beepEndMs: null };
}

function tone(seconds: number, hertz: readonly number[]): Int16Array {
  return Int16Array.from({ length: Math.round(seconds * RATE_HZ) }, (_, n) =>
    Math.round((8_000 / hertz.length) * hertz.reduce((sum, one) => sum + Math.sin((2 * Math.PI * one * n) / RATE_HZ), 0)),
  );
}

/** What comes through one line: its level, its noise, its G.711. */
class Line {
  readonly #audio = new Float64Array(LISTEN_S * RATE_HZ);
  #at = 0;

  constructor(private readonly random: Random) {}

  get lengthMs(): number {
    return (this.#at * 1_000) / RATE_HZ;
  }

  rest(seconds: number): this {
    this.#at += Math.round(seconds * RATE_HZ);
    return this;
  }

  add(samples: Int16Array): this {
    for (let n = 0; n < samples.length && this.#at + n < this.#audio.length; n += 1) this.#audio[this.#at + n] = samples[n] ?? 0;
    this.#at += samples.length;
    return this;
  }

  heard(): Int16Array {
    const { random } = this;
    const codec = among<AudioCodec>(random, ['PCMU', 'PCMA']);
    const loud = this.#audio.filter((sample) => Math.abs(sample) > 300);
    const level = Math.sqrt(loud.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, loud.length));
    // Noise alone is quiet: a line with more of it has somebody at its end.
    const wanted = 32_768 * 10 ** ((level === 0 ? -30 : between(random, -30, -14)) / 20);
    const gain = level === 0 ? 1 : wanted / level;
    const kind = among(random, ['none', 'white', 'hum', 'babble'] as const);
    const noise = wanted * 10 ** (-between(random, 15, 30) / 20);
    let low = 0;
    const linear = Int16Array.from(this.#audio, (sample, n) => {
      const white = (random() * 2 - 1) * Math.sqrt(3);
      low = 0.9 * low + 0.1 * white;
      // Voices far away: low noise that comes and goes four times a second.
      const babble = low * 4 * (0.6 + 0.4 * Math.sin((2 * Math.PI * 4 * n) / RATE_HZ));
      const hum = Math.SQRT2 * Math.sin((2 * Math.PI * 50 * n) / RATE_HZ);
      const added = kind === 'none' ? 0 : noise * (kind === 'white' ? white : kind === 'hum' ? hum : babble);
      return Math.max(-32_000, Math.min(32_000, Math.round(sample * gain + added)));
    });
    const coded = new Uint8Array(linear.length);
    encodeG711(codec, linear, coded);
    decodeG711(codec, coded, linear);
    return linear;
  }
}
