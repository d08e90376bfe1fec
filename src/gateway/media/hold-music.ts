import { FRAME_SAMPLES, G711_CLOCK_RATE_HZ } from '../../rtp/codec/g711.js';

/** Broken chords of C major, A minor, F major and G major, a note each 0.4 s. */
const NOTES_HZ = [
  [262, 330, 392, 523, 392, 330],
  [220, 262, 330, 440, 330, 262],
  [175, 220, 262, 349, 262, 220],
  [196, 247, 294, 392, 294, 247],
].flat();
const NOTE_SAMPLES = 3_200;
const AMPLITUDE = 3_000;
/** The decay of a struck string, in a second. */
const DECAY = 5;
/** Against a click at the beginning of a note. */
const ATTACK_SAMPLES = 40;

/** What a caller hears who waits. */
export class HoldMusic {
  #at = 0;

  /** Writes the next frame of 20 ms. */
  fill(samples: Int16Array): void {
    for (let index = 0; index < FRAME_SAMPLES; index += 1) {
      const note = NOTES_HZ[Math.floor(this.#at / NOTE_SAMPLES)] ?? 0;
      const since = this.#at % NOTE_SAMPLES;
      const seconds = since / G711_CLOCK_RATE_HZ;
      const loudness = AMPLITUDE * Math.min(1, since / ATTACK_SAMPLES) * Math.exp(-DECAY * seconds);
      samples[index] = loudness * Math.sin(2 * Math.PI * note * seconds);
      this.#at = (this.#at + 1) % (NOTES_HZ.length * NOTE_SAMPLES);
    }
  }
}
