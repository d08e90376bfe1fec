import { spawn } from 'node:child_process';
import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import type { PronunciationEntry } from '../model/agent-record.js';
import { resample } from './resample.js';
import { parseWav } from './wav.js';
import { isSupportedVoice, voiceOf, type SpokenText } from './languages.js';

export const SPEECH_RATE_HZ = 8_000;

export type SpeechErrorCode =
  /** The program is not installed. */
  'engine-missing' | 'engine-failed' | 'timed-out' | 'text-too-long' | 'overloaded';

export class SpeechError extends Error {
  override readonly name = 'SpeechError';
  constructor(readonly code: SpeechErrorCode) {
    super(`speech: ${code}`);
  }
}

/** Text to 16-bit linear samples at 8 kHz. */
export interface Speech {
  /** Rejects with `SpeechError`. The samples are shared: they are not to be changed. */
  synthesize(spoken: SpokenText, guide: readonly PronunciationEntry[]): Promise<Int16Array>;
}

export interface EspeakOptions {
  readonly command: string;
  /** Longest run of the program for one text. */
  readonly timeoutMs: number;
  readonly maxTextCharacters: number;
  readonly maxConcurrent: number;
  readonly maxWaiting: number;
  readonly cacheEntries: number;
  readonly cacheBytes: number;
}

const DEFAULTS: EspeakOptions = {
  command: 'espeak-ng',
  timeoutMs: 5_000,
  maxTextCharacters: 2_000,
  maxConcurrent: 2,
  maxWaiting: 1_000,
  cacheEntries: 512,
  cacheBytes: 32 * 1_024 * 1_024,
};

/** A minute of speech a thousand characters, twice over, at 22,050 Hz. */
const MAX_OUTPUT_BYTES_PER_CHARACTER = 6_000;
const MIN_OUTPUT_LIMIT_BYTES = 1_000_000;

interface VoicedText {
  readonly voice: string;
  readonly text: string;
}

/** Speech by Debian's espeak-ng: one short-lived child process a text that is not in the cache. */
export class EspeakSpeech implements Speech {
  readonly #options: EspeakOptions;
  readonly #limit: LimitFunction;
  /** A text that is being synthesized is there already, so it is done once. A failure is not kept: the next call tries again. */
  readonly #cache: LRUCache<string, Int16Array, VoicedText>;

  constructor(options: Partial<EspeakOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    this.#limit = pLimit(this.#options.maxConcurrent);
    this.#cache = new LRUCache({
      max: this.#options.cacheEntries,
      maxSize: this.#options.cacheBytes,
      sizeCalculation: ({ byteLength }) => Math.max(1, byteLength),
      // Calls that wait for a text get it even when the cache has no space for it any more.
      ignoreFetchAbort: true,
      fetchMethod: (_key, _stale, { context }) => this.#run(context),
    });
  }

  async synthesize(spoken: SpokenText, guide: readonly PronunciationEntry[]): Promise<Int16Array> {
    const text = plainText(applyPronunciation(spoken.text, guide));
    if (text.length > this.#options.maxTextCharacters) throw new SpeechError('text-too-long');
    if (text === '') return new Int16Array(0);
    const voice = spoken.voice !== undefined && isSupportedVoice(spoken.voice) ? spoken.voice : voiceOf(spoken.language);
    return this.#cache.forceFetch(`${voice}\n${text}`, { context: { voice, text } });
  }

  async #run({ voice, text }: VoicedText): Promise<Int16Array> {
    const { maxConcurrent, maxWaiting } = this.#options;
    if (this.#limit.activeCount >= maxConcurrent && this.#limit.pendingCount >= maxWaiting) throw new SpeechError('overloaded');
    const wav = parseWav(await this.#limit(() => runEspeak(this.#options, voice, text)));
    if (!wav.ok) throw new SpeechError('engine-failed');
    return resample(wav.value.samples, wav.value.sampleRateHz, SPEECH_RATE_HZ);
  }
}

/** Without control characters, and with white space as single spaces. */
function plainText(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

/** The WAV that espeak-ng writes. The text goes through standard input, so that it can never be an option. */
function runEspeak(options: EspeakOptions, voice: string, text: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(options.command, ['-v', voice, '-b', '1', '--stdin', '--stdout'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL',
    });
    const limitBytes = Math.max(MIN_OUTPUT_LIMIT_BYTES, text.length * MAX_OUTPUT_BYTES_PER_CHARACTER);
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length;
      if (sizeBytes > limitBytes) child.kill('SIGKILL');
      else chunks.push(chunk);
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      reject(new SpeechError(error.code === 'ENOENT' ? 'engine-missing' : 'engine-failed'));
    });
    child.once('close', (code, signal) => {
      if (code === 0 && sizeBytes <= limitBytes) resolve(Buffer.concat(chunks));
      else reject(new SpeechError(signal === 'SIGKILL' && sizeBytes <= limitBytes ? 'timed-out' : 'engine-failed'));
    });
    // A program that ends early closes the pipe; its exit code tells why.
    child.stdin.on('error', () => undefined);
    child.stdin.end(text);
  });
}

/** As it may come from outside: `case_sensitive` is false and `spaced` is true unless said otherwise. */
export type PronunciationRule = Pick<PronunciationEntry, 'word' | 'pronunciation'> &
  Partial<Pick<PronunciationEntry, 'case_sensitive' | 'spaced'>>;

const MAX_RULES = 500;
const REGEXP_SYNTAX = /[\\^$.*+?()[\]{}|/]/g;

/**
 * The text with every word of the guide replaced by its pronunciation. `spaced`: only where the word stands alone, with no letter or
 * digit of any script beside it. The longest word wins where several fit; a replacement is not looked at again.
 */
export function applyPronunciation(text: string, guide: readonly PronunciationRule[]): string {
  const rules = guide
    .filter((rule) => rule.word !== '')
    .slice(0, MAX_RULES)
    .sort((a, b) => b.word.length - a.word.length)
    .map((rule) => ({ pattern: patternOf(rule), pronunciation: rule.pronunciation }));
  if (rules.length === 0) return text;
  let result = '';
  for (let index = 0; index < text.length;) {
    const match = matchAt(text, index, rules);
    result += match === undefined ? (text[index] ?? '') : match.pronunciation;
    index += match === undefined ? 1 : match.length;
  }
  return result;
}

function matchAt(
  text: string,
  index: number,
  rules: readonly { readonly pattern: RegExp; readonly pronunciation: string }[],
): { readonly pronunciation: string; readonly length: number } | undefined {
  for (const { pattern, pronunciation } of rules) {
    pattern.lastIndex = index;
    const found = pattern.exec(text);
    if (found !== null) return { pronunciation, length: found[0].length };
  }
  return undefined;
}

function patternOf(rule: PronunciationRule): RegExp {
  const word = rule.word.replace(REGEXP_SYNTAX, '\\$&');
  const source = rule.spaced === false ? word : `(?<![\\p{L}\\p{M}\\p{N}])${word}(?![\\p{L}\\p{M}\\p{N}])`;
  return new RegExp(source, rule.case_sensitive === true ? 'uy' : 'iuy');
}
