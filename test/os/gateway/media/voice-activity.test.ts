import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EspeakSpeech } from '../../../../src/gateway/agents/speech.js';
import { voicedSegments } from '../../../../src/loadtest/test-caller/energy.js';
import { levelDbfs } from '../../../../src/rtp/codec/level.js';
import { throughG711 } from '../../../../src/rtp/codec/g711.js';
import { VoiceActivity, type VoiceDetector, type VoiceEvent } from '../../../../src/gateway/media/voice-activity.js';
import { VoiceDetectors } from '../../../../src/gateway/media/voice-detector.js';
import { voiceLikeNoise } from '../../../support/media/audio.js';

const FRAME = 160;
const FRAME_MS = 20;
/** The detector's own hangover, and a frame either way. */
const SLACK_MS = 140;

interface Change {
  readonly atMs: number;
  readonly event: VoiceEvent;
}

/** What is said of these samples, with the time at the end of the frame that it was said of. */
function changes(activity: VoiceActivity, samples: Int16Array): Change[] {
  const said: Change[] = [];
  for (let start = 0; start + FRAME <= samples.length; start += FRAME) {
    const event = activity.frame(samples.subarray(start, start + FRAME));
    if (event !== undefined) said.push({ atMs: (start / FRAME + 1) * FRAME_MS, event });
  }
  return said;
}

describe('voice activity of a scripted detector', () => {
  /** `1` is a voiced frame, `q` one that is called voiced but is 30 dB down, `0` one without voice. */
  function play(script: string, endOfSpeechMs: number): string {
    let at = 0;
    let closed = 0;
    const detector: VoiceDetector = { isVoice: () => script[at] !== '0', close: () => (closed += 1) };
    const activity = new VoiceActivity(detector, endOfSpeechMs);
    let said = '';
    for (; at < script.length; at += 1) {
      const event = activity.frame(new Int16Array(FRAME).fill(script[at] === 'q' ? 100 : 3_200));
      said += event === undefined ? '.' : event === 'speech-started' ? '+' : '-';
      expect(activity.isSpeaking).toBe(said.lastIndexOf('+') > said.lastIndexOf('-'));
    }
    activity.close();
    expect(closed).toBe(1);
    return said;
  }

  it.each([
    ['five voiced frames of ten start it', '000111110', 20, '.......+-'],
    ['one of the five may lack voice', '0110111', 60, '......+'],
    ['a plosive may interrupt a word', '111000011', 200, '........+'],
    ['five of ten frames may lack voice', '1010101010', 60, '........+.'],
    ['six of ten frames may not lack voice', '1001001001001001', 60, '................'],
    ['four voiced frames are too few, however often they come', '111100000011110000001111', 60, '........................'],
    ['the tail of a click does not count', '01qqqqq000', 60, '..........'],
    ['nor does that of a crackle of 60 ms', '0111qqqqq0', 60, '..........'],
    ['a quiet voice counts', 'qqqqqq', 60, '....+.'],
    ['a frame without voice does not start it', '1111q', 20, '.....'],
    ['it stops after the silence', '11111000111', 60, '....+..-...'],
    ['not sooner', '11111001111', 60, '....+......'],
    ['the silence counts from the last voiced frame', '1111100100100000', 60, '....+........-..'],
    ['a setting between frames is rounded up to them', '11111000', 50, '....+..-'],
    ['it starts again with a whole window', '111110111111', 20, '....+-....+.'],
  ])('follows its rule: %s', (_what, script, endOfSpeechMs, said) => {
    expect(play(script, endOfSpeechMs)).toBe(said);
  });

  it('accepts an end of speech of 20 to 10,000 ms', () => {
    const detector: VoiceDetector = { isVoice: () => false, close: () => undefined };
    for (const wrong of [19, 10_001, Number.NaN, -1]) expect(() => new VoiceActivity(detector, wrong)).toThrow(RangeError);
    for (const right of [20, 10_000]) expect(new VoiceActivity(detector, right).isSpeaking).toBe(false);
  });
});

describe('a sound that is no speech, wherever it begins in a frame', () => {
  const burst = (ms: number, seed: number): Int16Array => voiceLikeNoise(8 * ms, seed);
  const sounds: readonly [string, (seed: number) => Int16Array][] = [
    ['80 ms of noise', (seed) => burst(80, seed)],
    ['a cough: two bursts of 60 ms', (seed) => Int16Array.from([...burst(60, seed), ...new Int16Array(8 * 120), ...burst(60, seed + 50)])],
  ];

  it.each(sounds)('interrupts nothing: %s', async (_what, sound) => {
    const detectors = await VoiceDetectors.load();
    for (let offsetMs = 0; offsetMs < 20; offsetMs += 2.5) {
      for (let seed = 1; seed <= 10; seed += 1) {
        const activity = new VoiceActivity(detectors.open(), 500);
        const samples = Int16Array.from([...new Int16Array(8 * (500 + offsetMs)), ...sound(seed), ...new Int16Array(8 * 600)]);
        expect(changes(activity, throughG711('PCMU', samples)), `${String(offsetMs)} ms, seed ${String(seed)}`).toEqual([]);
        activity.close();
      }
    }
  });
});

describe('voice activity of WebRTC’s detector', () => {
  const speech = new EspeakSpeech();
  let detectors: VoiceDetectors;
  /** Two sentences, without the silence around them. */
  let first: Int16Array;
  let second: Int16Array;
  const open: VoiceActivity[] = [];

  beforeAll(async () => {
    detectors = await VoiceDetectors.load();
    const say = async (text: string): Promise<Int16Array> => {
      const samples = await speech.synthesize({ text, language: 'ENG' }, []);
      const voiced = voicedSegments(samples, { hangoverSamples: samples.length });
      return samples.subarray(voiced[0]!.start, voiced[0]!.end);
    };
    first = await say('I would like to change my appointment.');
    second = await say('Is Thursday morning possible?');
  });

  afterAll(() => {
    for (const activity of open) activity.close();
  });

  function listen(endOfSpeechMs: number): VoiceActivity {
    const activity = new VoiceActivity(detectors.open(), endOfSpeechMs);
    open.push(activity);
    return activity;
  }

  /** The pieces one after the other (a number: so many milliseconds of silence), at a level, over noise, through G.711. */
  function call(pieces: readonly (Int16Array | number)[], gain: number, noise: number): Int16Array {
    const audio = pieces.flatMap((piece) => (typeof piece === 'number' ? Array.from({ length: piece * 8 }, () => 0) : [...piece]));
    const hiss = voiceLikeNoise(audio.length, 7, noise);
    return throughG711(
      'PCMU',
      Int16Array.from(audio, (sample, i) => Math.max(-32_768, Math.min(32_767, sample * gain + (hiss[i] ?? 0)))),
    );
  }

  it.each([
    [1, 0],
    [1, 30],
    [0.5, 100],
    [0.1, 10],
    [2, 300],
    [1, 500],
  ])('starts once and stops once, in time, for speech at a gain of %d over noise of %i', (gain, noise) => {
    const durationMs = first.length / 8;
    const said = changes(listen(400), call([1_000, first, 2_000], gain, noise));
    expect(said.map(({ event }) => event)).toEqual(['speech-started', 'speech-stopped']);
    expect(said[0]!.atMs).toBeGreaterThan(1_000);
    expect(said[0]!.atMs).toBeLessThan(1_000 + 300);
    expect(said[1]!.atMs).toBeGreaterThan(1_000 + durationMs + 400 - SLACK_MS);
    expect(said[1]!.atMs).toBeLessThan(1_000 + durationMs + 400 + SLACK_MS);
  });

  it.each([
    [300, 2],
    [800, 1],
  ])('at a pause of 500 ms within speech, with an end of speech after %i ms, finds %i utterances', (endOfSpeechMs, utterances) => {
    for (const [gain, noise] of [
      [1, 0],
      [0.5, 100],
    ] as const) {
      const said = changes(listen(endOfSpeechMs), call([500, first, 500, second, 2_000], gain, noise));
      expect(said.filter(({ event }) => event === 'speech-started')).toHaveLength(utterances);
      expect(said.at(-1)!.event).toBe('speech-stopped');
      expect(said).toHaveLength(2 * utterances);
    }
  });

  it('does not start on clicks, crackles of 60 ms, silence or line noise, wherever they begin', () => {
    const click = new Int16Array(80);
    click[3] = 30_000;
    const crackle = voiceLikeNoise(480, 3, 12_000);
    for (const noise of [0, 30, 100, 300]) {
      const background = noise === 0 ? 0 : levelDbfs(voiceLikeNoise(8_000, 7, noise));
      const pieces = [2_000, click, 1_000, click, 50, click, 1_000, crackle, 1_000, crackle, 2_000];
      expect(changes(listen(300), call(pieces, 1, noise)), `${background} dBFS`).toEqual([]);
      expect(changes(listen(300), Int16Array.of(...new Int16Array(16_000), ...call([5_000], 1, noise)))).toEqual([]);
    }
  });

  it('of one call changes nothing for another', () => {
    const [quiet, loud, alone] = [listen(300), listen(300), listen(300)];
    const audio = call([500, first, 1_000], 1, 100);
    const noise = call([audio.length / 8], 1, 3_000);
    const said: Change[] = [];
    for (let start = 0; start + FRAME <= audio.length; start += FRAME) {
      loud.frame(noise.subarray(start, start + FRAME));
      said.push(
        ...changes(quiet, audio.subarray(start, start + FRAME)).map(({ event }) => ({ atMs: (start / FRAME + 1) * FRAME_MS, event })),
      );
    }
    expect(said).toEqual(changes(alone, audio));
  });

  it('frees its memory, accepts frames of 160 samples only, and none once it is closed', () => {
    const detector = detectors.open();
    expect(() => detector.isVoice(new Int16Array(80))).toThrow(RangeError);
    expect(detector.isVoice(new Int16Array(FRAME))).toBe(false);
    detector.close();
    detector.close();
    expect(() => detector.isVoice(new Int16Array(FRAME))).toThrow('closed');
    // 2 GB would be full long before, were nothing freed.
    for (let i = 0; i < 200_000; i += 1) {
      const another = detectors.open();
      another.isVoice(first.subarray(0, FRAME));
      another.close();
    }
    expect(detectors.open().isVoice(new Int16Array(FRAME))).toBe(false);
  });
});
