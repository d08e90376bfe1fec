import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { supportedLanguages, voiceOf } from '../../../src/agents/languages.js';
import { digitPhrase, goodbyePhrase, textOf } from '../../../src/agents/phrases.js';
import { EspeakSpeech, SpeechError } from '../../../src/agents/speech.js';
import { findPhrase } from '../../../src/media/codec/correlation.js';
import { levelDbfs } from '../../../src/media/codec/energy.js';

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
  it('speaks about a second of audible 8 kHz samples, the same each time, another text unlike it', async () => {
    const one = await new EspeakSpeech().synthesize(english('You pressed one.'), []);
    expect(one.length).toBeGreaterThan(6_000);
    expect(one.length).toBeLessThan(16_000);
    expect(levelDbfs(one)).toBeGreaterThan(-35);
    const speech = new EspeakSpeech();
    expect(await speech.synthesize(english('You pressed one.'), [])).toEqual(one);
    const two = await speech.synthesize(english('You pressed two.'), []);
    expect(findPhrase(two, one.subarray(0, Math.min(one.length, two.length)))!.score).toBeLessThan(0.9);
  });

  it('a text that looks like an option or a command is spoken, not obeyed', async () => {
    const file = join(directory, 'written');
    const samples = await new EspeakSpeech().synthesize(english(`-w ${file} ; touch ${file}`), []);
    expect(levelDbfs(samples)).toBeGreaterThan(-40);
    expect(() => readFileSync(file)).toThrow();
  });

  it('the pronunciation guide is heard, and every language has a voice that speaks', async () => {
    const speech = new EspeakSpeech();
    const guide = [{ word: 'Trunkline', pronunciation: 'elephant', case_sensitive: false, spaced: true }];
    const guided = await speech.synthesize(english('The trunkline.'), guide);
    expect(guided).toEqual(await speech.synthesize(english('The elephant.'), []));
    for (const language of supportedLanguages()) {
      // espeak-ng's Hebrew has words but no numbers.
      const text = language === 'HEB' ? 'שלום' : '123';
      expect(levelDbfs(await speech.synthesize({ text, language }, [])), language).toBeGreaterThan(-45);
    }
  }, 20_000);

  it('runs the program once for a text that is asked for many times at once, and again when it was evicted', async () => {
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

  it('says what went wrong: missing, failed, no WAV, too slow, too long, too many', async () => {
    const say = (options: ConstructorParameters<typeof EspeakSpeech>[0], text = 'Hello.') =>
      codeOf(new EspeakSpeech(options).synthesize(english(text), []));
    expect(await say({ command: join(directory, 'absent') })).toBe('engine-missing');
    expect(await say({ command: program('fails', 'exit 3') })).toBe('engine-failed');
    expect(await say({ command: program('babbles', 'echo hello') })).toBe('engine-failed');
    expect(await say({ command: program('floods', 'exec cat /dev/zero') })).toBe('engine-failed');
    expect(await say({ command: program('hangs', 'exec sleep 30'), timeoutMs: 100 })).toBe('timed-out');
    expect(await say({ maxTextCharacters: 5 }, 'Hello.')).toBe('text-too-long');
    const busy = new EspeakSpeech({ maxConcurrent: 1, maxWaiting: 0 });
    const codes = await Promise.all(['A.', 'B.'].map((text) => codeOf(busy.synthesize(english(text), []))));
    expect(codes).toEqual(['no error', 'overloaded']);
  });

  it('does not remember a failure', async () => {
    const flag = join(directory, 'flag');
    const command = program('heals', `[ -e ${flag} ] || exit 1; exec espeak-ng "$@"`);
    const speech = new EspeakSpeech({ command });
    expect(await codeOf(speech.synthesize(english('Hi.'), []))).toBe('engine-failed');
    writeFileSync(flag, '');
    expect(await codeOf(speech.synthesize(english('Hi.'), []))).toBe('no error');
  });

  it('an empty text is no audio and starts no program', async () => {
    const samples = await new EspeakSpeech({ command: join(directory, 'absent') }).synthesize(english(' \n\t '), []);
    expect(samples).toHaveLength(0);
  });
});

describe('phrases', () => {
  it('are translated where there is a translation, and English with an English voice where there is none', () => {
    expect(digitPhrase(1, 'ENG')).toEqual({ text: 'You pressed one.', language: 'ENG' });
    expect(digitPhrase(10, 'eng').text).toBe('You pressed star.');
    expect(digitPhrase(12, 'ENG').text).toBe('You pressed the letter A.');
    expect(digitPhrase(1, 'DEU')).toEqual({ text: 'Sie haben eins gedrückt.', language: 'DEU' });
    expect(digitPhrase(1, 'JPN')).toEqual({ text: 'You pressed one.', language: 'ENG' });
    expect(goodbyePhrase('constructor')).toEqual({ text: 'Goodbye.', language: 'ENG' });
  });

  it('the sixteen keys have sixteen phrases in each translated language', () => {
    for (const language of ['ENG', 'DEU', 'FRA', 'SPA', 'ITA']) {
      expect(new Set(Array.from({ length: 16 }, (_, event) => digitPhrase(event, language).text)).size).toBe(16);
    }
  });

  it('an own first sentence is said in its own language, even without translated phrases', () => {
    expect(textOf({ kind: 'greeting' }, 'こんにちは', 'JPN')).toEqual({ text: 'こんにちは', language: 'JPN' });
    expect(textOf({ kind: 'greeting' }, ' ', 'JPN').language).toBe('ENG');
  });

  it('voices: any case, both codes of a language, English for what is unknown', () => {
    expect(['deu', 'GER', 'ENG', 'XXX', '__proto__', 'constructor'].map(voiceOf)).toEqual(['de', 'de', 'en-us', 'en-us', 'en-us', 'en-us']);
  });
});
