import { describe, expect, it } from 'vitest';
import { ThreadedAudioFiles } from '../../support/built.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** MPEG 1 layer III, 128 kbit/s, 44.1 kHz: a header, and nothing but zeros is silence. */
const MP3_FRAME = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0xc4]), Buffer.alloc(413)]);

describe('audio files', () => {
  const clock = new VirtualClock();
  const files = new ThreadedAudioFiles(clock);

  it('decodes MP3 to 8 kHz', async () => {
    const samples = await files.decode(Buffer.concat(Array.from({ length: 40 }, () => MP3_FRAME)));
    expect(samples.length / ((40 * 1_152 * 8_000) / 44_100)).toBeGreaterThan(0.9);
    expect(samples.every((sample) => sample === 0)).toBe(true);
  });

  it('says what it cannot decode, and decodes the next one', async () => {
    await expect(files.decode(Buffer.from('<html>not found</html>'))).rejects.toThrow('the audio is neither WAV nor MP3');
    expect((await files.decode(Buffer.concat(Array.from({ length: 9 }, () => MP3_FRAME)))).length).toBeGreaterThan(0);
  });

  it('gives a file up after ten seconds, without waiting for the thread to end, and decodes the next one', async () => {
    const slow = files.decode(Buffer.concat([...Array.from({ length: 19_000 }, () => MP3_FRAME)]));
    const given = expect(slow).rejects.toThrow('the audio was not decoded within 10000 ms');
    await clock.advanceAsync(10_000);
    await given;
    expect((await files.decode(Buffer.concat(Array.from({ length: 8 }, () => MP3_FRAME)))).length).toBeGreaterThan(0);
  });
});
