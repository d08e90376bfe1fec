import { describe, expect, it } from 'vitest';
import { AnswererDetector, type AnswererEvent } from '../../../../src/rtp/answerer/answerer-detector.js';
import { frameTone } from '../../../../src/rtp/answerer/tone.js';
import { voiceLikeNoise } from '../../../support/media/audio.js';

const RATE_HZ = 8_000;
const quiet = (ms: number): Int16Array => new Int16Array((ms * RATE_HZ) / 1_000);
const voice = (ms: number): Int16Array => voiceLikeNoise((ms * RATE_HZ) / 1_000, 5);
const tone = (ms: number, ...hertz: readonly number[]): Int16Array =>
  Int16Array.from({ length: (ms * RATE_HZ) / 1_000 }, (_, n) =>
    Math.round((8_000 / hertz.length) * hertz.reduce((sum, one) => sum + Math.sin((2 * Math.PI * one * n) / RATE_HZ), 0)),
  );

type Timed = AnswererEvent & { readonly atMs: number };

/** What the detector finds in these sounds, and silence after them. */
function found(...parts: readonly Int16Array[]): Timed[] {
  const samples = Int16Array.from([...parts, quiet(10_000)].flatMap((part) => [...part]));
  const detector = new AnswererDetector();
  const events: Timed[] = [];
  for (let at = 0; at + 160 <= samples.length; at += 160) {
    const event = detector.take(samples.subarray(at, at + 160));
    if (event !== null) events.push({ ...event, atMs: (at + 160) / 8 });
  }
  return events;
}

describe('the answerer detector', () => {
  it('reports a person who says a word and waits 0.7 s after it', () => {
    expect(found(quiet(500), voice(600))).toEqual([{ type: 'verdict', answerer: 'person', atMs: 1_800 }]);
  });

  it('reports a person who says a sentence, though its first guess, 1.5 s after the beginning, may differ', () => {
    expect(found(quiet(500), voice(2_000))).toEqual([
      { type: 'guess', answerer: 'machine', atMs: 2_000 },
      { type: 'verdict', answerer: 'person', atMs: 3_200 },
    ]);
  });

  it('reports a machine that reads a greeting, and the end of its beep', () => {
    const events = found(quiet(500), voice(1_500), quiet(400), voice(4_000), quiet(500), tone(400, 1_000));
    expect(events).toEqual([
      { type: 'guess', answerer: 'machine', atMs: 2_000 },
      { type: 'verdict', answerer: 'machine', atMs: 3_300 },
      { type: 'greeting-ended', by: 'beep', atMs: expect.any(Number) as number },
    ]);
    expect(events.at(-1)!.atMs - 7_300).toBeLessThanOrEqual(100);
  });

  it('ends the greeting of a machine without a beep after two seconds of silence', () => {
    expect(found(voice(5_000)).at(-1)).toEqual({ type: 'greeting-ended', by: 'silence', atMs: 7_000 });
  });

  it.each([
    ['[T.30] the answering tone of a fax', [tone(3_000, 2_100)], 'fax'],
    ['[T.30] the calling tone of a fax', [tone(500, 1_100), quiet(3_000), tone(500, 1_100)], 'fax'],
    ['[E.180] the special information tone', [tone(330, 950), tone(330, 1_400), tone(330, 1_800)], 'machine'],
    ['[E.180] ring-back of a call that is forwarded', [tone(2_000, 440, 480), quiet(3_000)], 'unknown'],
    ['silence', [], 'unknown'],
    ['a click', [voice(40), quiet(6_000)], 'unknown'],
  ])('recognizes %s', (_name, parts, answerer) => {
    const [verdict] = found(quiet(200), ...parts);
    expect(verdict).toMatchObject({ type: 'verdict', answerer });
    expect(verdict!.atMs).toBeLessThanOrEqual(5_000);
  });

  it('decides after five seconds, even when somebody begins late', () => {
    expect(found(quiet(4_500), voice(3_000))[0]).toEqual({ type: 'verdict', answerer: 'person', atMs: 5_000 });
    expect(found(quiet(3_000), voice(5_000)).find(({ type }) => type === 'verdict')).toMatchObject({ answerer: 'machine', atMs: 5_000 });
  });

  it('does not take line noise for speech', () => {
    const noise = voice(8_000).map((sample) => Math.round(sample / 40));
    const word = voice(600);
    const said = noise.map((sample, n) => sample + (n < 4_000 ? 0 : (word[n - 4_000] ?? 0)));
    expect(found(said)[0]).toEqual({ type: 'verdict', answerer: 'person', atMs: 1_800 });
  });
});

describe('the tone detector', () => {
  it.each([425, 950, 1_100, 2_100, 2_600])('measures a tone of %i Hz within 2 %', (hertz) => {
    expect(Math.abs((frameTone(tone(20, hertz)) ?? 0) - hertz)).toBeLessThan(0.02 * hertz);
  });

  it('finds no tone in noise, silence, or two tones far apart', () => {
    expect(frameTone(voice(20))).toBeNull();
    expect(frameTone(quiet(20))).toBeNull();
    expect(frameTone(tone(20, 700, 1_900))).toBeNull();
  });
});
