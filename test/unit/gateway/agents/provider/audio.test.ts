import { describe, expect, it } from 'vitest';
import type { ProviderName } from '../../../../../src/gateway/model/provider.js';
import type { ProviderSettings } from '../../../../../src/gateway/model/provider-settings.js';
import { decodeG711, encodeG711, type AudioCodec } from '../../../../../src/rtp/codec/g711.js';
import { talkAt } from '../../../../support/provider/every-provider.js';
import type { FakeElevenLabsOptions } from '../../../../support/provider/fake-elevenlabs.js';

// What is heard of tones through each provider's audio formats, at the leg's laws.

const AMPLITUDE = 8_000;
const LEG_HZ = 8_000;

interface Path {
  readonly provider: ProviderName;
  readonly settings?: Partial<ProviderSettings>;
  readonly formats?: FakeElevenLabsOptions;
  /** `pcm`: 16-bit linear, little-endian. */
  readonly up: readonly ['law' | 'PCMU' | 'pcm', number];
  readonly down: readonly ['law' | 'PCMU' | 'pcm', number];
}

const PATHS: Readonly<Record<string, Path>> = {
  'openai-realtime in G.711': { provider: 'openai-realtime', up: ['law', 8_000], down: ['law', 8_000] },
  'openai-realtime in PCM of 24 kHz': {
    provider: 'openai-realtime',
    settings: { audio: 'pcm-24000' },
    up: ['pcm', 24_000],
    down: ['pcm', 24_000],
  },
  'deepgram in G.711': { provider: 'deepgram', up: ['law', 8_000], down: ['law', 8_000] },
  'deepgram in PCM of 24 kHz': { provider: 'deepgram', settings: { audio: 'pcm-24000' }, up: ['pcm', 24_000], down: ['pcm', 24_000] },
  'gemini-live': { provider: 'gemini-live', up: ['pcm', 16_000], down: ['pcm', 24_000] },
  'elevenlabs in ulaw_8000': { provider: 'elevenlabs', up: ['PCMU', 8_000], down: ['PCMU', 8_000] },
  ...Object.fromEntries(
    [8_000, 16_000, 24_000].map((hz): [string, Path] => {
      const format = `pcm_${String(hz)}`;
      return [
        `elevenlabs in ${format}`,
        { provider: 'elevenlabs', formats: { input: format, output: format }, up: ['pcm', hz], down: ['pcm', hz] },
      ];
    }),
  ),
};
const ROWS = Object.keys(PATHS).flatMap((name) => (['PCMU', 'PCMA'] as const).map((codec) => [name, codec] as const));

function tone(hertz: number, rateHz: number, ms: number): Int16Array {
  return Int16Array.from({ length: (rateHz / 1_000) * ms }, (_, n) => Math.round(AMPLITUDE * Math.sin((2 * Math.PI * hertz * n) / rateHz)));
}

function encoded(samples: Int16Array, law: AudioCodec | 'pcm'): Buffer {
  if (law === 'pcm') return Buffer.from(samples.buffer);
  const bytes = Buffer.alloc(samples.length);
  encodeG711(law, samples, bytes);
  return bytes;
}

function decoded(bytes: Buffer, law: AudioCodec | 'pcm'): Int16Array {
  if (law === 'pcm') return Int16Array.from({ length: bytes.length >> 1 }, (_, n) => bytes.readInt16LE(2 * n));
  const samples = new Int16Array(bytes.length);
  decodeG711(law, bytes, samples);
  return samples;
}

/** Amplitude of one frequency (Goertzel's sum, over whole periods of 10 Hz). */
function amplitudeAt(samples: Int16Array, hertz: number, rateHz: number): number {
  const angle = (2 * Math.PI * hertz) / rateHz;
  let [real, imaginary] = [0, 0];
  samples.forEach((sample, n) => {
    real += sample * Math.cos(angle * n);
    imaginary += sample * Math.sin(angle * n);
  });
  return (2 * Math.hypot(real, imaginary)) / samples.length;
}

const rms = (samples: Int16Array): number => Math.sqrt(samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length);
/** 200 ms from the middle: without the beginning and the end of a filter. */
const middle = (samples: Int16Array, rateHz: number): Int16Array => samples.subarray(0.1 * rateHz, 0.3 * rateHz);

async function talked(name: string, codec: AudioCodec) {
  const path = PATHS[name]!;
  const law = (format: 'law' | 'PCMU' | 'pcm'): AudioCodec | 'pcm' => (format === 'law' ? codec : format);
  const { provider, settings, formats, up, down } = path;
  const { leg, play } = await talkAt(provider, { codec, ...settings }, {}, formats);
  return {
    /** What the provider gets of a tone of the caller. */
    up: (hertz: number): Int16Array => {
      leg.frames(20, encoded(tone(hertz, LEG_HZ, 400), codec));
      leg.frames(5);
      expect(leg.session.errors).toEqual([]);
      return middle(decoded(leg.session.audio, law(up[0])), up[1]);
    },
    /** What the caller hears of a tone of the agent. */
    down: (hertz: number): Int16Array => {
      play.begin();
      play.say(encoded(tone(hertz, down[1], 400), law(down[0])));
      play.end();
      return middle(decoded(leg.frames(22), codec), LEG_HZ);
    },
    upHz: up[1],
  };
}

describe.each(ROWS)('%s with a leg in %s', (name, codec) => {
  it.each([300, 1_000, 3_400])('passes a tone of %i Hz to the provider at its level, without an image', async (hertz) => {
    const { up, upHz } = await talked(name, codec);
    const samples = up(hertz);
    const amplitude = amplitudeAt(samples, hertz, upHz);
    expect(amplitude).toBeGreaterThan(0.88 * AMPLITUDE);
    expect(amplitude).toBeLessThan(1.05 * AMPLITUDE);
    // The rest is the noise of G.711, 34 dB and more below.
    expect(Math.sqrt(Math.max(0, rms(samples) ** 2 - amplitude ** 2 / 2))).toBeLessThan(0.02 * AMPLITUDE);
    for (const image of [LEG_HZ - hertz, LEG_HZ + hertz, 2 * LEG_HZ - hertz].filter((one) => one < upHz / 2))
      expect(amplitudeAt(samples, image, upHz)).toBeLessThan(0.005 * AMPLITUDE);
  });

  it.each([300, 1_000, 3_400])('passes a tone of %i Hz to the caller at its level', async (hertz) => {
    const samples = (await talked(name, codec)).down(hertz);
    const amplitude = amplitudeAt(samples, hertz, LEG_HZ);
    expect(amplitude).toBeGreaterThan(0.88 * AMPLITUDE);
    expect(amplitude).toBeLessThan(1.05 * AMPLITUDE);
    expect(Math.sqrt(Math.max(0, rms(samples) ** 2 - amplitude ** 2 / 2))).toBeLessThan(0.02 * AMPLITUDE);
  });
});

it.each(ROWS.filter(([name]) => PATHS[name]!.down[1] > LEG_HZ))(
  '%s with a leg in %s passes nothing above 4.6 kHz as an alias',
  async (name, codec) => {
    for (const hertz of [4_700, 7_000, 9_000, 11_000].filter((one) => one < PATHS[name]!.down[1] / 2))
      expect(rms((await talked(name, codec)).down(hertz)), String(hertz)).toBeLessThan(30);
  },
);
