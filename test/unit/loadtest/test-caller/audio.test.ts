import { describe, expect, it } from 'vitest';
import { crossCorrelation, findPhrase, findPhrases, PhraseSearch } from '../../../../src/loadtest/test-caller/correlation.js';
import { voicedSegments } from '../../../../src/loadtest/test-caller/energy.js';
import { levelDbfs } from '../../../../src/rtp/codec/level.js';
import { throughG711 } from '../../../../src/rtp/codec/g711.js';
import { resample } from '../../../../src/gateway/agents/resample.js';
import { parseWav } from '../../../../src/gateway/agents/wav.js';
import { turn } from '../../../support/turn.js';

function tone(frequencyHz: number, rateHz: number, samples: number, amplitude = 10_000): Int16Array {
  return Int16Array.from({ length: samples }, (_, i) => Math.round(amplitude * Math.sin((2 * Math.PI * frequencyHz * i) / rateHz)));
}

/** A repeatable noise, not white: each seed another "phrase". */
function noise(samples: number, seed: number): Int16Array {
  let state = seed;
  let last = 0;
  return Int16Array.from({ length: samples }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    last = 0.7 * last + 0.3 * (state / 2 ** 31) * 20_000;
    return last;
  });
}

describe('resample', () => {
  it.each([300, 1_000, 2_000, 3_000])('keeps a tone of %i Hz at its level and frequency from 22,050 to 8,000 Hz', async (frequencyHz) => {
    const output = (await resample(tone(frequencyHz, 22_050, 22_050), 22_050, 8_000)).subarray(400, 7_600);
    const expected = tone(frequencyHz, 8_000, 8_000).subarray(400, 7_600);
    expect(Math.abs(levelDbfs(output) - levelDbfs(expected))).toBeLessThan(0.2);
    expect(findPhrase(output, expected.subarray(100, 7_000))!.score).toBeGreaterThan(0.999);
  });

  it.each([4_600, 5_500, 7_000, 10_000])('lets nothing of a tone of %i Hz fold into the output', async (frequencyHz) => {
    const output = (await resample(tone(frequencyHz, 22_050, 22_050), 22_050, 8_000)).subarray(400, 7_600);
    expect(levelDbfs(output)).toBeLessThan(levelDbfs(tone(frequencyHz, 22_050, 22_050)) - 55);
  });

  it('keeps a constant unchanged, clips instead of wrapping, and returns the length of the ratio', async () => {
    expect(
      (await resample(new Int16Array(22_050).fill(1_234), 22_050, 8_000)).subarray(100, 7_900).every((sample) => sample === 1_234),
    ).toBe(true);
    expect(await resample(new Int16Array(441), 22_050, 8_000)).toHaveLength(160);
    const square = Int16Array.from({ length: 4_000 }, (_, i) => (i % 100 < 50 ? 32_767 : -32_768));
    const clipped = await resample(square, 22_050, 8_000);
    // The middles of a high and a low plateau, at input samples 2,025 and 2,075.
    expect(clipped[735]).toBeGreaterThan(30_000);
    expect(clipped[753]).toBeLessThan(-30_000);
    await expect(resample(square, 0, 8_000)).rejects.toThrow(RangeError);
  });

  it('yields to others: a minute of speech takes hundreds of turns', async () => {
    let turns = 0;
    const until = { isDone: false };
    const counting = (async () => {
      for (; !until.isDone; turns += 1) await turn();
    })();
    const output = await resample(tone(1_000, 22_050, 60 * 22_050), 22_050, 8_000);
    until.isDone = true;
    await counting;
    expect(output).toHaveLength(60 * 8_000);
    expect(turns).toBeGreaterThan(200);
    // The joints are not heard.
    expect(findPhrase(output.subarray(0, 8_000), tone(1_000, 8_000, 7_000))!.score).toBeGreaterThan(0.999);
  });
});

describe('a search in a recording that grows', () => {
  it.each([97, 799, 800, 5_000])('scores as one search of the whole does, %i samples at a time, and forgets nothing', (step) => {
    const phrase = noise(700, 2);
    const received = Int16Array.from([...noise(2_345, 1), ...phrase, ...noise(6_000, 3)]);
    const search = new PhraseSearch(phrase);
    let score = 0;
    for (let length = step; length < received.length + step; length += step) score = search.look(received.subarray(0, length));
    expect(score).toBeCloseTo(findPhrase(received, phrase)!.score, 5);
    expect(score).toBeGreaterThan(0.999);
  });
});

describe('cross-correlation', () => {
  it('equals the plain sum, at every offset', () => {
    const received = noise(3_000, 1);
    const expected = noise(700, 2);
    const scores = crossCorrelation(received, expected);
    expect(scores).toHaveLength(2_301);
    for (const offset of [0, 1, 700, 1_349, 2_300]) {
      let [product, a, b] = [0, 0, 0];
      for (let i = 0; i < 700; i += 1) {
        product += received[offset + i]! * expected[i]!;
        a += received[offset + i]! ** 2;
        b += expected[i]! ** 2;
      }
      expect(scores[offset]).toBeCloseTo(product / Math.sqrt(a * b), 5);
    }
  });

  it('finds a phrase at another volume, through A-law, at its place; another phrase scores low', () => {
    const phrase = noise(4_000, 3);
    const received = new Int16Array(40_000);
    received.set(
      phrase.map((sample) => sample / 4),
      12_345,
    );
    const match = findPhrase(throughG711('PCMA', received), phrase)!;
    expect(match.offsetSamples).toBe(12_345);
    expect(match.score).toBeGreaterThan(0.99);
    expect(findPhrase(received, noise(4_000, 4))!.score).toBeLessThan(0.2);
  });

  it('finds a repeated phrase as two matches, and nothing in silence or in too little audio', () => {
    const phrase = noise(2_000, 5);
    const received = new Int16Array(20_000);
    received.set(phrase, 1_000);
    received.set(phrase, 9_000);
    expect(findPhrases(received, phrase, 0.7).map((match) => match.offsetSamples)).toEqual([1_000, 9_000]);
    expect(findPhrases(new Int16Array(5_000), phrase, 0.1)).toEqual([]);
    expect(findPhrase(new Int16Array(10), phrase)).toBeNull();
  });
});

describe('the detection of voiced segments', () => {
  it('bridges a short pause and splits at a long one', () => {
    const samples = new Int16Array(16_000);
    samples.set(tone(440, 8_000, 1_600), 800);
    samples.set(tone(440, 8_000, 1_600), 3_200);
    samples.set(tone(440, 8_000, 1_600), 9_600);
    expect(voicedSegments(samples)).toEqual([
      { start: 800, end: 4_800 },
      { start: 9_600, end: 11_200 },
    ]);
    expect(levelDbfs(new Int16Array(10))).toBe(-Infinity);
  });
});

describe('the reader of WAV', () => {
  const header = (dataBytes: number, channels = 1): Buffer => {
    const bytes = Buffer.alloc(44);
    bytes.write('RIFF', 0, 'latin1');
    bytes.write('WAVEfmt ', 8, 'latin1');
    bytes.writeUInt32LE(16, 16);
    bytes.writeUInt16LE(1, 20);
    bytes.writeUInt16LE(channels, 22);
    bytes.writeUInt32LE(22_050, 24);
    bytes.writeUInt16LE(16, 34);
    bytes.write('data', 36, 'latin1');
    bytes.writeUInt32LE(dataBytes, 40);
    return bytes;
  };

  it('reads samples though the header of a pipe claims 2 GB, and drops half a sample at the end', () => {
    const parsed = parseWav(Buffer.concat([header(0x7ffff000), Buffer.from([1, 0, 0xff, 0xff, 9])]));
    expect(parsed).toEqual({ ok: true, value: { sampleRateHz: 22_050, samples: Int16Array.of(1, -1) } });
  });

  it('mixes stereo; refuses more channels, a cut header and something else', () => {
    expect(parseWav(header(4, 2))).toMatchObject({ ok: true });
    expect(parseWav(header(4, 3))).toEqual({ ok: false, error: 'unsupported-format' });
    expect(parseWav(header(4).subarray(0, 30))).toEqual({ ok: false, error: 'no-format' });
    expect(parseWav(header(4).subarray(0, 36))).toEqual({ ok: false, error: 'no-data' });
    expect(parseWav(Buffer.from('ID3 nothing here'))).toEqual({ ok: false, error: 'not-wav' });
  });
});
