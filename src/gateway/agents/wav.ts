import { err, ok, type Result } from '../../lib/result.js';

export interface WavAudio {
  readonly sampleRateHz: number;
  /** 16-bit linear, one channel. */
  readonly samples: Int16Array;
}

export type WavError = 'not-wav' | 'no-format' | 'unsupported-format' | 'no-data';

const PCM_FORMAT = 1;

/**
 * Reads a RIFF WAVE file of 16-bit PCM, one channel. A data chunk that claims more than the file holds ends with the file:
 * a program that writes to a pipe cannot know the length when it writes the header.
 */
export function parseWav(bytes: Uint8Array): Result<WavAudio, WavError> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < 12 || tag(view, 0) !== 'RIFF' || tag(view, 8) !== 'WAVE') return err('not-wav');
  let sampleRateHz: number | undefined;
  for (let offset = 12; offset + 8 <= bytes.byteLength;) {
    const sizeBytes = view.getUint32(offset + 4, true);
    const start = offset + 8;
    const end = Math.min(start + sizeBytes, bytes.byteLength);
    if (tag(view, offset) === 'fmt ') {
      if (end - start < 16) return err('no-format');
      const isSupported = view.getUint16(start, true) === PCM_FORMAT && view.getUint16(start + 2, true) === 1;
      if (!isSupported || view.getUint16(start + 14, true) !== 16) return err('unsupported-format');
      sampleRateHz = view.getUint32(start + 4, true);
    } else if (tag(view, offset) === 'data') {
      if (sampleRateHz === undefined) return err('no-format');
      return ok({ sampleRateHz, samples: readSamples(view, start, end) });
    }
    // Chunks are padded to an even length.
    offset = start + sizeBytes + (sizeBytes & 1);
  }
  return err('no-data');
}

function readSamples(view: DataView, start: number, end: number): Int16Array {
  const samples = new Int16Array((end - start) >> 1);
  for (let i = 0; i < samples.length; i += 1) samples[i] = view.getInt16(start + 2 * i, true);
  return samples;
}

function tag(view: DataView, offset: number): string {
  return String.fromCharCode(view.getUint8(offset), view.getUint8(offset + 1), view.getUint8(offset + 2), view.getUint8(offset + 3));
}
