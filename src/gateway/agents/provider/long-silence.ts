import { FRAME_MS } from '../../../rtp/codec/g711.js';
import { MIN_SPEECH_FRAMES } from '../../media/turn-watch.js';

/** Loud packets further apart are noises, not speech. */
const MAX_PAUSE_MS = 300;

/** Nobody speaks for long: the agent asks once, and then hangs up. */
export class LongSilence {
  #quietFrames = 0;
  #wasAsked = false;
  #isCallerSpeaking = false;
  #loudPackets = 0;
  #loudMs = -Infinity;

  constructor(private readonly maxSilenceMs: number) {}

  /** The caller speaks, has finished, or pressed a key. */
  caller(isSpeaking = this.#isCallerSpeaking): void {
    this.#isCallerSpeaking = isSpeaking;
    this.#quietFrames = 0;
    this.#wasAsked = false;
  }

  /** A loud packet of the caller arrived. Several in a row are speech, which some providers report only once it is over. */
  loud(nowMs: number): void {
    this.#loudPackets = nowMs - this.#loudMs < MAX_PAUSE_MS ? this.#loudPackets + 1 : 1;
    this.#loudMs = nowMs;
    if (this.#loudPackets >= MIN_SPEECH_FRAMES) this.caller();
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
