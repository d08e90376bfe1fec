import { MPEGDecoder } from 'mpg123-decoder';
import type { DecodedAudio } from './audio-file.js';
import { resample } from './resample.js';
import { SPEECH_RATE_HZ } from './speech.js';
import { parseWav, type WavError } from './wav.js';

const MAX_SECONDS = 900;
const FULL_SCALE = 32_767;
/** Decoded at a time: the memory that a file needs depends on MAX_SECONDS, not on its bit rate. */
const PIECE_BYTES = 65_536;

const WAV_PROBLEMS: Readonly<Record<WavError, string>> = {
  'not-wav': 'the audio is neither WAV nor MP3',
  'no-format': 'the WAV file has no format',
  'unsupported-format': 'the WAV file must have one or two channels of PCM (8, 16, 24 or 32 bits), A-law or µ-law, at 4 to 192 kHz',
  'no-data': 'the WAV file has no audio',
};

/** The audio of a file. Never rejects. */
export function decodedAudio(bytes: Uint8Array): Promise<DecodedAudio> {
  return decoded(bytes).catch((): DecodedAudio => ({ problem: 'the audio could not be decoded' }));
}

async function decoded(bytes: Uint8Array): Promise<DecodedAudio> {
  const wav = parseWav(bytes);
  if (wav.ok) return at8kHz(wav.value.samples, wav.value.sampleRateHz);
  if (wav.error !== 'not-wav') return { problem: WAV_PROBLEMS[wav.error] };
  const mp3 = await decodeMp3(bytes);
  return mp3 === null ? { problem: WAV_PROBLEMS['not-wav'] } : at8kHz(mp3.samples, mp3.rateHz);
}

/** `null`: it is no MP3. What is longer than MAX_SECONDS is decoded a little further than that. */
async function decodeMp3(bytes: Uint8Array): Promise<{ readonly samples: Int16Array; readonly rateHz: number } | null> {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const pieces: Int16Array[] = [];
  let length = 0;
  let rateHz = 0;
  for (let from = 0; from < bytes.length && length <= MAX_SECONDS * rateHz; from += PIECE_BYTES) {
    const { channelData, sampleRate, samplesDecoded } = decoder.decode(bytes.subarray(from, from + PIECE_BYTES));
    const [left, right = left] = channelData;
    if (samplesDecoded === 0 || left === undefined || right === undefined) continue;
    pieces.push(mixed(left, right));
    length += samplesDecoded;
    rateHz = sampleRate;
  }
  decoder.free();
  return length === 0 ? null : { samples: joined(pieces, length), rateHz };
}

/** A loop: `Int16Array.from` takes a second for each four minutes of audio. */
function mixed(left: Float32Array, right: Float32Array): Int16Array {
  const samples = new Int16Array(left.length);
  for (let at = 0; at < left.length; at += 1) samples[at] = Math.round((((left[at] ?? 0) + (right[at] ?? 0)) / 2) * FULL_SCALE);
  return samples;
}

function joined(pieces: readonly Int16Array[], length: number): Int16Array {
  const samples = new Int16Array(length);
  let at = 0;
  for (const piece of pieces) {
    samples.set(piece, at);
    at += piece.length;
  }
  return samples;
}

async function at8kHz(samples: Int16Array, sampleRateHz: number): Promise<DecodedAudio> {
  if (samples.length > MAX_SECONDS * sampleRateHz) return { problem: `the audio is longer than ${String(MAX_SECONDS)} s` };
  return { samples: sampleRateHz === SPEECH_RATE_HZ ? samples : await resample(samples, sampleRateHz, SPEECH_RATE_HZ) };
}
