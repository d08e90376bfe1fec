import { FRAME_MS } from '../../rtp/codec/g711.js';

/** Detects voice in each frame. It may remember earlier frames. */
export interface VoiceDetector {
  /** One frame of 20 ms: 160 samples, 16-bit linear at 8 kHz. */
  isVoice(frame: Int16Array): boolean;
  /** Frees it; no method is called afterwards. */
  close(): void;
}

export type VoiceEvent = 'speech-started' | 'speech-stopped';

export const MIN_END_OF_SPEECH_MS = 20;
export const MAX_END_OF_SPEECH_MS = 10_000;

/**
 * 100 ms of the last 200: between the sounds of "excuse me" there are silences of 80 ms. Less voice is not enough: a detector keeps
 * reporting voice after a sound (WebRTC's for 60 ms and more), and takes the beginning of any noise for voice (WebRTC's for 80 ms).
 */
const START_MS = 100;
/** What of the window needs no voice. */
const GAP_MS = 100;
/** Energy is counted in pieces, because a noise may begin anywhere in a frame: one of 80 ms touches five frames. */
const PIECE_MS = 10;
const PIECE_SAMPLES = 80;
/** Pieces 20 dB and more below the loudest of the window are the decay of a click or crackle. */
const LEAST_PART_OF_LOUDEST = 1 / 100;

/** When a speaker begins and finishes, from the detector's result for each frame. */
export class VoiceActivity {
  /** How long a voice has lasted when it is reported. */
  static readonly startMs = START_MS;
  readonly #piecesToStart: number;
  /** Energies of the last pieces in turn; 0: not voiced. */
  readonly #window: Float64Array;
  #index = 0;
  #isSpeaking = false;
  #silentMs = 0;

  /**
   * @param endOfSpeechMs silence that ends the speech
   * @param startMs voice that begins the speech; less than the default takes noise for voice
   * @throws RangeError unless the silence is from 20 to 10,000
   */
  constructor(
    private readonly detector: VoiceDetector,
    private readonly endOfSpeechMs: number,
    startMs = START_MS,
  ) {
    this.#piecesToStart = startMs / PIECE_MS;
    this.#window = new Float64Array((startMs + GAP_MS) / PIECE_MS);
    if (!(endOfSpeechMs >= MIN_END_OF_SPEECH_MS && endOfSpeechMs <= MAX_END_OF_SPEECH_MS)) {
      throw new RangeError(`end of speech after ${endOfSpeechMs} ms: must be ${MIN_END_OF_SPEECH_MS} to ${MAX_END_OF_SPEECH_MS}`);
    }
  }

  get isSpeaking(): boolean {
    return this.#isSpeaking;
  }

  /** Takes the next frame of 20 ms; returns the change, if any. */
  frame(samples: Int16Array): VoiceEvent | undefined {
    const isVoiced = this.detector.isVoice(samples);
    return this.#isSpeaking ? this.#listen(isVoiced) : this.#wait(isVoiced, samples);
  }

  close(): void {
    this.detector.close();
  }

  #wait(isVoiced: boolean, samples: Int16Array): VoiceEvent | undefined {
    for (let start = 0; start < samples.length; start += PIECE_SAMPLES) {
      this.#window[this.#index] = isVoiced ? energyOf(samples.subarray(start, start + PIECE_SAMPLES)) : 0;
      this.#index = (this.#index + 1) % this.#window.length;
    }
    if (!isVoiced || this.#loudPieces() < this.#piecesToStart) return undefined;
    this.#isSpeaking = true;
    this.#silentMs = 0;
    return 'speech-started';
  }

  /** The silence counts from the last voiced frame. */
  #listen(isVoiced: boolean): VoiceEvent | undefined {
    this.#silentMs = isVoiced ? 0 : this.#silentMs + FRAME_MS;
    if (this.#silentMs < this.endOfSpeechMs) return undefined;
    this.#isSpeaking = false;
    this.#window.fill(0);
    return 'speech-stopped';
  }

  #loudPieces(): number {
    let loudest = 0;
    for (const energy of this.#window) loudest = Math.max(loudest, energy);
    let count = 0;
    for (const energy of this.#window) if (energy > loudest * LEAST_PART_OF_LOUDEST) count += 1;
    return count;
  }
}

function energyOf(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return sum;
}
