/** What is still in buffers on the way is heard too before the agent's hang-up takes effect. */
const QUIET_FRAMES = 10;
/** A provider that never ends its last answer keeps nobody on the line. */
const MAX_FRAMES = 1_500;

/** The agent is to hang up: when the caller has heard everything. */
export class Farewell {
  #isBegun = false;
  #quietFrames = 0;
  #frames = 0;

  get isBegun(): boolean {
    return this.#isBegun;
  }

  begin(): void {
    this.#isBegun = true;
  }

  /** Counts frames. Returns true once, when the call ends now. @param isQuiet no audio is queued or on its way */
  pass(frames: number, isQuiet: boolean): boolean {
    if (!this.#isBegun) return false;
    this.#frames += frames;
    if (isQuiet) this.#quietFrames += frames;
    if (this.#quietFrames <= QUIET_FRAMES && this.#frames < MAX_FRAMES) return false;
    this.#isBegun = false;
    return true;
  }
}
