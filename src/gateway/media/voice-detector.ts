import loadFvad, { type FvadModule } from '@echogarden/fvad-wasm';
import { FRAME_SAMPLES } from '../../rtp/codec/g711.js';
import type { VoiceDetector } from './voice-activity.js';

const RATE_HZ = 8_000;
/** 0 to 3; 3 takes the least noise for voice. */
const MODE = 3;

/** Creates WebRTC's detectors. Loaded once per thread. */
export class VoiceDetectors {
  /** One buffer for the frames of all detectors: each is processed before the next one is written. */
  readonly #frame: number;

  private constructor(private readonly module: FvadModule) {
    this.#frame = allocated(module._malloc(FRAME_SAMPLES * Int16Array.BYTES_PER_ELEMENT));
  }

  static async load(): Promise<VoiceDetectors> {
    return new VoiceDetectors(await loadFvad());
  }

  /** One detector per call. It adapts to the line's noise, and holds memory until it is closed. */
  open(): VoiceDetector {
    const module = this.module;
    const frame = this.#frame;
    let instance = allocated(module._fvad_new());
    module._fvad_set_mode(instance, MODE);
    module._fvad_set_sample_rate(instance, RATE_HZ);
    return {
      isVoice: (samples) => {
        if (samples.length !== FRAME_SAMPLES) throw new RangeError(`a frame of ${samples.length} samples, not ${FRAME_SAMPLES}`);
        if (instance === 0) throw new Error('the voice detector is closed');
        module.HEAP16.set(samples, frame >> 1);
        return module._fvad_process(instance, frame, FRAME_SAMPLES) === 1;
      },
      close: () => {
        if (instance !== 0) module._fvad_free(instance);
        instance = 0;
      },
    };
  }
}

function allocated(pointer: number): number {
  if (pointer === 0) throw new Error('no memory for a voice detector');
  return pointer;
}
