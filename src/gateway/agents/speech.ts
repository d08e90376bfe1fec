import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { FairTurns } from '../../lib/fair-turns.js';
import { systemClock } from '../../lib/system-clock.js';
import { yieldToCalls } from '../../lib/thread-priority.js';
import type { PronunciationEntry } from '../model/agent-record.js';
import { resample } from './resample.js';
import { parseWav } from './wav.js';
import { isSupportedVoice, voiceOf } from '../model/espeak-voices.js';
import type { SpokenText } from './languages.js';

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
  /**
   * Rejects with `SpeechError`. The samples are shared: they are not to be changed.
   * @param accountSid accounts take turns; left out: there is one only
   */
  synthesize(spoken: SpokenText, guide: readonly PronunciationEntry[], accountSid?: string): Promise<Int16Array>;
}

export interface EspeakOptions {
  readonly command: string;
  /** Longest run of the program for one text. */
  readonly timeoutMs: number;
  readonly maxTextCharacters: number;
  readonly maxConcurrent: number;
  readonly maxConcurrentOfAccount: number;
  /** Running and waiting. */
  readonly maxTextsOfAccount: number;
  readonly cacheEntries: number;
  readonly cacheBytes: number;
}

const DEFAULTS: EspeakOptions = {
  command: 'espeak-ng',
  timeoutMs: 5_000,
  maxTextCharacters: 2_000,
  maxConcurrent: 4,
  maxConcurrentOfAccount: 2,
  maxTextsOfAccount: 1_000,
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

/** Speech by Debian's espeak-ng: one run of it a text that is not in the cache. */
export class EspeakSpeech implements Speech {
  readonly #options: EspeakOptions;
  readonly #turns: FairTurns;
  /** Those that run nothing. */
  readonly #shells: Shell[];
  /** By voice and text. A failure is not kept: the next call tries again. */
  readonly #cache: LRUCache<string, Int16Array>;
  /** By account, too: none waits for a text in the queue of another one. */
  readonly #coming = new Map<string, Promise<Int16Array>>();

  constructor(options: Partial<EspeakOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    const { maxConcurrent, maxConcurrentOfAccount, maxTextsOfAccount, cacheEntries, cacheBytes } = this.#options;
    this.#turns = new FairTurns(
      { atOnce: maxConcurrent, atOnceOfOne: maxConcurrentOfAccount, maxSize: maxTextsOfAccount, rest: 0 },
      systemClock,
    );
    this.#shells = Array.from({ length: maxConcurrent }, () => new Shell(this.#options));
    this.#cache = new LRUCache({ max: cacheEntries, maxSize: cacheBytes, sizeCalculation: ({ byteLength }) => Math.max(1, byteLength) });
  }

  async synthesize(spoken: SpokenText, guide: readonly PronunciationEntry[], accountSid = ''): Promise<Int16Array> {
    const text = plainText(applyPronunciation(spoken.text, guide));
    if (text.length > this.#options.maxTextCharacters) throw new SpeechError('text-too-long');
    if (text === '') return new Int16Array(0);
    const voice = spoken.voice !== undefined && isSupportedVoice(spoken.voice) ? spoken.voice : voiceOf(spoken.language);
    const key = `${voice}\n${text}`;
    return this.#cache.get(key) ?? this.#once(accountSid, key, { voice, text });
  }

  #once(accountSid: string, key: string, voiced: VoicedText): Promise<Int16Array> {
    const owned = `${accountSid}\n${key}`;
    const coming = this.#coming.get(owned);
    if (coming !== undefined) return coming;
    const samples = this.#turns.run(accountSid, 1, async () => this.#cache.get(key) ?? (await this.#run(key, voiced)));
    if (samples === null) return Promise.reject(new SpeechError('overloaded'));
    const once = samples.finally(() => this.#coming.delete(owned));
    this.#coming.set(owned, once);
    return once;
  }

  async #run(key: string, voiced: VoicedText): Promise<Int16Array> {
    const wav = parseWav(await this.#runInShell(voiced));
    if (!wav.ok) throw new SpeechError('engine-failed');
    const samples = await resample(wav.value.samples, wav.value.sampleRateHz, SPEECH_RATE_HZ);
    this.#cache.set(key, samples);
    return samples;
  }

  async #runInShell(voiced: VoicedText): Promise<Buffer> {
    const shell = this.#shells.pop() ?? new Shell(this.#options);
    const { output, exitCode } = await shell.run(voiced);
    this.#shells.push(shell);
    if (exitCode === 0) return output;
    throw new SpeechError(exitCode === EXIT_MISSING ? 'engine-missing' : exitCode === EXIT_KILLED ? 'timed-out' : 'engine-failed');
  }
}

/** Without control characters, and with white space as single spaces. */
function plainText(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

/** Of `timeout`: there is no such program; it ran for too long. */
const EXIT_MISSING = 127;
const EXIT_KILLED = 137;

/**
 * `sh -c LOOP sh PROGRAM SECONDS`: for each line `BYTES VOICE TEXT` a line of base64, which is what the program writes, that many bytes at
 * most, and after it a space and its exit code. The text goes through standard input, so that it can never be an option.
 */
const LOOP = `while read -r bytes voice text; do
  {
    printf %s "$text" | timeout -s KILL "$2" "$1" -v "$voice" -b 1 --stdin --stdout
    printf ' %d' $?
  } | head -c "$bytes" | base64 -w 0
  echo
done`;

const LINE_FEED = 0x0a;

/** What a pipe to a child is, though its type does not tell. */
type Pipe = Pick<Socket, 'ref' | 'unref'>;

/**
 * Runs the program for one text after the other. A thread that starts a process stands still until it has: its memory is marked page by
 * page, tens of milliseconds on some machines, and its calls are silent meanwhile. A shell is small.
 */
class Shell {
  readonly #child: ChildProcess;

  constructor({ command, timeoutMs }: EspeakOptions) {
    const child: ChildProcess = spawn('/bin/sh', ['-c', LOOP, 'sh', command, String(timeoutMs / 1_000)], {
      stdio: ['pipe', 'pipe', 'ignore'],
      cwd: '/',
      // No secrets.
      env: { PATH: process.env['PATH'] },
    });
    this.#child = child;
    if (child.pid !== undefined) yieldToCalls(child.pid);
    // Without a free file handle it is not started, and has no pipes.
    child.on('error', () => undefined);
    child.stdin?.on('error', () => undefined);
    // It ends with this process, which does not live on for it.
    child.unref();
    for (const pipe of [child.stdin, child.stdout]) (pipe as unknown as Pipe | undefined)?.unref();
  }

  /** One at a time. Rejects with `SpeechError` when the shell is gone. `exitCode` is null when the program wrote too much. */
  run({ voice, text }: VoicedText): Promise<{ readonly output: Buffer; readonly exitCode: number | null }> {
    const { stdin, stdout } = this.#child;
    const chunks: Buffer[] = [];
    return new Promise((resolve, reject) => {
      if (stdin == null || stdout == null || stdout.destroyed) return reject(new SpeechError('engine-failed'));
      const onData = (chunk: Buffer): void => {
        chunks.push(chunk);
        if (chunk.at(-1) === LINE_FEED) end();
      };
      const end = (): void => {
        stdout.off('data', onData).off('close', end);
        (stdout as unknown as Pipe).unref();
        const line = Buffer.concat(chunks);
        if (line.at(-1) !== LINE_FEED) return reject(new SpeechError('engine-failed'));
        const output = Buffer.from(line.toString('latin1'), 'base64');
        const code = / (\d+)$/.exec(output.subarray(-4).toString('latin1'))?.[1];
        resolve({ output: output.subarray(0, -1 - (code ?? '').length), exitCode: code === undefined ? null : Number(code) });
      };
      (stdout as unknown as Pipe).ref();
      stdout.on('data', onData).on('close', end);
      stdin.write(`${Math.max(MIN_OUTPUT_LIMIT_BYTES, text.length * MAX_OUTPUT_BYTES_PER_CHARACTER)} ${voice} ${text}\n`);
    });
  }
}

/** As it may come from outside: `case_sensitive` is false and `spaced` is true unless said otherwise. */
export type PronunciationRule = Pick<PronunciationEntry, 'word' | 'pronunciation'> &
  Partial<Pick<PronunciationEntry, 'case_sensitive' | 'spaced'>>;

const MAX_RULES = 500;
/** A letter, mark or digit of any script. */
const OF_A_WORD = /[\p{L}\p{M}\p{N}]/u;

/**
 * The text with every word of the guide replaced by its pronunciation. `spaced`: only where the word stands alone, with no letter or
 * digit of any script beside it. The longest word wins where several fit; a replacement is not looked at again.
 */
export function applyPronunciation(text: string, guide: readonly PronunciationRule[]): string {
  const rules = guide.filter((rule) => rule.word !== '').slice(0, MAX_RULES);
  if (rules.length === 0) return text;
  // Looked up by length and word: 500 patterns at each character of a long text would hold a media thread for half a second.
  const byWord = new Map<string, PronunciationRule[]>();
  for (const rule of rules) {
    const word = folded(rule.word);
    byWord.set(word, [...(byWord.get(word) ?? []), rule]);
  }
  const lengths = [...new Set(rules.map(({ word }) => word.length))].sort((a, b) => b - a);
  const foldedText = folded(text);
  const ruleAt = (index: number): PronunciationRule | undefined => {
    for (const length of lengths) {
      const found = byWord.get(foldedText.slice(index, index + length))?.find((rule) => fits(rule, text, index));
      if (found !== undefined) return found;
    }
    return undefined;
  };
  let result = '';
  for (let index = 0; index < text.length;) {
    const rule = ruleAt(index);
    result += rule === undefined ? (text[index] ?? '') : rule.pronunciation;
    index += rule === undefined ? 1 : rule.word.length;
  }
  return result;
}

/** Without case, and as long as before: `İ` stays. The sigma at the end of a word is one like the others. */
function folded(text: string): string {
  const lower = text.toLowerCase();
  const kept =
    lower.length === text.length
      ? lower
      : Array.from(text, (character) => {
          const one = character.toLowerCase();
          return one.length === character.length ? one : character;
        }).join('');
  return kept.replaceAll('ς', 'σ');
}

function fits({ word, case_sensitive: isExact, spaced = true }: PronunciationRule, text: string, index: number): boolean {
  if (isExact === true && !text.startsWith(word, index)) return false;
  return !spaced || !(OF_A_WORD.test(characterBefore(text, index)) || OF_A_WORD.test(characterAt(text, index + word.length)));
}

const characterAt = (text: string, index: number): string => {
  const code = text.codePointAt(index);
  return code === undefined ? '' : String.fromCodePoint(code);
};

/** A character of two code units, too. */
const characterBefore = (text: string, index: number): string => {
  const two = index >= 2 ? characterAt(text, index - 2) : '';
  return two.length === 2 ? two : text.charAt(index - 1);
};
