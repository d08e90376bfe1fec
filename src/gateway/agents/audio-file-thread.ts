import { parentPort } from 'node:worker_threads';
import { MPEGDecoder } from 'mpg123-decoder';
import type { DecodedAudio } from './audio-file.js';
import { resample } from './resample.js';
import { SPEECH_RATE_HZ } from './speech.js';
import { parseWav, type WavError } from './wav.js';

// Decodes one file; its parent ends it.

const MAX_SECONDS = 900;
const FULL_SCALE = 32_767;

const WAV_PROBLEMS: Readonly<Record<WavError, string>> = {
  'not-wav': 'the audio is neither WAV nor MP3',
  'no-format': 'the WAV file has no format',
  'unsupported-format': 'the WAV file must be PCM of 8 or 16 bits, A-law or µ-law',
  'no-data': 'the WAV file has no audio',
};

async function decoded(bytes: Uint8Array): Promise<DecodedAudio> {
  const wav = parseWav(bytes);
  if (wav.ok) return at8kHz(wav.value.samples, wav.value.sampleRateHz);
  if (wav.error !== 'not-wav') return { problem: WAV_PROBLEMS[wav.error] };
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const { channelData, sampleRate, samplesDecoded } = decoder.decode(bytes);
  decoder.free();
  const [left, right = left] = channelData;
  if (samplesDecoded === 0 || left === undefined || right === undefined) return { problem: WAV_PROBLEMS['not-wav'] };
  return at8kHz(
    Int16Array.from(left, (sample, index) => Math.round(((sample + (right[index] ?? 0)) / 2) * FULL_SCALE)),
    sampleRate,
  );
}

async function at8kHz(samples: Int16Array, sampleRateHz: number): Promise<DecodedAudio> {
  if (samples.length > MAX_SECONDS * sampleRateHz) return { problem: `the audio is longer than ${String(MAX_SECONDS)} s` };
  return { samples: sampleRateHz === SPEECH_RATE_HZ ? samples : await resample(samples, sampleRateHz, SPEECH_RATE_HZ) };
}

// The listener keeps the event loop alive while WebAssembly is compiled. A thread whose loop is empty waits for V8's own threads, and these
// may wait for it (nodejs/node#54918): it would decode nothing, and never end.
parentPort?.on('message', (bytes: Uint8Array) => void answer(bytes));

async function answer(bytes: Uint8Array): Promise<void> {
  parentPort?.postMessage(await decoded(bytes).catch((): DecodedAudio => ({ problem: 'the audio could not be decoded' })));
}
