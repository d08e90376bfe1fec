import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  digitPhrase,
  figuresIntroduction,
  figuresPhrase,
  goodbyePhrase,
  textOf,
  type CallFigures,
} from '../../../../src/gateway/agents/languages.js';
import { isSupportedVoice, supportedLanguages, supportedVoices, voiceOf } from '../../../../src/gateway/model/espeak-voices.js';
import { EspeakSpeech, SpeechError } from '../../../../src/gateway/agents/speech.js';
import { findPhrase } from '../../../../src/loadtest/test-caller/correlation.js';
import { voicedSegments } from '../../../../src/loadtest/test-caller/energy.js';
import { levelDbfs } from '../../../../src/rtp/codec/level.js';

const directory = mkdtempSync(join(tmpdir(), 'speech-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** A program that stands in for espeak-ng where it is to misbehave. */
function program(name: string, script: string): string {
  const path = join(directory, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => 'no error',
    (reason: unknown) => reason,
  );
  return error instanceof SpeechError ? error.code : String(error);
}

const english = (text: string) => ({ text, language: 'ENG' });

describe('espeak-ng', () => {
  it('synthesizes about a second of audible 8 kHz samples, the same each time, and others for another text', async () => {
    const one = await new EspeakSpeech().synthesize(english('You pressed one.'), []);
    expect(one.length).toBeGreaterThan(6_000);
    expect(one.length).toBeLessThan(16_000);
    expect(levelDbfs(one)).toBeGreaterThan(-35);
    const speech = new EspeakSpeech();
    expect(await speech.synthesize(english('You pressed one.'), [])).toEqual(one);
    const two = await speech.synthesize(english('You pressed two.'), []);
    expect(findPhrase(two, one.subarray(0, Math.min(one.length, two.length)))!.score).toBeLessThan(0.9);
  });

  it('speaks a text that looks like an option or a command', async () => {
    const file = join(directory, 'written');
    const samples = await new EspeakSpeech().synthesize(english(`-w ${file} ; touch ${file}`), []);
    expect(levelDbfs(samples)).toBeGreaterThan(-40);
    expect(() => readFileSync(file)).toThrow();
  });

  it('follows the pronunciation guide, and has a voice for each language', async () => {
    const speech = new EspeakSpeech();
    const guide = [{ word: 'Trunkline', pronunciation: 'elephant', case_sensitive: false, spaced: true }];
    const guided = await speech.synthesize(english('The trunkline.'), guide);
    expect(guided).toEqual(await speech.synthesize(english('The elephant.'), []));
    for (const language of supportedLanguages()) {
      // espeak-ng's Hebrew has words but no numbers.
      const text = language === 'HEB' ? 'שלום' : '123';
      expect(levelDbfs(await speech.synthesize({ text, language }, [])), language).toBeGreaterThan(-45);
    }
  });

  it('runs the program once for a text that is requested many times at once, and again after it was evicted', async () => {
    const count = join(directory, 'count');
    writeFileSync(count, '');
    const command = program('counted', `echo x >> ${count}; exec espeak-ng "$@"`);
    const runs = (): number => readFileSync(count, 'utf8').length / 2;
    const speech = new EspeakSpeech({ command, cacheEntries: 2, maxConcurrent: 1 });
    await Promise.all(Array.from({ length: 20 }, () => speech.synthesize(english('One.'), [])));
    expect(runs()).toBe(1);
    await Promise.all(['Two.', 'Three.'].map((text) => speech.synthesize(english(text), [])));
    await speech.synthesize(english('Three.'), []);
    expect(runs()).toBe(3);
    await speech.synthesize(english('One.'), []);
    expect(runs()).toBe(4);
  });

  it('has every offered voice, a woman’s unlike the man’s, and the language’s own for an unknown name', async () => {
    const speech = new EspeakSpeech();
    const say = async (voice?: string): Promise<Buffer> => {
      // espeak-ng's Hebrew has words but no numbers.
      const text = voice?.startsWith('he') === true ? 'שלום' : '1 2 3.';
      const samples = await speech.synthesize({ text, language: 'ENG', ...(voice === undefined ? {} : { voice }) }, []);
      expect(levelDbfs(samples), voice).toBeGreaterThan(-45);
      return Buffer.from(samples.buffer);
    };
    for (const voice of supportedVoices()) {
      const [name = '', variant] = voice.split('+');
      if (variant !== undefined) expect((await say(voice)).equals(await say(name)), voice).toBe(false);
      else await say(voice);
    }
    expect((await say('no such voice')).equals(await say())).toBe(true);
    expect((await say('-w /tmp/x')).equals(await say('en-us'))).toBe(true);
    expect([...supportedVoices().map(isSupportedVoice), isSupportedVoice('en-us+f1'), isSupportedVoice('')]).toEqual([
      ...supportedVoices().map(() => true),
      false,
      false,
    ]);
  });

  it('reports a program that is missing, fails, writes no WAV, is too slow, or gets a text too long or too many', async () => {
    const say = (options: ConstructorParameters<typeof EspeakSpeech>[0], text = 'Hello.') =>
      codeOf(new EspeakSpeech(options).synthesize(english(text), []));
    expect(await say({ command: join(directory, 'absent') })).toBe('engine-missing');
    expect(await say({ command: program('fails', 'exit 3') })).toBe('engine-failed');
    expect(await say({ command: program('babbles', 'echo hello') })).toBe('engine-failed');
    expect(await say({ command: program('floods', 'exec cat /dev/zero') })).toBe('engine-failed');
    expect(await say({ command: program('hangs', 'exec sleep 30'), timeoutMs: 100 })).toBe('timed-out');
    expect(await say({ maxTextCharacters: 5 }, 'Hello.')).toBe('text-too-long');
    const busy = new EspeakSpeech({ maxTextsOfAccount: 1 });
    const codes = await Promise.all(['A.', 'B.'].map((text) => codeOf(busy.synthesize(english(text), []))));
    expect(codes).toEqual(['no error', 'overloaded']);
  });

  it('speaks a text of another account before those that one account has queued, also when they share it', async () => {
    const speech = new EspeakSpeech({ maxConcurrent: 1, maxConcurrentOfAccount: 1 });
    const ended: string[] = [];
    const say = async (account: string, text: string): Promise<void> => {
      await speech.synthesize(english(text), [], account);
      ended.push(account);
    };
    const flood = ['One.', 'Two.', 'Three.', 'Good day.'].map((text) => say('many', text));
    await Promise.all([...flood, say('one', 'Good day.')]);
    expect(ended).toEqual(['many', 'one', 'many', 'many', 'many']);
  });

  it('caches no failure', async () => {
    const flag = join(directory, 'flag');
    const command = program('heals', `[ -e ${flag} ] || exit 1; exec espeak-ng "$@"`);
    const speech = new EspeakSpeech({ command });
    expect(await codeOf(speech.synthesize(english('Hi.'), []))).toBe('engine-failed');
    writeFileSync(flag, '');
    expect(await codeOf(speech.synthesize(english('Hi.'), []))).toBe('no error');
  });

  it('starts no process of its own for a text, and continues when its shell is killed', async () => {
    const parent = join(directory, 'parent');
    // This program, `timeout`, the braces, the shell.
    const command = program('tells', `awk '{print $4}' /proc/$(awk '{print $4}' /proc/$PPID/stat)/stat > ${parent}; exec espeak-ng "$@"`);
    const speech = new EspeakSpeech({ command, maxConcurrent: 1 });
    const shellOf = async (text: string): Promise<number> => {
      await speech.synthesize(english(text), []);
      return Number(readFileSync(parent, 'utf8'));
    };
    const shell = await shellOf('One.');
    expect(readFileSync(`/proc/${String(shell)}/cmdline`, 'utf8')).toMatch(/^\/bin\/sh\0-c\0/);
    expect(await shellOf('Two.')).toBe(shell);
    process.kill(shell, 'SIGKILL');
    expect(await codeOf(speech.synthesize(english('Three.'), []))).toBe('engine-failed');
    expect(await shellOf('Three.')).not.toBe(shell);
  });

  it('returns no audio for an empty text and starts no program', async () => {
    const samples = await new EspeakSpeech({ command: join(directory, 'absent') }).synthesize(english(' \n\t '), []);
    expect(samples).toHaveLength(0);
  });
});

describe('phrases of the test line', () => {
  it('have a translation or an English voice', () => {
    expect(digitPhrase(1, 'ENG')).toEqual({ text: 'You pressed one.', language: 'ENG' });
    expect(digitPhrase(10, 'eng').text).toBe('You pressed star.');
    expect(digitPhrase(12, 'ENG').text).toBe('You pressed the letter A.');
    expect(digitPhrase(1, 'DEU')).toEqual({ text: 'Sie haben eins gedrückt.', language: 'DEU' });
    expect(digitPhrase(1, 'JPN')).toEqual({ text: 'You pressed one.', language: 'ENG' });
    expect(goodbyePhrase('constructor')).toEqual({ text: 'Goodbye.', language: 'ENG' });
  });

  it('include one for each of sixteen DTMF digits in each translated language', () => {
    for (const language of ['ENG', 'DEU', 'FRA', 'SPA', 'ITA']) {
      expect(new Set(Array.from({ length: 16 }, (_, event) => digitPhrase(event, language).text)).size).toBe(16);
    }
  });

  const FIGURES: CallFigures = {
    lossPercent: 12.34,
    jitterMs: 17.7,
    mos: 3.96,
    codec: 'PCMA',
    cipher: 'AES_CM_128_HMAC_SHA1_80',
    echoMs: 70.2,
  };

  it('give the figures of a call in tenths and whole milliseconds, in words of the language', () => {
    expect(figuresPhrase(FIGURES, 'ENG').text).toBe(
      'Here are the figures of this call. Packets lost: 12.3 percent, jitter: 18 milliseconds, voice quality: 4 out of 5, codec: P C M A, cipher: AES 128, the echo takes 70 milliseconds.',
    );
    expect(figuresPhrase({ ...FIGURES, lossPercent: 0, jitterMs: 0.6, cipher: null }, 'DEU').text).toBe(
      'Hier sind die Messwerte dieses Gesprächs. Verlorene Pakete: 0 Prozent, Jitter: 1 Millisekunde, Sprachqualität: 4 von 5, Codec: P C M A, Verschlüsselung: keine, das Echo braucht 70 Millisekunden.',
    );
    expect(figuresPhrase({ ...FIGURES, mos: 4.41, cipher: 'AEAD_X' }, 'FRA').text).toContain(
      '4,4 sur 5, codec : P C M A, chiffrement : AEAD X',
    );
    expect(figuresPhrase(FIGURES, 'JPN')).toEqual(figuresPhrase(FIGURES, 'ENG'));
    expect(textOf({ kind: 'figures' }, '', 'ITA').text).toBe('Ha premuto asterisco.');
  });

  it.each(['ENG', 'DEU', 'FRA', 'SPA', 'ITA'])(
    'in %s fill every blank of the figures, begin alike, and pause for less than 0.45 s',
    async (language) => {
      const phrase = figuresPhrase(FIGURES, language);
      expect(phrase.text).not.toMatch(/[{}]|undefined/);
      const speech = new EspeakSpeech();
      const samples = await speech.synthesize(phrase, []);
      const introduction = await speech.synthesize(figuresIntroduction(language), []);
      // The test carrier knows them by their beginning, and takes half a second of silence for their end.
      expect(findPhrase(samples, introduction)).toMatchObject({ offsetSamples: 0 });
      expect(findPhrase(samples, introduction)!.score).toBeGreaterThan(0.95);
      const voiced = voicedSegments(samples, { thresholdDbfs: -50, hangoverSamples: 0 });
      const pauses = voiced.slice(1).map(({ start }, i) => start - voiced[i]!.end);
      expect(Math.max(...pauses)).toBeLessThan(0.45 * 8_000);
    },
  );

  it('speak an own first sentence in its language, even without translated phrases', () => {
    expect(textOf({ kind: 'greeting' }, 'こんにちは', 'JPN')).toEqual({ text: 'こんにちは', language: 'JPN' });
    expect(textOf({ kind: 'greeting' }, ' ', 'JPN').language).toBe('ENG');
  });

  it('have a voice for either code of a language in any case, and English for an unknown code', () => {
    expect(['deu', 'GER', 'ENG', 'XXX', '__proto__', 'constructor'].map(voiceOf)).toEqual(['de', 'de', 'en-us', 'en-us', 'en-us', 'en-us']);
  });
});
