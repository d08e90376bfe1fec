import { describe, expect, it } from 'vitest';
import { ThreadedAudioDecoder } from '../../support/built.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** MPEG 1 layer III, 128 kbit/s, 44.1 kHz: a header, and nothing but zeros is silence. */
const MP3_FRAME = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0xc4]), Buffer.alloc(413)]);
/** The same with 32 kbit/s. */
const SMALL_MP3_FRAME = Buffer.concat([Buffer.from([0xff, 0xfb, 0x10, 0xc4]), Buffer.alloc(100)]);

describe('the decoder of audio files', () => {
  const files = new ThreadedAudioDecoder(new VirtualClock());

  it('decodes MP3 to 8 kHz', async () => {
    const samples = await files.decode('a', Buffer.concat(Array.from({ length: 40 }, () => MP3_FRAME)));
    expect(samples.length / ((40 * 1_152 * 8_000) / 44_100)).toBeGreaterThan(0.9);
    expect(samples.every((sample) => sample === 0)).toBe(true);
  });

  it('rejects what it cannot decode, and decodes the next file', async () => {
    await expect(files.decode('a', new TextEncoder().encode('<html>not found</html>'))).rejects.toThrow('the audio is neither WAV nor MP3');
    expect((await files.decode('a', Buffer.concat(Array.from({ length: 9 }, () => MP3_FRAME)))).length).toBeGreaterThan(0);
  });

  it('rejects a file that is longer than 15 minutes, however small it is', async () => {
    await expect(files.decode('a', Buffer.concat(Array.from({ length: 36_000 }, () => SMALL_MP3_FRAME)))).rejects.toThrow(
      'the audio is longer than 900 s',
    );
  });
});
