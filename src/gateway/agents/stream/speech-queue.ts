import { BYTES_PER_MS } from '../../../rtp/codec/g711.js';

/** Marks that wait: more than one each 20 ms of two minutes; */
const MAX_MARKS = 10_000;
/** and characters of their names. */
const MAX_NAMES = 1_024_000;
/** Pieces that are shorter together are put together. */
const FEW_BYTES = 160;
/** Frames that wait for the rest of their audio before silence fills it: 40 ms. */
const MAX_STARVED_PULLS = 2;

/** Two seconds of frames over which an agent's pace and what waits are looked at. */
const WINDOW_PULLS = 100;
/** An agent that speaks in real time has so much waiting without need: it stalled, and caught up. */
const STALE_MS = 40;
/** What is left of that: the agent's own jitter. */
const LEFT_MS = 20;
/** In real time: as much as is played in a window, or nearly. */
const PACE_SLACK = 0.15;

interface Mark {
  readonly name: string;
  /** Played once this many bytes are. */
  readonly at: number;
}

/**
 * What an agent said and the caller has not heard yet: audio of any length, faster than real time, taken a frame at a time, and marks
 * between. Bounded; but for pieces of a few bytes nothing is copied before it is played.
 */
export class SpeechQueue {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  /** Bytes of the first chunk that were played. */
  #offset = 0;
  #pushedBytes = 0;
  #playedBytes = 0;
  #marks: Mark[] = [];
  #nameCharacters = 0;
  #starvedPulls = 0;
  #windowPulls = 0;
  #windowLeastBytes = Infinity;
  #windowStartBytes = 0;
  /** To be made up for in pauses. */
  #excessBytes = 0;
  #skippedBytes = 0;

  /**
   * @param silence the byte that fills up a frame
   * @param isQuiet of a byte of speech: whether a pause consists of such
   */
  constructor(
    maxMs: number,
    private readonly silence: number,
    private readonly isQuiet: (byte: number) => boolean,
  ) {
    this.#maxBytes = maxMs * BYTES_PER_MS;
  }

  /** Pauses that were left out to make up for an agent's stalls, in milliseconds. */
  get skippedMs(): number {
    return this.#skippedBytes / BYTES_PER_MS;
  }

  get isEmpty(): boolean {
    return this.#pushedBytes === this.#playedBytes;
  }

  get queuedMs(): number {
    return (this.#pushedBytes - this.#playedBytes) / BYTES_PER_MS;
  }

  /** Bytes since the first: where the next piece begins. */
  get pushedBytes(): number {
    return this.#pushedBytes;
  }

  /** Bytes since the first that the caller was sent, with the pauses that were left out. After `clear` all count as played. */
  get playedBytes(): number {
    return this.#playedBytes;
  }

  /** Queues audio, which then belongs to the queue; returns the bytes that there was no room for, the latest ones. */
  push(bytes: Uint8Array): number {
    const room = this.#maxBytes - (this.#pushedBytes - this.#playedBytes);
    const taken = bytes.length <= room ? bytes : bytes.subarray(0, room);
    if (taken.length > 0) this.#append(taken);
    this.#pushedBytes += taken.length;
    return bytes.length - taken.length;
  }

  /** Pieces of a byte each would be a million in a full queue. */
  #append(bytes: Uint8Array): void {
    const last = this.#chunks.at(-1);
    if (last === undefined || last.length + bytes.length > FEW_BYTES) {
      this.#chunks.push(bytes);
      return;
    }
    const joined = new Uint8Array(last.length + bytes.length);
    joined.set(last);
    joined.set(bytes, last.length);
    this.#chunks[this.#chunks.length - 1] = joined;
  }

  /**
   * A mark behind everything that was played is due at once: see `takePlayedMarks`.
   * @returns the oldest marks, of which there are too many now: they are given back early, and none is lost
   */
  mark(name: string): readonly string[] {
    this.#marks.push({ name, at: this.#pushedBytes });
    this.#nameCharacters += name.length;
    let early = 0;
    let left = this.#nameCharacters;
    while (this.#marks.length - early > MAX_MARKS || left > MAX_NAMES) {
      left -= this.#marks[early]?.name.length ?? left;
      early += 1;
    }
    return this.#removeMarks(early);
  }

  /**
   * Fills `target` with what comes next, else with silence. True when there was any speech. An agent that speaks in real time without
   * end, and stalled once, would be heard so much later for good: its pauses are shortened until it is not.
   */
  pull(target: Uint8Array): boolean {
    const queued = this.#pushedBytes - this.#playedBytes;
    this.#watch(queued, target.length);
    if (queued === 0 || this.#isWorthWaiting(target.length)) {
      target.fill(this.silence);
      return false;
    }
    this.#starvedPulls = 0;
    this.#take(target);
    while (this.#excessBytes > 0 && this.#pushedBytes - this.#playedBytes >= target.length && target.every(this.isQuiet)) {
      this.#excessBytes -= target.length;
      this.#skippedBytes += target.length;
      this.#take(target);
    }
    return true;
  }

  #watch(queued: number, frameBytes: number): void {
    this.#windowLeastBytes = Math.min(this.#windowLeastBytes, queued);
    this.#windowPulls += 1;
    if (this.#windowPulls < WINDOW_PULLS) return;
    const pace = (this.#pushedBytes - this.#windowStartBytes) / (WINDOW_PULLS * frameBytes);
    const isStale = this.#windowLeastBytes >= STALE_MS * BYTES_PER_MS && Math.abs(pace - 1) <= PACE_SLACK;
    this.#excessBytes = isStale ? this.#windowLeastBytes - LEFT_MS * BYTES_PER_MS : 0;
    this.#windowPulls = 0;
    this.#windowLeastBytes = Infinity;
    this.#windowStartBytes = this.#pushedBytes;
  }

  #take(target: Uint8Array): void {
    let filled = 0;
    for (let chunk = this.#chunks[0]; chunk !== undefined && filled < target.length; chunk = this.#chunks[0]) {
      const part = Math.min(target.length - filled, chunk.length - this.#offset);
      target.set(part === chunk.length ? chunk : chunk.subarray(this.#offset, this.#offset + part), filled);
      filled += part;
      this.#offset += part;
      if (this.#offset === chunk.length) this.#dropChunk();
    }
    this.#playedBytes += filled;
    if (filled < target.length) target.fill(this.silence, filled);
  }

  /** The marks that everything before was played of, each once, in order; `null` when there are none. */
  takePlayedMarks(): readonly string[] | null {
    const [first] = this.#marks;
    if (first === undefined || first.at > this.#playedBytes) return null;
    const waiting = this.#marks.findIndex(({ at }) => at > this.#playedBytes);
    return this.#removeMarks(waiting === -1 ? this.#marks.length : waiting);
  }

  /** The first ones. */
  #removeMarks(count: number): readonly string[] {
    if (count === 0) return [];
    const names = this.#marks.splice(0, count).map(({ name }) => name);
    this.#nameCharacters -= names.reduce((sum, { length }) => sum + length, 0);
    return names;
  }

  /** Names of the marks that wait. */
  get waitingMarks(): readonly string[] {
    return this.#marks.map(({ name }) => name);
  }

  /** Forgets all speech; returns the names of the marks that waited. */
  clear(): readonly string[] {
    const names = this.#removeMarks(this.#marks.length);
    this.#chunks = [];
    this.#offset = 0;
    this.#playedBytes = this.#pushedBytes;
    this.#starvedPulls = 0;
    this.#excessBytes = 0;
    return names;
  }

  /** What waits fills a frame, or the agent said that it is the end: else the rest is probably on its way. */
  hasFrame(frameBytes: number): boolean {
    return this.#pushedBytes - this.#playedBytes >= frameBytes || this.#marks.length > 0;
  }

  #isWorthWaiting(frameBytes: number): boolean {
    if (this.hasFrame(frameBytes) || this.#starvedPulls >= MAX_STARVED_PULLS) return false;
    this.#starvedPulls += 1;
    return true;
  }

  #dropChunk(): void {
    this.#offset = 0;
    this.#chunks.shift();
  }
}
