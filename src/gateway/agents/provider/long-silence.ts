import { FRAME_MS } from '../../../rtp/codec/g711.js';

/** Nobody speaks for long: the agent asks once, and then hangs up. */
export class LongSilence {
  #quietFrames = 0;
  #wasAsked = false;
  #isCallerSpeaking = false;

  constructor(private readonly maxSilenceMs: number) {}

  /** The caller speaks, has finished, or pressed a key. */
  caller(isSpeaking = this.#isCallerSpeaking): void {
    this.#isCallerSpeaking = isSpeaking;
    this.#quietFrames = 0;
    this.#wasAsked = false;
  }

  /** A frame passes; what is to be done about it. @param isQuiet the agent is not heard, and nothing runs */
  frame(isQuiet: boolean): 'ask' | 'leave' | null {
    this.#quietFrames = isQuiet && !this.#isCallerSpeaking ? this.#quietFrames + 1 : 0;
    if (this.#quietFrames * FRAME_MS < this.maxSilenceMs) return null;
    this.#quietFrames = 0;
    if (this.#wasAsked) return 'leave';
    this.#wasAsked = true;
    return 'ask';
  }
}
