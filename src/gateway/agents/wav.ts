import { err, ok, type Result } from '../../lib/result.js';
import { decodeG711 } from '../../rtp/codec/g711.js';

export interface WavAudio {
  readonly sampleRateHz: number;
  /** 16-bit linear, one channel. */
  readonly samples: Int16Array;
}

export type WavError = 'not-wav' | 'no-format' | 'unsupported-format' | 'no-data';

// wFormatTag
const PCM_FORMAT = 1;
const ALAW_FORMAT = 6;
const MULAW_FORMAT = 7;
/** WAVE_FORMAT_EXTENSIBLE: the tag is the beginning of a GUID, whose rest is always this. */
const EXTENSIBLE_FORMAT = 0xfffe;
const EXTENSIBLE_BYTES = 40;
const SUBFORMAT_AT = 24;
const SUBFORMAT_REST = Buffer.from('000000001000800000aa00389b71', 'hex');
const PCM_BITS: ReadonlySet<number> = new Set([8, 16, 24, 32]);
const MAX_CHANNELS = 2;
const MIN_RATE_HZ = 4_000;
const MAX_RATE_HZ = 192_000;

/** How the data chunk is to be read. */
interface WavFormat {
  readonly tag: number;
  readonly channels: number;
  readonly sampleRateHz: number;
  readonly bits: number;
}

/**
 * Reads a RIFF WAVE file of PCM of 8, 16, 24 or 32 bits, A-law or µ-law; two channels are mixed to one. A data chunk that claims more than the file holds ends with the file:
 * a program that writes to a pipe cannot know the length when it writes the header.
 */
export function parseWav(bytes: Uint8Array): Result<WavAudio, WavError> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < 12 || tag(view, 0) !== 'RIFF' || tag(view, 8) !== 'WAVE') return err('not-wav');
  let format: WavFormat | undefined;
  for (let offset = 12; offset + 8 <= bytes.byteLength;) {
    const sizeBytes = view.getUint32(offset + 4, true);
    const start = offset + 8;
    const end = Math.min(start + sizeBytes, bytes.byteLength);
    if (tag(view, offset) === 'fmt ') {
      if (end - start < 16) return err('no-format');
      format = {
        tag: formatTag(bytes.subarray(start, end)),
        channels: view.getUint16(start + 2, true),
        sampleRateHz: view.getUint32(start + 4, true),
        bits: view.getUint16(start + 14, true),
      };
      if (!isSupported(format)) return err('unsupported-format');
    } else if (tag(view, offset) === 'data') {
      if (format === undefined) return err('no-format');
      const samples = samplesOf(format, bytes.subarray(start, end));
      return ok({ sampleRateHz: format.sampleRateHz, samples: format.channels === 1 ? samples : mixed(samples) });
    }
    // Chunks are padded to an even length.
    offset = start + sizeBytes + (sizeBytes & 1);
  }
  return err('no-data');
}

/** @param chunk has 16 bytes or more */
function formatTag(chunk: Uint8Array): number {
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const given = view.getUint16(0, true);
  if (given !== EXTENSIBLE_FORMAT || chunk.length < EXTENSIBLE_BYTES) return given;
  const isKnown = SUBFORMAT_REST.equals(chunk.subarray(SUBFORMAT_AT + 2, EXTENSIBLE_BYTES));
  return isKnown ? view.getUint16(SUBFORMAT_AT, true) : given;
}

function isSupported({ tag: format, channels, sampleRateHz, bits }: WavFormat): boolean {
  const hasBits = format === PCM_FORMAT ? PCM_BITS.has(bits) : (format === ALAW_FORMAT || format === MULAW_FORMAT) && bits === 8;
  return hasBits && channels >= 1 && channels <= MAX_CHANNELS && sampleRateHz >= MIN_RATE_HZ && sampleRateHz <= MAX_RATE_HZ;
}

/** All channels, as they are interleaved. */
function samplesOf({ tag: format, bits }: WavFormat, data: Uint8Array): Int16Array {
  if (format !== PCM_FORMAT) {
    const samples = new Int16Array(data.length);
    decodeG711(format === ALAW_FORMAT ? 'PCMA' : 'PCMU', data, samples);
    return samples;
  }
  // 8 bits have no sign.
  if (bits === 8) return Int16Array.from(data, (byte) => (byte - 128) << 8);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const sampleBytes = bits / 8;
  const samples = new Int16Array(Math.floor(data.length / sampleBytes));
  // The upper 16 bits of each.
  for (let i = 0; i < samples.length; i += 1) samples[i] = view.getInt16(sampleBytes * (i + 1) - 2, true);
  return samples;
}

function mixed(samples: Int16Array): Int16Array {
  return Int16Array.from({ length: samples.length >> 1 }, (_, i) => ((samples[2 * i] ?? 0) + (samples[2 * i + 1] ?? 0)) >> 1);
}

function tag(view: DataView, offset: number): string {
  return String.fromCharCode(view.getUint8(offset), view.getUint8(offset + 1), view.getUint8(offset + 2), view.getUint8(offset + 3));
}
